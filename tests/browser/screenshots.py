"""`make screenshots`: the pictures of the README, taken of the sandbox with the real bot."""

import asyncio
import base64
import sqlite3
import sys
import time
from pathlib import Path

from playwright.async_api import Browser, expect

from sandbox.launch import Sandbox, running_sandbox
from tests.browser.person import Person, chromium, person_at

PICTURES = Path(__file__).resolve().parents[2] / "docs" / "pictures"
ORGANIZATION = "20077314"
# Calls by hour of the day, and who makes them.
BUSY = [1, 1, 0, 0, 0, 1, 2, 5, 14, 27, 34, 29, 16, 22, 31, 26, 19, 11, 5, 3, 2, 2, 1, 1]
CALLERS = [("U0OPERATOR", "list"), ("U0ADMIN", "refresh"), ("U0OPERATOR", "check"), ("", "watch")]


async def take_all() -> None:
    """Take every picture; each begins where the one before has ended."""
    PICTURES.mkdir(exist_ok=True)
    async with running_sandbox(INVENTORY_WATCH="off") as sandbox, chromium() as browser:
        await sandbox.bot.start()
        shape = {"viewport": {"width": 1180, "height": 860}, "device_scale_factor": 1.5}
        async with person_at(browser, sandbox.url, **shape) as person:
            await person.page.get_by_role("button", name="Put the first minute away").click()
            await the_list(person)
            await an_approval(person, browser)
            await a_quota(person, sandbox)
            await an_alert(person, sandbox)


async def the_list(person: Person) -> None:
    """`/orgs`: everything, a page at a time."""
    await person.type("/orgs")
    await expect(person.newest.get_by_role("table")).to_be_visible()
    await shoot(person, "orgs")


async def an_approval(person: Person, browser: Browser) -> None:
    """A request, and the same message after it was approved, one above the other."""
    wish = "add welcome +15550142 whatsapp:+15550177 for 2h because we try the new draft"
    await person.type(f"/testusers {wish}")
    await expect(person.newest).to_contain_text("Requested")
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
    """Put the two pictures of the approval into one."""
    page = await browser.new_page(viewport={"width": 920, "height": 400}, device_scale_factor=1.5)
    images = [
        f'<img src="data:image/png;base64,{base64.b64encode(one).decode()}">' for one in pictures
    ]
    style = (
        "body{margin:0;padding:14px;background:#e9e9f2}"
        "img{display:block;width:100%;border-radius:12px;margin-bottom:12px}"
        "img:last-child{margin:0}"
    )
    await page.set_content(f"<style>{style}</style>{''.join(images)}")
    await page.screenshot(path=PICTURES / "approval.png", full_page=True)
    await page.close()


async def a_quota(person: Person, sandbox: Sandbox) -> None:
    """One organization with meters and the calls of a day."""
    await person.go_to("#general")
    await person.type(f"/ratelimits check {ORGANIZATION}")
    await expect(person.newest).to_contain_text("1/100")
    remember_a_day(sandbox.database)
    await person.type(f"/ratelimits {ORGANIZATION}")
    await expect(person.newest.get_by_role("figure").first).to_be_visible()
    await person.page.set_viewport_size({"width": 1180, "height": 1210})
    await person.log.evaluate("log => { log.scrollTop = log.scrollHeight }")
    await shoot(person, "quota")
    await person.page.set_viewport_size({"width": 1180, "height": 780})


async def an_alert(person: Person, sandbox: Sandbox) -> None:
    """An organization that another client has got blocked."""
    sandbox.services.state.limits.block(("eu", ORGANIZATION), 44, None)
    await person.go_to("#alerts")
    await person.type(f"/ratelimits check {ORGANIZATION}")
    await expect(person.log).to_contain_text("is blocked by the inventory service")
    await shoot(person, "alert")


def remember_a_day(database: Path) -> None:
    """Give the organization that was just called a past, as if the bot had run for a day."""
    hour_at = time.time() // 3600 * 3600
    past = [
        (hour_at - 3600 * ago + 3500 * call / calls, *CALLERS[call % len(CALLERS)])
        for ago in range(23, 0, -1)
        for calls in [BUSY[time.gmtime(hour_at - 3600 * ago).tm_hour]]
        for call in range(calls)
    ]
    with sqlite3.connect(database, timeout=10) as connection:
        [(organization, made)] = connection.execute(
            "SELECT o.id, max(c.number) FROM quota_organizations o JOIN quota_calls c"
            " ON c.organization = o.id WHERE o.organization_id = ? GROUP BY o.id",
            [ORGANIZATION],
        )
        connection.execute("UPDATE quota_calls SET number = number + ?", [len(past)])
        rows = [
            (organization, number, *[round(at * 1e6)] * 3, kind, person)
            for number, (at, person, kind) in enumerate(past, start=made)
        ]
        connection.executemany("INSERT INTO quota_calls VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()


async def shoot(person: Person, name: str) -> None:
    """Take what is on the screen."""
    await person.page.mouse.move(2, 2)
    await person.composer.blur()
    await person.page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    asyncio.run(take_all())
    sys.stdout.write("\n".join(sorted(str(one) for one in PICTURES.glob("*.png"))) + "\n")
