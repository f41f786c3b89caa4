"""Tests `/ratelimits` end to end, from the signed request to the bot's reply."""

import asyncio
import re
from dataclasses import replace
from datetime import datetime, timedelta

import aiohttp
import pytest

from bot.audit.reading import latest
from bot.ops.clock import SystemClock
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.state import ServicesState
from tests.support.world import running_world

SETTINGS = {"commands_per_minute": "0", "inventory_watch": "off"}


def organization_of(world, data_center="eu"):
    return world.services.state.data_centers[data_center].organizations[0]


async def check_at_once(world, organization_id, times, user="U0OPERATOR"):
    """Request the same check several times at once. Return the replies."""
    ephemerals = world.slack.workspace.ephemerals
    before = len(ephemerals(user))
    typed = (user, "C0GENERAL", "/ratelimits", f"check {organization_id}")
    await asyncio.gather(*(world.slack.command(*typed) for _ in range(times)))

    def answers():
        found = [each for each in ephemerals(user)[before:] if "Working on it" not in each.all_text]
        return found if len(found) == times else None

    return await world.slack.until(answers)


async def test_all_organizations_at_a_glance_worst_first(world):
    one = organization_of(world)
    await world.ask("U0OPERATOR", "/ratelimits", f"check {one.organization_id}")
    answer = await world.ask("U0VIEWER", "/ratelimits")
    total = sum(len(dc.organizations) for dc in world.services.state.data_centers.values())
    assert (
        f"*API usage of {total} organizations*, starting with those closest to a limit"
        in answer.all_text
    )
    rows = next(block for block in answer.blocks if block["type"] == "table")["rows"]
    cells = [[cell["text"] for cell in row] for row in rows]
    assert cells[0] == ["Organization", "State", "Minute", "Day", "At once", "Data center"]
    assert ["1/100", "1/1,000", "0/5"] in [row[2:5] for row in cells]
    assert "1/100 minute" in answer.text


async def test_outage_is_shown_beside_organizations_within_limits(world):
    await world.ask("U0VIEWER", "/orgs")
    await world.later(world.clock.ahead + timedelta(seconds=5))
    world.services.state.faults.add(Fault(FaultKind.STATUS, "inventory", status=503))
    await world.ask("U0OPERATOR", "/orgs", "refresh")
    answer = await world.ask("U0VIEWER", "/ratelimits")
    assert "within limits" in answer.all_text
    for center in world.services.state.data_centers:
        assert f":warning: *{center}* is out of date (from <!date^" in answer.all_text
    assert "The inventory service (eu) is having problems (HTTP 503)." in answer.all_text


async def test_a_glance_makes_no_call_once_all_are_listed(world):
    await world.ask("U0VIEWER", "/orgs")
    calls = len(world.services.state.calls)
    await world.ask("U0VIEWER", "/ratelimits")
    await world.ask("U0VIEWER", "/ratelimits", organization_of(world).organization_id)
    assert len(world.services.state.calls) == calls


async def test_the_blocked_one_is_first_with_its_code(world):
    one = organization_of(world, "jp")
    world.services.state.limits.block(("jp", one.organization_id), 45)
    await world.ask("U0OPERATOR", "/ratelimits", f"check {one.organization_id}")
    answer = await world.ask("U0VIEWER", "/ratelimits")
    rows = next(block for block in answer.blocks if block["type"] == "table")["rows"]
    assert [cell["text"] for cell in rows[1]][1] == "\u26d4 blocked (45)"


async def test_one_organization_with_meters_a_chart_and_who_called(world):
    one = organization_of(world)
    for user in ("U0OPERATOR", "U0ADMIN", "U0ADMIN"):
        await world.ask(user, "/ratelimits", f"check {one.organization_id}")
    answer = await world.ask("U0VIEWER", "/ratelimits", one.name)
    assert "3/100" in answer.all_text
    assert "3/1,000" in answer.all_text
    charts = [block for block in answer.blocks if block["type"] == "data_visualization"]
    points = [point["value"] for chart in charts for point in chart["chart"]["series"][0]["data"]]
    assert len(points) == 12
    assert sum(points) == 3
    told = re.findall(r"\d\d:00 (\d+)", answer.text)
    assert [int(number) for number in told] == points
    assert "Adam Admin 2, Otto Operator 1" in answer.all_text
    assert "By type: check 3" in answer.all_text
    assert "3 calls in the last hour: well within the daily limit" in answer.all_text
    assert answer.buttons == ["Check now", "Refresh", "Share in channel"]


