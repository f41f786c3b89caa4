"""The bot posts one alert for each block, and updates the alert until a call succeeds."""

import asyncio
import json
import re

import pytest

from bot.quotas.incidents import WATCH_KIND
from bot.services.credentials import Credential
from bot.services.errors import ProviderThrottled
from bot.store import jobs
from bot.store.jobs import Job
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.limits import LimitRules
from sandbox.services.state import ServicesState
from tests.support.fleet import running_fleet
from tests.support.world import running_world

SETTINGS = {"commands_per_minute": "0", "inventory_watch": "off"}


@pytest.fixture
async def world(sqlite_url):
    async with running_world(sqlite_url, **SETTINGS) as world:
        await world.ask("U0VIEWER", "/orgs")
        yield world


def the_organization(world) -> tuple[str, str]:
    return "eu", world.services.state.data_centers["eu"].organizations[0].organization_id


async def check(world):
    return await world.ask("U0OPERATOR", "/ratelimits", f"check {the_organization(world)[1]}")


async def blocked(world, code=1070) -> tuple[str, str]:
    """Block the organization, and run a check so that the bot notices the block."""
    at = the_organization(world)
    world.services.state.limits.block(at, code)
    await check(world)
    return at


def alerts(world):
    return world.slack.workspace.messages("C0ALERTS")


async def the_alert(world, words=""):
    """Wait until the alert contains these words. There must be exactly one alert."""
    await world.slack.until(lambda: alerts(world) and words in alerts(world)[0].all_text)
    [message] = alerts(world)
    return message


def calls_to(world, at):
    calls = world.services.state.calls
    return [call for call in calls if (call.data_center, call.organization_id) == at]


@pytest.mark.parametrize(
    ("code", "limit"),
    [(44, "100 requests per minute"), (45, "1,000 requests per day"), (1070, "5 requests at once")],
)
async def test_the_first_429_opens_a_complete_alert(world, code, limit):
    at = the_organization(world)
    world.services.state.limits.block(at, code)
    assert "was blocked" in (await check(world)).all_text
    message = await the_alert(world)
    name = world.services.state.data_centers["eu"].organizations[0].name
    shown = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"*{shown}* (eu) is blocked" in message.text
    assert at[1] in message.text
    assert f"is blocked, because the limit of {limit} was exceeded." in message.text
    assert f"eu, code {code} · " in message.text
    words = world.services.state.limits._sentence(code, at)
    assert words in message.text
    assert "1/100 per minute, 1/1,000 per day, 1/5 at once" in message.text
    assert "another client" in message.text
    assert ("may be locked out too" in message.text) is (code == 44)
    assert re.search(r"will try again <!date\^\d+", message.text)
    assert message.buttons == ["Check now", "Mute 1 h"]
    assert "cleared" not in message.all_text.lower()


async def test_while_blocked_nobody_calls_and_check_answers_from_memory(world, monkeypatch):
    at = await blocked(world, 44)
    message = await the_alert(world)
    answer = (await check(world)).all_text
    assert ", so no call was made. Gatehouse will try again <!date^" in answer
    before = len(world.slack.workspace.ephemerals("U0OPERATOR"))
    await world.slack.click("U0OPERATOR", message, "Check now")
    assert "no call was made" in (await world.answer("U0OPERATOR", after=before)).all_text
    assert "*Blocked (44)* since" in (await world.ask("U0VIEWER", "/ratelimits", at[1])).all_text
    assert len(calls_to(world, at)) == 1

    async def throttled(_credential):
        raise ProviderThrottled("oauth", "The provider is receiving too many requests.")

    # Even a credential that must be renewed isn't needed for this answer.
    monkeypatch.setattr(Credential, "sign", throttled)
    assert "no call was made" in (await check(world)).all_text


