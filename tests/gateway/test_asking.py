"""Programs ask for changes over real HTTP, and people decide in Slack."""

import asyncio
import json
import os
import re
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import aiohttp
import pytest

from bot.gateway.clients import token_hash
from bot.settings import SettingsError
from bot.store import audit
from sandbox.services.faults import Fault, FaultKind
from tests.support.needs import needs
from tests.support.settings import LEAST, read_settings
from tests.support.world import ADA, ADAM, OTTO, SURVEY, VERA, World, empty_world

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/ask.py"
CLIENTS = {
    "ci": {"owner": OTTO, "flows": ["welcome"]},
    "other": {"owner": OTTO, "flows": ["welcome", SURVEY]},
    "auto": {"owner": OTTO, "flows": ["welcome"], "auto": True},
    "ada": {"owner": ADA, "flows": ["welcome"]},
    "vera": {"owner": VERA, "flows": ["welcome"]},
    "plain": {"organizations": "*"},
}
ASKS = "add welcome +15550142 for 2h because OPS-7"
AUTO = {"auto": {"from": [OTTO], "longest": "4h", "a_day": 5}}


def clients(**changed) -> str:
    known = {**CLIENTS, **changed}
    return json.dumps(
        {
            name: {"token_sha256": token_hash(name), **client}
            for name, client in known.items()
            if client is not None
        }
    )


@dataclass
class Answer:
    status: int
    headers: dict
    body: dict

    @property
    def message(self) -> str:
        return self.body["message"]


@dataclass
class Script:
    """A program that calls the gateway."""

    world: World
    session: aiohttp.ClientSession

    async def call(self, method="POST", path="/testusers", client="ci", **rest) -> Answer:
        url = self.world.bot.inventory.gateway.addresses[0]
        headers = {"Authorization": f"Bearer {client}", **rest.pop("headers", {})}
        sent = self.session.request(method, f"{url}{path}", headers=headers, **rest)
        async with sent as answer:
            assert answer.headers["Gatehouse-Answered"] == "gateway"
            assert answer.content_type == "application/json"
            return Answer(answer.status, dict(answer.headers), await answer.json())

    async def ask(self, text=ASKS, client="ci", **rest) -> Answer:
        return await self.call(client=client, data=text.encode(), **rest)

    async def look(self, request_id: str, client="ci") -> Answer:
        return await self.call("GET", f"/testusers/{request_id}", client)

    async def refusals(self) -> list[dict]:
        async with self.world.bot.database.read_only() as tx:
            entries = await audit.latest(tx, 100)
        return [json.loads(one.detail) for one in entries if one.action == "permission.refused"]


@asynccontextmanager
async def running(database_url, **settings):
    """Run a bot without data centers, and a program."""
    own = {
        "gateway_port": "0",
        "gateway_clients": clients(),
        "inventory_data_centers": "{}",
        "commands_per_minute": "0",
    }
    async with (
        empty_world(database_url, **{**own, **settings}) as world,
        aiohttp.ClientSession() as session,
    ):
        yield Script(world, session)


@pytest.fixture
async def script(sqlite_url):
    async with running(sqlite_url) as script:
        yield script


def policy(**keys) -> dict[str, str]:
    return {"flow_policies": json.dumps({"welcome": keys})}


async def test_a_program_asks_a_person_decides_and_it_happens_once(script):
    world = script.world
    asked = await script.ask()
    assert (asked.status, asked.body["state"]) == (202, "pending")
    assert asked.message == "Waiting for approval: add +15550142 to welcome for 2 h."
    card = await world.card()
    assert "Otto Operator (through *ci*) wants to add" in card.text
    await world.approve(card, "*Applied*", "Otto Operator (through *ci*)")
    told = await script.look(asked.body["request"])
    assert told.status == 200
    assert told.body["state"] == "applied"
    assert told.body["decided_by"] == "Ada Approver"
    assert told.body["reason"] is None
    assert told.message.startswith("Applied: add +15550142 to welcome until 2")
    assert told.message.endswith(" UTC.")
    assert len(world.flow.history) == 1
    await world.told(OTTO, "(through *ci*)")
    answer = await world.ask(OTTO, "/testusers", "history welcome")
    assert "Otto Operator (through *ci*)" in answer.all_text
    answer = await world.ask(ADAM, "/gatehouse", "audit 9")
    assert "client: `ci`" in answer.all_text