async def test_the_buttons_of_one_check_and_refresh(world):
    one = organization_of(world)
    shown = await world.ask("U0OPERATOR", "/ratelimits", one.organization_id)
    await world.slack.click("U0OPERATOR", shown, "Check now")
    assert "succeeded (" in (await world.answer("U0OPERATOR", after=1)).all_text
    await world.slack.click("U0OPERATOR", shown, "Refresh")
    await world.shows(shown, "1/1,000")


async def test_a_viewer_may_not_check(world):
    answer = await world.ask("U0VIEWER", "/ratelimits", "check 1")
    assert "to refresh lists, check" in answer.all_text
    assert world.services.state.calls == []


async def test_a_check_is_one_call_that_names_the_organization(world):
    await world.ask("U0VIEWER", "/orgs")
    before = len(world.services.state.calls)
    one = organization_of(world)
    answer = await world.ask("U0OPERATOR", "/ratelimits", f"check {one.name}")
    [call] = world.services.state.calls[before:]
    assert (call.data_center, call.organization_id) == ("eu", one.organization_id)
    assert re.search(r"The test call to .* succeeded \(\d", answer.all_text)


class StoppedClock(SystemClock):
    """A stopped clock keeps all calls in the same minute, even on a slow machine."""

    def __init__(self) -> None:
        super().__init__()
        self._stopped_at = super().now()

    def now(self) -> datetime:
        return self._stopped_at


async def test_130_checks_in_a_minute_are_100_calls_and_30_declines(sqlite_url):
    async with running_world(sqlite_url, clock=StoppedClock(), **SETTINGS) as world:
        one = organization_of(world)
        await world.ask("U0VIEWER", "/orgs")
        answers = [
            await world.ask("U0OPERATOR", "/ratelimits", f"check {one.organization_id}")
            for _ in range(130)
        ]
    at = ("eu", one.organization_id)
    calls = world.services.state.calls
    assert sum((call.data_center, call.organization_id) == at for call in calls) == 100
    assert world.services.state.refused == []
    full = "Nothing was sent. The next slot will be free in"
    assert [full in answer.all_text for answer in answers] == [False] * 100 + [True] * 30
    assert f"calls per minute for organization {one.organization_id}" in answers[-1].all_text


async def test_24_at_once_are_5_in_flight(world):
    one = organization_of(world)
    await world.ask("U0VIEWER", "/orgs")
    world.services.state.latency_seconds = 0.1
    answers = await check_at_once(world, one.organization_id, 24)
    usage = world.services.state.limits.usage[("eu", one.organization_id)]
    assert usage.peak_in_flight <= 5
    assert world.services.state.refused == []
    passed = ["succeeded (" in answer.all_text for answer in answers]
    assert sum(passed) >= 20
    for answer in answers:
        assert "succeeded (" in answer.all_text or "calls at once for" in answer.all_text


async def test_a_plan_is_set_by_admins_audited_and_in_force(world):
    one = organization_of(world)
    refused = await world.ask("U0APPROVER", "/ratelimits", f"plan {one.organization_id} premium")
    assert "You need the admin role to change a plan" in refused.all_text
    answer = await world.ask("U0ADMIN", "/ratelimits", f"plan {one.organization_id} premium")
    assert "is now on the *premium* plan, which allows" in answer.all_text
    assert "Until now, the organization was on the free plan." in answer.all_text
    assert "0/10,000" in (await world.ask("U0VIEWER", "/ratelimits", one.organization_id)).all_text
    entries, _ = await latest(world.bot.database, 10)
    assert ("plan.set", "U0ADMIN", f"eu/{one.organization_id}") in [
        (entry.action, entry.actor, entry.subject) for entry in entries
    ]


async def test_the_plan_of_the_settings_is_in_force(sqlite_url):
    one = ServicesState().data_centers["eu"].organizations[0]
    plans = f'{{"eu/{one.organization_id}": "standard"}}'
    async with running_world(sqlite_url, inventory_plans=plans, **SETTINGS) as world:
        shown = await world.ask("U0VIEWER", "/ratelimits", one.organization_id)
    assert "0/2,000" in shown.all_text
    assert "0/10" in shown.all_text