async def test_passing_probe_clears_the_alert_and_tells_its_thread(world):
    at = await blocked(world)
    world.services.state.limits.lift(at)
    message = await the_alert(world)
    await the_alert(world, "*Cleared* after")
    [note] = await world.slack.until(lambda: world.slack.workspace.thread("C0ALERTS", message.ts))
    assert re.search(r"\*Cleared\* after \d+ s: calls to .* work again", note.text)
    assert message.buttons == []
    assert [call.status for call in calls_to(world, at)] == [429, 200]
    assert "succeeded (" in (await check(world)).all_text
    for text, blocks in message.versions[:-1]:
        assert "cleared" not in f"{text}{blocks}".lower()


async def test_refused_probe_raises_the_counter_and_doubles_the_pause(world):
    at = await blocked(world)
    await world.slack.until(lambda: len(calls_to(world, at)) == 3)
    first, second, third = (call.arrived_at for call in calls_to(world, at))
    assert second - first >= 2.0
    assert third - second >= 4.0
    message = await the_alert(world, "refused 3 times")
    assert len(alerts(world)) == 1
    updates = world.slack.workspace.calls_of("chat.update")
    assert len(updates) <= 2
    assert message.buttons == ["Check now", "Mute 1 h"]


async def test_a_probe_whose_answer_cannot_be_read_clears_nothing(world):
    at = await blocked(world)
    world.services.state.limits.lift(at)
    world.services.state.faults.add(
        Fault(FaultKind.TRUNCATED, "inventory", organization_id=at[1], times=1)
    )
    await the_alert(world, "*Cleared* after")
    assert [call.status for call in calls_to(world, at)] == [429, 200, 200]
    _, unread, passed = (call.arrived_at for call in calls_to(world, at))
    # Twice the previous two seconds, but not doubled again.
    assert 4.0 <= passed - unread < 8.0


async def test_muting_keeps_new_alerts_of_the_organization_away(world):
    at = await blocked(world)
    world.services.state.limits.lift(at)
    message = await the_alert(world)
    before = len(world.slack.workspace.ephemerals("U0VIEWER"))
    await world.slack.click("U0VIEWER", message, "Mute 1 h")
    assert "to refresh lists, check" in (await world.answer("U0VIEWER", after=before)).all_text
    before = len(world.slack.workspace.ephemerals("U0OPERATOR"))
    await world.slack.click("U0OPERATOR", message, "Mute 1 h")
    assert "are muted until" in (await world.answer("U0OPERATOR", after=before)).text
    await the_alert(world, "*Cleared* after")
    world.services.state.limits.block(at, 44)
    await check(world)
    assert "Blocked (44)" in (await world.ask("U0VIEWER", "/ratelimits", at[1])).all_text
    assert len(alerts(world)) == 1
    assert "Open incidents: 1" in (await world.ask("U0VIEWER", "/gatehouse", "status")).all_text


async def test_slack_answering_429_twice_loses_nothing(world):
    world.slack.workspace.faults.ratelimit("chat.postMessage", retry_after=1, times=2)
    world.services.state.limits.block(the_organization(world), 44)
    await check(world)
    await the_alert(world, "is blocked, because the limit of")
    assert len(alerts(world)) == 1


async def test_a_lost_answer_of_slack_does_not_repeat_the_alert(world):
    world.slack.workspace.faults.cut("chat.postMessage", times=1)
    world.services.state.limits.block(the_organization(world), 44)
    await check(world)
    await world.slack.until(lambda: len(world.slack.workspace.calls_of("chat.postMessage")) == 2)
    assert len(alerts(world)) == 1


async def test_a_delayed_alert_shows_the_state_when_it_is_sent(world):
    world.slack.workspace.faults.ratelimit("chat.postMessage", retry_after=4, times=1)
    world.services.state.limits.block(the_organization(world), 1070)
    await check(world)
    world.services.state.limits.lift(the_organization(world))
    message = await the_alert(world, "*Cleared* after")
    assert message.versions == []