async def test_a_denial_and_its_reason_are_told(script):
    asked = await script.ask()
    card = await script.world.card()
    await script.world.slack.click(ADA, card, "Deny")
    form = await script.world.form(ADA)
    await script.world.slack.submit(ADA, form, {"Reason": "not today"})
    await script.world.shows(card, "*Denied*")
    told = await script.look(asked.body["request"])
    assert (told.body["state"], told.body["decided_by"]) == ("denied", "Ada Approver")
    assert told.body["reason"] == "not today"
    assert "Ada" not in told.message


async def test_nothing_to_change_makes_no_request(script):
    script.world.flow.identities.append("+15550142")
    answer = await script.ask("add welcome +15550142")
    assert (answer.status, answer.body["request"]) == (200, None)
    assert "There's nothing to change on welcome" in answer.message
    assert "Already on the list: +15550142" in answer.message


async def test_the_same_text_is_the_same_request(script):
    first = await script.ask()
    assert (await script.ask()).body == first.body
    assert (await script.ask(f"{ASKS}\n")).body == first.body
    card = await script.world.card()
    await script.world.approve(card, "*Applied*")
    again = await script.ask()
    assert again.status == 202
    assert again.body["request"] == first.body["request"]
    assert again.body["state"] == "applied"
    assert len(script.world.cards()) == 1


async def test_a_repeat_stands_for_ten_minutes_and_as_long_as_the_request_is_open(script):
    world = script.world
    first = await script.ask()
    await world.later(timedelta(minutes=11))
    assert (await script.ask()).body["request"] == first.body["request"]
    await world.slack.click(OTTO, await world.card(), "Cancel")
    await world.shows(await world.card(), "*Cancelled*")
    later = await script.ask()
    assert later.body["request"] != first.body["request"]


@asynccontextmanager
async def two_running(postgres_url):
    """Run two bots that share a database, and a program that calls both."""
    async with running(postgres_url) as one:
        two = {"gateway_port": "0", "gateway_clients": clients(), "inventory_data_centers": "{}"}
        async with empty_world(postgres_url, **two) as world, aiohttp.ClientSession() as session:
            yield one, Script(world, session)


async def test_two_processes_store_the_same_text_once(postgres_url):
    async with two_running(postgres_url) as both:
        answers = await asyncio.gather(*(each.ask() for each in both * 8))
        assert {answer.status for answer in answers} == {202}
        assert len({answer.body["request"] for answer in answers}) == 1


async def test_two_processes_audit_the_same_refusal_once(postgres_url):
    async with two_running(postgres_url) as both:
        answers = await asyncio.gather(*(each.ask("add survey +1") for each in both * 4))
        assert {answer.status for answer in answers} == {403}
        assert len(await both[0].refusals()) == 1


async def test_what_is_asked_another_way_is_a_request_of_its_own(script):
    world = script.world
    first = await script.ask()
    answer = await world.ask(OTTO, "/testusers", ASKS)
    assert "Other open requests for the same people" in answer.all_text
    assert "by Otto Operator (through *ci*)" in answer.all_text
    third = await script.ask(client="other")
    assert third.body["request"] != first.body["request"]
    assert third.message.count("add +15550142 to welcome for 2 h") == 3
    assert "Otto" not in third.message
    assert "OPS-7" not in third.message
    assert "by Otto Operator (through *ci*)" in (await world.card(2)).all_text


