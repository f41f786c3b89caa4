"""`make screenshots` takes screenshots for the README in a sandbox that runs the real bot."""

import asyncio
import base64
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from playwright.async_api import Browser, Locator, expect

from bot.migrations import migrate
from bot.organizations.rules import OrganizationKey
from bot.quotas.guard import Guard
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.services.calls import CallCause
from bot.store.engine import Database
from bot.tasks import Tasks
from sandbox.launch import Sandbox, running_sandbox
from tests.browser.film import Film
from tests.browser.person import Person, chromium, person_at
from tests.support.clock import FakeClock
from tests.support.pictured import ASKS, PICTURES, save_words

ORGANIZATION = OrganizationKey("eu", "20077314")
TERMS = Terms(lambda _key: Plan.FREE)
# Calls by hour of the day, and their callers.
BUSY = [1, 1, 0, 0, 0, 1, 2, 5, 14, 27, 34, 29, 16, 22, 31, 26, 19, 11, 5, 3, 2, 2, 1, 1]
LONGEST_SECONDS = 30
FRAME_MS = 400
SCRIPT_FRAMES = 10
# Scrolling into view would scroll the page below the caption too.
TO_BOTH_RUNS = """panel => {
    const run = panel.querySelector(".way");
    panel.scrollTop += run.getBoundingClientRect().top - panel.getBoundingClientRect().top - 8;
}"""
CALLERS = [("U0OPERATOR", "list"), ("U0ADMIN", "refresh"), ("U0OPERATOR", "check"), (None, "watch")]


async def take_all() -> None:
    """Take all the pictures in order, because each one depends on the one before it."""
    PICTURES.mkdir(exist_ok=True)
    async with running_sandbox(INVENTORY_WATCH="off") as sandbox, chromium() as browser:
        await remember_a_day(sandbox.database)
        await sandbox.bot.start()
        shape = {"viewport": {"width": 1180, "height": 860}, "device_scale_factor": 1.5}
        async with person_at(browser, sandbox.url, **shape) as person:
            await person.page.get_by_role("button", name="Hide this").click()
            await an_approval(person, browser)
            await a_quota(person)
            await an_alert(person, sandbox)
    await make_the_film()


async def an_approval(person: Person, browser: Browser) -> None:
    """Take one picture of a request before it is approved, and another one afterwards."""
    await person.type(f"/testusers {ASKS}")
    await expect(person.newest).to_contain_text("Sent to #approvals")
    await person.act_as("Ada")
    await person.go_to("#approvals")
    await expect(person.button("Approve")).to_be_visible()
    card = person.log.get_by_role("article").first
    before = await card.screenshot()
    await person.button("Approve").click()
    await expect(card).to_contain_text("Applied")
    await person.composer.hover()
    after = await card.screenshot()
    await one_above_the_other(browser, before, after)
    await person.act_as("Otto")


async def one_above_the_other(browser: Browser, *pictures: bytes) -> None:
    """Combine the two pictures of the approval into one picture."""
    page = await browser.new_page(viewport={"width": 920, "height": 400}, device_scale_factor=1.5)
    images = [
        f'<img src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
        for picture in pictures
    ]
    style = (
        "body{margin:0;padding:14px;background:#e9e9f2}"
        "img{display:block;width:100%;border-radius:12px;margin-bottom:12px}"
        "img:last-child{margin:0}"
    )
    await page.set_content(f"<style>{style}</style>{''.join(images)}")
    await page.screenshot(path=PICTURES / "approval.png", full_page=True)
    await page.close()


async def a_quota(person: Person) -> None:
    """Take a picture of an organization's quotas and the calls that were made during one day."""
    await person.go_to("#general")
    await person.type(f"/ratelimits {ORGANIZATION.organization_id}")
    await expect(person.newest.get_by_role("figure").first).to_be_visible()
    await person.page.set_viewport_size({"width": 1180, "height": 1400})
    await shoot(person, person.newest, "quota")


async def an_alert(person: Person, sandbox: Sandbox) -> None:
    """Take a picture of the alert that the bot posts when another client has caused a block."""
    sandbox.services.state.limits.block(("eu", ORGANIZATION.organization_id), 44, None)
    await person.go_to("#alerts")
    await person.type(f"/ratelimits check {ORGANIZATION.organization_id}")
    await expect(person.log).to_contain_text("is blocked, because the limit of")
    alert = person.log.get_by_role("article").filter(has_text="is blocked")
    await shoot(person, alert.first, "alert")