@pytest.mark.slow
@pytest.mark.postgres
async def test_a_block_met_five_times_by_four_processes_is_one_message(postgres_url):
    state = ServicesState(rules=LimitRules(block_seconds=0))
    at = "eu", state.data_centers["eu"].organizations[0].organization_id
    async with running_fleet(postgres_url, 4, services=state, **SETTINGS) as fleet:
        await fleet.ask("U0VIEWER", "/orgs")
        # Five calls are under way when the service begins to refuse.
        late = state.faults.add(
            Fault(FaultKind.LATE, "inventory", organization_id=at[1], seconds=3.0)
        )
        asking = [
            asyncio.create_task(
                fleet.slack.command("U0OPERATOR", "C0GENERAL", "/ratelimits", f"check {at[1]}")
            )
            for _ in range(5)
        ]
        await state.until(lambda: late.struck == 5)
        state.limits.block(at, 1070)
        late.lift()
        await asyncio.gather(*asking)
        await fleet.slack.until(
            lambda: sum("was blocked" in item.text for item in fleet.seen_by("U0OPERATOR")) == 5,
        )
        await fleet.slack.until(lambda: fleet.slack.workspace.messages("C0ALERTS"))
        for process in fleet.processes[:2]:
            await process.kill()
        await fleet.add()
        fleet.slack.workspace.faults.ratelimit("chat.update", retry_after=1, times=2)
        state.limits.lift(at)
        await fleet.slack.until(lambda: "*Cleared*" in the_only_alert(fleet).text)
        refused = re.search(r"refused (\d+) times", json.dumps(the_only_alert(fleet).blocks))
        assert refused is not None
        # A killed process may have left the answer to its last call uncounted.
        assert 5 <= int(refused[1]) <= len(state.refused)
        await fleet.slack.until(
            lambda: fleet.slack.workspace.thread("C0ALERTS", the_only_alert(fleet).ts)
        )
        # A process that was killed between Slack's yes and its own record has its post repeated
        # under the same id, which Slack shows once.
        posted = fleet.slack.workspace.calls_of("chat.postMessage")
        assert len({item.args["client_msg_id"] for item in posted}) == 2
        assert fleet.tracebacks == []


def the_only_alert(fleet):
    [message] = fleet.slack.workspace.messages("C0ALERTS")
    return message


@pytest.mark.slow
async def test_use_block_and_alert_survive_kill_minus_nine(sqlite_url):
    state = ServicesState()
    at = "eu", state.data_centers["eu"].organizations[0].organization_id
    async with running_fleet(sqlite_url, 1, services=state, **SETTINGS) as fleet:
        await fleet.ask("U0OPERATOR", "/orgs")
        for _ in range(3):
            await fleet.ask("U0OPERATOR", "/ratelimits", f"check {at[1]}")
        state.limits.block(at, 44)
        await fleet.ask("U0OPERATOR", "/ratelimits", f"check {at[1]}")
        await fleet.slack.until(lambda: fleet.slack.workspace.messages("C0ALERTS"))
        calls = len(state.calls)
        await fleet.processes[0].kill()
        await fleet.add()
        answer = await fleet.ask("U0OPERATOR", "/ratelimits", f"check {at[1]}")
        assert "no call was made" in answer.all_text
        shown = await fleet.ask("U0OPERATOR", "/ratelimits", at[1])
        assert "4/1,000" in shown.all_text
        assert "*Blocked (44)* since" in shown.all_text
        assert len(state.calls) == calls
        assert "is blocked, because the limit of" in the_only_alert(fleet).text
        assert fleet.tracebacks == []


async def test_the_watcher_notices_a_block_with_nobody_asking(sqlite_url):
    async with running_world(sqlite_url, commands_per_minute="0") as world:
        await world.ask("U0VIEWER", "/orgs")
        state, before = world.services.state, len(world.services.state.calls)
        for name, center in state.data_centers.items():
            for organization in center.organizations:
                state.limits.block((name, organization.organization_id), 44)
        async with world.bot.database.transaction() as tx:
            await jobs.put(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, await tx.now()))
        world.bot.jobs.wake()
        assert "another client" in (await the_alert(world, "is blocked, because the limit of")).text
        assert len(state.calls) == before + 1