async def test_the_owner_cannot_approve_what_their_program_asked_for(sqlite_url):
    async with running(sqlite_url) as script:
        await script.ask(client="ada")
        card = await script.world.card()
        answer = await script.world.click(ADA, card, "Approve")
        assert "You can't approve your own request." in answer.all_text
        assert script.world.flow.history == []


async def test_only_a_client_with_auto_gets_an_automatic_approval(sqlite_url):
    async with running(sqlite_url, **policy(**AUTO)) as script:
        assert (await script.ask()).body["state"] == "pending"
        answer = await script.ask("add welcome +2 for 2h", client="auto")
        assert answer.body["state"] in ("applying", "applied")
        await script.world.until(lambda: "+2" in script.world.flow.identities)
        told = await script.look(answer.body["request"], "auto")
        assert told.body["decided_by"] == "an automatic rule"
        assert "+15550142" not in script.world.flow.identities


async def test_a_request_is_known_only_to_the_client_that_made_it(script):
    asked = await script.ask()
    request_id = asked.body["request"]
    for client in ("other", "ada"):
        assert (await script.look(request_id, client)).status == 404
    for unknown in ("", "0", "..", "%00", "a" * 33, f"{request_id}/x"):
        assert (await script.look(unknown)).status == 404
    assert (await script.call("GET", "/testusers")).status == 405


@pytest.mark.parametrize(
    "text",
    [
        "",
        "list welcome",
        "requests",
        "add welcome",
        "add welcome +1 now because urgent",
        "add welcome vera",
        "add welcome +1 for ever",
        "add welcome @nobody",
        "add welcome +1 until 2020-01-01",
        f"add welcome +1 because {'x' * 501}",
        f"add welcome {'+1 ' * 4000}",
    ],
)
async def test_mistakes_in_the_text_are_400(script, text):
    answer = await script.ask(text)
    assert answer.status == 400
    assert answer.message
    assert script.world.cards() == []


async def test_other_bodies_are_400(script):
    assert (await script.call(data=b"add welcome \xff")).status == 400
    assert (await script.call(json=ASKS)).status == 400
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert (await script.ask(headers=headers)).status == 400
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    assert (await script.ask(headers=headers)).status == 202


async def test_text_is_read_as_it_was_typed(script):
    await script.ask("add welcome +1 because a < b &amp; <!channel> *c*")
    assert "a &lt; b &amp;amp; &lt;!channel&gt;" in (await script.world.card()).all_text


async def test_a_bot_that_does_not_know_its_workspace_yet_is_503(script):
    script.world.bot.slack.people.team_id = None
    assert (await script.ask("add welcome +1")).status == 503


async def test_refusals_have_one_order(sqlite_url):
    async with running(sqlite_url, **policy(requesters=[OTTO], longest="1d")) as script:
        assert (await script.ask(client="nobody")).status == 401
        for method, path, allow in (
            ("PUT", "/testusers", "POST"),
            ("GET", "/testusers", "POST"),
            ("POST", "/testusers/abc", "GET"),
        ):
            answer = await script.call(method, path, "plain", data=b"x" * 70_000)
            assert (answer.status, answer.headers["Allow"]) == (405, allow)
        large = await script.ask("x" * 70_000, client="plain")
        assert large.status == 413
        for client, text in (
            ("plain", "nonsense"),
            ("ci", "add survey +1"),
            ("ci", "add unknown +1"),
            ("ada", ASKS),
            ("vera", ASKS),
            ("ci", "add welcome +1 for 2d"),
            ("ci", "add welcome +1"),
        ):
            answer = await script.ask(text, client)
            assert answer.status == 403, text
            assert "Otto" not in answer.message
        assert (await script.ask("nonsense", "vera")).status == 400
        survey, unknown = [await script.ask(f"add {name} +1") for name in ("survey", "unknown")]
        assert survey.message == unknown.message
        assert script.world.cards() == []


