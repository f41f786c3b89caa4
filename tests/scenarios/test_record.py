"""Who writes the database without AUDIT_KEY gets nothing applied, and is told of."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import select, update

from bot.model.signatures import NO_SEAL
from bot.ops.audit_cli import export_audit, rotate_audit_key, verify_audit
from bot.ops.clock import SystemClock
from bot.settings import read_settings
from bot.store.engine import Database
from bot.store.tables import jobs, requests
from tests.support.world import World, running_world

KEY = "the-key-of-the-audit-in-tests"
WELCOME = "FW00000000000000000000000000000001"


@pytest.fixture
async def world(url, monkeypatch):
    monkeypatch.setattr("bot.workflows.record_watch.EVERY", timedelta(seconds=0.2))
    async with running_world(url, audit_key=KEY, inventory_watch="off") as world:
        yield world


@pytest.fixture
async def intruder(world: World):
    """Somebody with the database's password, and without the key."""
    database = Database(world.environment["DATABASE_URL"], SystemClock(), seal=NO_SEAL)
    yield database
    await database.close()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request):
    return request.getfixturevalue(f"{request.param}_url")


async def write(database, statement):
    async with database.transaction() as tx:
        return await tx.connection.execute(statement)


async def asked(world: World) -> str:
    await world.ask("U0OPERATOR", "/testusers", "add welcome +15551111")
    async with world.bot.database.read_only() as tx:
        return str(await tx.connection.scalar(select(requests.c.id)))


async def alerted(world: World, words: str):
    def found():
        texts = [one.all_text for one in world.slack.workspace.messages("C0ALERTS")]
        return [text for text in texts if words in text]

    return await world.slack.until(found)


def listed(world: World) -> list[str]:
    return world.services.state.flows[WELCOME].identities


async def verified(world: World) -> int:
    return await verify_audit(read_settings(world.environment), None)


async def test_edited_change_is_not_applied(world, intruder, capsys):
    before = list(listed(world))
    request_id = await asked(world)
    async with intruder.read_only() as tx:
        stored = await tx.connection.scalar(select(requests.c.requested))
    stored["change"]["additions"] = ["+19996666"]
    await write(intruder, update(requests).values(requested=stored))
    await alerted(world, request_id)
    card = world.slack.workspace.messages("C0APPROVALS")[0]
    await world.slack.until(lambda: "was edited in the database" in card.all_text)
    assert card.buttons == []
    assert listed(world) == before
    assert await verified(world) == 1
    assert f"request {request_id}" in capsys.readouterr().out


async def test_state_and_job_made_up_apply_nothing(world, intruder):
    before = list(listed(world))
    request_id = await asked(world)
    async with intruder.read_only() as tx:
        now = await tx.now()
    await write(intruder, update(requests).values(state="applying"))
    key = {"key": f"apply:{WELCOME}", "kind": "testusers.apply", "subject": WELCOME}
    values = {**key, "payload": {}, "due_at": now, "generation": 1, "tries": 0}
    await write(intruder, jobs.insert().values(values))
    await alerted(world, request_id)
    await alerted(world, f"apply:{WELCOME}")
    assert listed(world) == before
    assert await verified(world) == 1


async def test_click_made_up_in_an_approvers_name_approves_nothing(world, intruder):
    before = list(listed(world))
    request_id = await asked(world)
    async with intruder.read_only() as tx:
        now = await tx.now()
    payload = {
        "act": "approve",
        "request_id": request_id,
        "slack_user_id": "U0APPROVER",
        "team_ids": ["T0GATEHOUSE"],
        "reply_to": "",
        "denial_reason": "",
    }
    key = {"key": "interaction:1", "kind": "testusers.interaction", "subject": request_id}
    values = {**key, "payload": payload, "due_at": now, "generation": 1, "tries": 0}
    await write(intruder, jobs.insert().values(values))
    await alerted(world, "interaction:1")
    async with intruder.read_only() as tx:
        assert await tx.connection.scalar(select(requests.c.state)) == "pending"
    assert listed(world) == before


async def test_record_is_whole_after_an_honest_change(world, capsys):
    await asked(world)
    card = await world.slack.until(lambda: world.slack.workspace.messages("C0APPROVALS"))
    await world.slack.click("U0APPROVER", card[0], "Approve")
    await world.slack.until(lambda: "+15551111" in listed(world))
    await world.slack.until(lambda: "Applied" in card[0].all_text)
    assert await verified(world) == 0
    assert await export_audit(read_settings(world.environment), 1) == 0
    lines = [one for one in capsys.readouterr().out.splitlines() if one.startswith("{")]
    actions = [json.loads(line)["action"] for line in lines]
    assert actions[:2] == ["request.created", "request.approved"]


async def test_rotated_key_is_good_for_the_next_start(url, capsys):
    async with running_world(url, audit_key=KEY, inventory_watch="off") as world:
        await asked(world)
        environment = world.environment
    assert await rotate_audit_key(read_settings(environment), "") == 0
    new_key = capsys.readouterr().out.split()[-1]
    settings = {"audit_key": new_key, "inventory_watch": "off"}
    async with running_world(url, **settings) as world:
        await world.ask("U0APPROVER", "/testusers", "requests")
        assert await verified(world) == 0