async def make_the_film() -> None:
    """Film a request, its approval, a shared list and a greedy script in a new sandbox."""
    size = {"width": 1180, "height": 740}
    part = {"x": 272.0, "y": 0.0, "width": 908.0, "height": 740.0}
    async with running_sandbox() as sandbox, chromium() as browser:
        await sandbox.bot.start()
        async with person_at(browser, sandbox.url, viewport=size) as person:
            await person.page.get_by_role("button", name="Hide this").click()
            film = Film(person, part)
            await film_an_approval(film)
            await film_sharing(film)
            await film_the_script(film, "Run directly", "Refused by the service")
            await film_the_script(film, "Run through the gateway", "Waiting")
    film.save(PICTURES / "demo.webp")
    assert film.seconds <= LONGEST_SECONDS


async def film_an_approval(film: Film) -> None:
    """Film Otto requesting a test user and Ada approving the request."""
    person = film.person
    await film.caption("Otto asks for access, in Slack")
    await film.type("/testusers add welcome +15550142 for 2h because trying the new draft")
    await expect(person.newest).to_contain_text("Sent to #approvals")
    await film.show(1800)
    await person.act_as("Ada")
    await person.go_to("#approvals")
    await film.caption("Ada, a second person, gets the card")
    approve = person.button("Approve")
    await approve.hover()
    await film.show(2200)
    await approve.click()
    card = person.log.get_by_role("article").first
    await expect(card).to_contain_text("Applied")
    await film.caption("Gatehouse has applied exactly that, once")
    await film.show(2600)


async def film_sharing(film: Film) -> None:
    """Film Otto listing the test users and sharing the list in the channel."""
    person = film.person
    await person.act_as("Otto")
    await person.go_to("#general")
    await film.caption("Otto shares the list in the channel")
    await film.type("/testusers list welcome")
    share = person.button("Share in channel")
    await expect(share).to_be_visible()
    await share.hover()
    await film.show(1600)
    await share.click()
    await expect(person.newest).to_contain_text("Shared by")
    await film.show(2400)


async def film_the_script(film: Film, name: str, result: str) -> None:
    """Film the greedy script, and check that the number next to `result` isn't 0."""
    panel = await film.person.services()
    way = panel.get_by_role("group", name=name)
    caption = {
        "Run directly": "A greedy script calls the service directly: calls are refused",
        "Run through the gateway": "Through the gateway, calls wait instead: none is refused",
    }
    await film.caption(caption[name])
    await way.get_by_role("button", name=name).click()
    await panel.get_by_role("group", name="Simulate").evaluate(TO_BOTH_RUNS)
    value = way.locator(f"dt:text-is('{result}') + dd")
    for _ in range(SCRIPT_FRAMES):
        await film.show(FRAME_MS)
        await film.person.page.wait_for_timeout(FRAME_MS)
    await expect(value).not_to_have_text("0")
    await film.show(4 * FRAME_MS)
    await way.get_by_role("button", name="Stop").click()


async def remember_a_day(database: Path) -> None:
    """Add one day's worth of API calls for an organization to the bot's ledger."""
    hour_at = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    clock = FakeClock(hour_at - timedelta(hours=23))
    store = Database(f"sqlite:///{database}", clock)
    await migrate(store)
    guard = Guard(store, clock, TERMS, Tasks())
    for _ in range(23):
        calls = BUSY[clock.now().hour]
        for call in range(calls):
            person, kind = CALLERS[call % len(CALLERS)]
            async with guard.call(ORGANIZATION, CallCause(kind, person)) as grant:
                await grant.responded()
            clock.advance(3600 / calls)
        if not calls:
            clock.advance(3600)
    await store.close()


async def shoot(person: Person, message: Locator, name: str) -> None:
    """Take a picture of one message, without the page around it."""
    await person.composer.blur()
    await person.composer.hover()
    await message.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    asyncio.run(take_all())
    save_words()
    sys.stdout.write("\n".join(sorted(str(path) for path in PICTURES.iterdir())) + "\n")