async def test_a_refusal_is_audited_once_a_minute_for_a_client_and_reason(script):
    for _ in range(3):
        await script.ask("add survey +1")
        await script.ask(client="plain")
    refusals = await script.refusals()
    assert sorted(one["client"] for one in refusals) == ["ci", "plain"]
    await script.world.later(timedelta(seconds=61))
    await script.ask("add survey +1")
    assert len(await script.refusals()) == 3


async def test_a_missing_reason_is_400_and_the_warning_is_told(sqlite_url):
    async with running(sqlite_url, **policy(reason="required", warning="a *b* & <c>")) as script:
        answer = await script.ask("add welcome +1")
        assert answer.status == 400
        assert answer.message.startswith("Changes to this flow need a reason.")
        assert (await script.ask()).message.endswith("for 2 h. a *b* & <c>")


async def test_a_program_has_a_pace_of_its_own(sqlite_url):
    async with running(sqlite_url, commands_per_minute="2") as script:
        first = await script.ask()
        await script.ask()
        answer = await script.ask()
        assert answer.status == 429
        assert 1 <= int(answer.headers["Retry-After"]) <= 61
        found = [(await script.look(first.body["request"])).status for _ in range(5)]
        assert found == [200, 200, 200, 200, 429]
        assert (await script.ask(client="other")).status == 202


async def test_a_program_has_at_most_ten_open_requests(script):
    for number in range(10):
        answer = await script.ask(f"add welcome +{1000 + number}")
        assert answer.status == 202
    answer = await script.ask("add welcome +2000")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "60")
    assert (await script.ask("nonsense")).status == 429
    assert (await script.ask("add welcome +1000")).status == 202
    assert (await script.ask("add welcome +2000", client="other")).status == 202


async def test_nobody_can_approve_is_told(sqlite_url):
    async with running(sqlite_url, **policy(approvers=[OTTO])) as script:
        assert "Nobody can approve this now." in (await script.ask()).message


async def test_unavailable_services_are_503(script):
    faults = script.world.services.state.faults
    faults.add(Fault(FaultKind.STATUS, "flow", method="GET", status=500))
    answer = await script.ask()
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert (await script.ask("add survey +1")).status == 403


async def test_an_owner_whom_slack_does_not_tell_about_is_503(script):
    script.world.slack.workspace.faults.status("users.info", 500, times=20)
    answer = await script.ask()
    assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    assert await script.refusals() == []


async def test_an_unknown_owner_is_403_and_audited_once(sqlite_url):
    gone = {"owner": "U0GONE", "flows": ["welcome"]}
    async with running(sqlite_url, gateway_clients=clients(gone=gone)) as script:
        assert [(await script.ask(client="gone")).status for _ in range(2)] == [403, 403]
        assert len(await script.refusals()) == 1


async def test_a_missing_reason_comes_before_an_unknown_owner(sqlite_url):
    gone = {"owner": "U0GONE", "flows": ["welcome"]}
    asks = {"gateway_clients": clients(gone=gone), **policy(reason="required")}
    async with running(sqlite_url, **asks) as script:
        assert (await script.ask("add welcome +1", client="gone")).status == 400


async def change_clients(world: World, **changed) -> None:
    """Let the bot run with other clients, as after a restart with other settings."""
    settings = read_settings({**world.environment, "GATEWAY_CLIENTS": clients(**changed)})
    object.__setattr__(world.bot.testusers, "settings", settings)


@pytest.mark.parametrize(
    "changed", [None, {"owner": ADA, "flows": ["welcome"]}, {"owner": OTTO, "flows": ["survey"]}]
)
async def test_a_pending_request_of_a_client_that_may_no_longer_ask_is_cancelled(script, changed):
    await script.ask()
    card = await script.world.card()
    await change_clients(script.world, ci=changed)
    answer = await script.world.click(ADA, card, "Approve")
    said = "Otto Operator (through ci) may no longer ask for changes to this flow."
    assert said in answer.all_text
    await script.world.shows(card, "*Cancelled* by Gatehouse")
    assert script.world.flow.history == []


