"""People can verify and export a running bot's audit log. The bot posts the last hash to Slack."""

import io
import json
import re

import pytest
from sqlalchemy import update

from bot.audit.reading import export_audit, verify_audit
from bot.ops.redaction import Redactor
from bot.store.tables import audit_entries, jobs
from tests.support.logs import log_into, logging_as_before
from tests.support.settings import read_settings
from tests.support.world import World, running_world

WELCOME = "FW00000000000000000000000000000001"


@pytest.fixture
async def world(sqlite_url):
    async with running_world(sqlite_url, inventory_watch="off", audit_witness="on") as world:
        yield world


async def approve_a_change(world: World) -> None:
    await world.ask("U0OPERATOR", "/testusers", "add welcome +15551111")
    card = (await world.slack.until(lambda: world.slack.workspace.messages("C0APPROVALS")))[0]
    await world.slack.click("U0APPROVER", card, "Approve")
    await world.shows(card, "Applied")


async def verified(world: World, head: str | None = None) -> int:
    return await verify_audit(read_settings(world.environment), head)


async def test_audit_of_a_change_is_intact_and_can_be_exported(world, capsys):
    await approve_a_change(world)
    assert await verified(world) == 0
    assert await export_audit(read_settings(world.environment), 0) == 0
    lines = [item for item in capsys.readouterr().out.splitlines() if item.startswith("{")]
    actions = [json.loads(line)["action"] for line in lines]
    assert actions[:2] == ["request.created", "request.approved"]


async def test_export_begins_after_any_number(world, capsys):
    assert await export_audit(read_settings(world.environment), 10**30) == 0
    assert capsys.readouterr().out == ""


async def test_each_entry_is_one_line_of_the_log(world, capsys):
    stream = io.StringIO()
    with logging_as_before():
        log_into(stream, "INFO", "json", Redactor())
        await approve_a_change(world)
    assert await export_audit(read_settings(world.environment), 0) == 0
    exported = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    logged = [json.loads(line) for line in stream.getvalue().splitlines()]
    logged = [line for line in logged if line["event"] == "audit"]
    known = {"time", "who", "action", "subject", "flow", "hash"}
    assert all({*line} == {*known, "event", "logger", "level", "timestamp"} for line in logged)
    assert [line["hash"] for line in logged] == [entry["hash"] for entry in exported]
    assert [line["who"] for line in logged[:2]] == ["U0OPERATOR", "U0APPROVER"]
    assert {line["flow"] for line in logged} == {WELCOME}


async def test_audit_has_the_end_of_access_that_was_asked_for(world):
    await world.ask("U0OPERATOR", "/testusers", "add welcome +1 until tomorrow 9:00")
    answer = await world.ask("U0ADMIN", "/gatehouse", "audit 1")
    assert re.search(r"until: `[0-9-]{10}T0[78]:00:00\+00:00`", answer.all_text)


async def test_posted_head_finds_an_entry_that_was_edited(world, capsys):
    await approve_a_change(world)
    async with world.bot.database.transaction() as tx:
        now = await tx.now()
        witness = update(jobs).where(jobs.c.key == "retain")
        await tx.connection.execute(witness.values(due_at=now))
    world.bot.jobs.wake()
    alerts = await world.slack.until(lambda: world.slack.workspace.messages("C0ALERTS"))
    head = re.findall(r"audit verify --head ([0-9a-f]{64})", alerts[0].all_text)[0]
    assert await verified(world, head) == 0
    async with world.bot.database.transaction() as tx:
        second = update(audit_entries).where(audit_entries.c.position == 2)
        await tx.connection.execute(second.values(actor="U0OPERATOR"))
    assert await verified(world, head) == 1
    assert "broken at entry 2" in capsys.readouterr().out