@pytest.mark.parametrize(
    ("reserve", "state", "told"),
    [
        ('{"*": {"minute": 99}}', "minute limit reached", "99 calls reserved for other programs"),
        ('{"*": {"day": 999}}', "day limit reached", "the daily limit is used up"),
    ],
)
async def test_calls_left_to_others_are_no_room(sqlite_url, reserve, state, told):
    async with running_world(sqlite_url, inventory_reserve=reserve, **SETTINGS) as world:
        one = organization_of(world).organization_id
        await world.ask("U0OPERATOR", "/ratelimits", f"check {one}")
        assert "was sent" in (await world.ask("U0OPERATOR", "/ratelimits", f"check {one}")).all_text
        overview = await world.ask("U0VIEWER", "/ratelimits")
        shown = (await world.ask("U0VIEWER", "/ratelimits", one)).all_text
    assert f"1/1,000 day, 0/5 at once, {state}" in overview.text
    assert f"*{state.capitalize()}*" in shown
    assert told in shown


async def test_the_services_daily_numbers_apply(world):
    world.services.state.limits.rules.tells_day = True
    one = organization_of(world)
    at = ("eu", one.organization_id)
    world.services.state.limits.usage[at].day.extend([world.services.state.now()] * 40)
    await world.ask("U0OPERATOR", "/ratelimits", f"check {one.organization_id}")
    shown = await world.ask("U0VIEWER", "/ratelimits", one.organization_id)
    assert "41/1,000" in shown.all_text
    assert "reported by the service" in shown.all_text


async def test_unknown_text_is_explained(world):
    for typed, said in (
        ("check", "Which organization?"),
        ("plan 1 gold", "The last word must be a plan"),
        ("plan", "Which organization, and which plan"),
        ("no such organization", "No organization is called"),
        ("chekc 10234695", "Example: `/ratelimits 10234695`"),
        ("check nobody", "Usage: `/ratelimits check &lt;org&gt;`"),
        ("plan nobody free", "Usage: `/ratelimits plan &lt;org&gt; &lt;plan&gt;`"),
    ):
        assert said in (await world.ask("U0ADMIN", "/ratelimits", typed)).all_text


async def test_part_of_a_name_finds_an_organization_but_changes_none(world):
    await world.ask("U0ADMIN", "/orgs")
    calls = len(world.services.state.calls)
    assert "*Tailspin Toys*" in (await world.ask("U0ADMIN", "/ratelimits", "tailsp")).text
    for typed in ("plan tailsp premium", "check tailsp"):
        answer = await world.ask("U0ADMIN", "/ratelimits", typed)
        assert "No organization is called “tailsp”." in answer.text
    # Its first word is a symbol, so only a search finds the name.
    answer = await world.ask("U0ADMIN", "/ratelimits", "check cactus")
    assert answer.buttons == ["🌵 Cactus & Co (com)"]
    assert len(world.services.state.calls) == calls
    assert "plan free" in (await world.ask("U0ADMIN", "/ratelimits", "tailspin toys")).all_text


@pytest.mark.parametrize(("typed", "said"), [("", "ID `20077315`"), ("check ", "succeeded (")])
async def test_who_fits_several_chooses_one_of_them(world, typed, said):
    answer = await world.ask("U0OPERATOR", "/ratelimits", f"{typed}northwind traders")
    await world.slack.click(
        "U0OPERATOR", answer, "Pick an organization…", "Northwind Traders (eu/20077315)"
    )
    assert said in (await world.answer("U0OPERATOR", after=1)).all_text


async def test_an_id_of_two_data_centers_is_no_dead_end(world):
    one = organization_of(world)
    world.services.state.set_organizations("jp", [replace(one, name="Her twin")])
    answer = await world.ask("U0ADMIN", "/ratelimits", one.organization_id)
    assert f"Her twin (jp/{one.organization_id})" in answer.text
    answer = await world.ask("U0ADMIN", "/ratelimits", f"plan jp/{one.organization_id} premium")
    assert "*Her twin* is now on the *premium* plan" in answer.text


async def test_the_metrics_tell_use_and_limit_of_every_organization(world):
    called, idle = world.services.state.data_centers["eu"].organizations[:2]
    await world.ask("U0VIEWER", "/orgs")
    await world.ask("U0OPERATOR", "/ratelimits", f"check {called.organization_id}")
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{world.slack.bot_url}/metrics") as answer,
    ):
        lines = (await answer.text()).splitlines()

    def labels(organization, limit):
        return f'{{data_center="eu",limit="{limit}",organization="{organization}"}}'

    for limit, most in (("minute", 100.0), ("day", 1000.0), ("concurrent", 5.0)):
        used = 0.0 if limit == "concurrent" else 1.0
        assert f"gatehouse_quota_used{labels(called.organization_id, limit)} {used}" in lines
        assert f"gatehouse_quota_limit{labels(called.organization_id, limit)} {most}" in lines
        assert f"gatehouse_quota_used{labels(idle.organization_id, limit)} 0.0" in lines