async def test_what_was_approved_is_not_stopped(script):
    await script.ask()
    faults, card = script.world.services.state.faults, await script.world.card()
    faults.add(Fault(FaultKind.STATUS, "flow", method="POST", status=503))
    await script.world.approve(card, "*Updating the list*")
    await change_clients(script.world, ci=None)
    assert script.world.flow.history == []
    faults.lift()
    await script.world.shows(card, "*Applied*")
    assert script.world.flow.history == [["+15550142"]]


@pytest.mark.parametrize(
    ("client", "problem"),
    [
        ({"owner": OTTO}, "needs both owner and flows, or neither"),
        ({"flows": ["welcome"], "organizations": "*"}, "needs both owner and flows, or neither"),
        ({}, "needs organizations, or owner and flows"),
        ({"organizations": "*", "auto": True}, "auto needs owner and flows"),
        ({"owner": "S0TEAM", "flows": ["welcome"]}, "is not a user ID"),
        ({"owner": "*", "flows": ["welcome"]}, "is not a user ID"),
        ({"owner": OTTO, "flows": ["welcom"]}, "neither an alias nor a flow SID"),
        ({"owner": OTTO, "flows": []}, "must not be empty"),
        ({"owner": OTTO, "flows": ["welcome"], "auto": 1}, "must be"),
    ],
)
def test_wrong_settings_of_a_client_are_named(client, problem):
    client = {"token_sha256": token_hash("ci"), **client}
    aliases = json.dumps({"welcome": SURVEY})
    wrong = {**LEAST, "FLOW_ALIASES": aliases, "GATEWAY_CLIENTS": json.dumps({"ci": client})}
    with pytest.raises(SettingsError) as caught:
        read_settings(wrong)
    assert problem in str(caught.value)


async def run_example(script: Script, *arguments: str, client: str = "ci") -> tuple[int, str]:
    environment = {
        "GATEWAY_URL": script.world.bot.inventory.gateway.addresses[0],
        "GATEWAY_TOKEN": client,
        "PAUSE_SECONDS": "0.05",
        "WAIT_SECONDS": "20",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        EXAMPLE,
        *arguments,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def test_example_asks_and_waits_for_the_outcome(script):
    running = asyncio.create_task(run_example(script, *ASKS.split()))
    await script.world.approve(await script.world.card(), "*Applied*")
    code, output = await running
    assert code == 0
    assert "Applied: add +15550142 to welcome" in output
    assert (await run_example(script, "remove welcome +19 because again"))[0] == 0


async def test_example_tells_a_refusal_and_a_denial_apart(script):
    assert (await run_example(script, "add survey +1"))[0] == 2
    running = asyncio.create_task(run_example(script, ASKS))
    card = await script.world.card()
    await script.world.slack.click(OTTO, card, "Cancel")
    code, output = await running
    assert (code, "Cancelled: add" in output) == (1, True)


async def test_curl_commands_of_the_page_ask_and_read_the_outcome(script):
    page = (ROOT / "docs/gateway.md").read_text("utf-8")
    asks, reads = re.findall(r"^(curl .*/testusers.*)$", page, re.MULTILINE)
    bash, _ = needs("bash"), needs("curl")
    address = script.world.bot.inventory.gateway.addresses[0]

    async def run(command: str, **variables: str) -> dict:
        process = await asyncio.create_subprocess_exec(
            bash,
            "-c",
            command.replace("http://127.0.0.1:3001", address),
            env={**os.environ, "GATEWAY_TOKEN": "ci", **variables},
            stdout=asyncio.subprocess.PIPE,
        )
        return json.loads((await process.communicate())[0])

    asked = await run(asks)
    told = await run(reads, REQUEST_ID=asked["request"])
    assert told == {**asked, "decided_by": None, "reason": None}
