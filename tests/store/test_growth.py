"""No command, page, job, cleanup or start reads all of a table that grows with use."""

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import aiohttp
import pytest
from sqlalchemy import Engine, Table, TextClause, event, text

from bot.app import PRUNES
from bot.flows.tables import flow_lists
from bot.gateway.clients import token_hash
from bot.ops.clock import SystemClock
from bot.store.engine import Database
from bot.store.retention import Retention
from bot.store.tables import audit_entries, audit_head, cards, jobs, outbox_messages
from bot.testusers.tables import request_people, requests
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.state import Flow
from tests.conftest import BOTH
from tests.support.world import ADA, ADAM, OTTO, SURVEY, World, empty_world

REQUESTS, ACCESS, ENTRIES, MESSAGES, LISTS = 100_000, 12_000, 400_000, 200_000, 2_000
FIRST = 1_000
RETAIN_DAYS = 400
# The oldest requests have just become too old to be kept.
APART = (RETAIN_DAYS + 1) * 86_400_000_000 // REQUESTS
LARGE = {
    table.name
    for table in (requests, request_people, audit_entries, outbox_messages, jobs, flow_lists, cards)
}
ALIASES = {"present", "undo"}
# The metrics include the number of all jobs.
ALL_JOBS = "SELECT count(*) AS count_1, count(*) FILTER (WHERE jobs."
RULE = {"auto": {"from": [OTTO], "longest": "4h", "a_day": 2}}
CLIENTS = {"ci": {"token_sha256": token_hash("ci"), "owner": OTTO, "flows": ["welcome"]}}
# One of fifty flows and one of fifty people are known to the bot.
SID = f"FW{'0' * 30}"
FLOW = f"CASE WHEN n % 50 = 0 THEN '{SURVEY}' ELSE '{SID}' || (10 + n % 50) END"
PERSON = f"CASE WHEN n % 50 < 2 THEN '{OTTO}' ELSE 'U' || (n % 50) END"
OVER = f"CASE WHEN n > {ACCESS} THEN 'ended' END"
PARAMETER_SETS = 4
EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE")


async def fill(world: World) -> None:
    """Copy the rows of an applied request, of its list and of its messages very often.

    SQLite plans its queries without knowing how many rows there are, so it gets only a few.
    """
    card = await world.asked("add welcome +15550100 for 9h")
    await world.approve(card, "*Applied*")
    await world.told(OTTO, "Applied")
    earlier = {name: f"{name} - n * {APART}" for name in ("created_at", "decided_at", "at")}
    sent = {"sent_at": f"sent_at - n * {APART} / 2"}
    its, next_id = "'r' || n", f"{FIRST} + n"
    copies: list[tuple[Table, int, dict[str, str]]] = [
        (requests, REQUESTS, {"id": its, "flow_sid": FLOW, "requester_id": PERSON, **earlier}),
        (
            request_people,
            REQUESTS,
            {"request_id": its, "person": its, "spelling": "'\"+' || n || '\"'", "over": OVER},
        ),
        (flow_lists, LISTS, {"id": next_id, **earlier}),
        (cards, REQUESTS, {"key": "'request:r' || n", **sent}),
        (outbox_messages, MESSAGES, {"id": next_id, "key": "key || n", "subject": its, **sent}),
        (jobs, ACCESS, {"key": "'timer:r' || n", "subject": its}),
        (audit_entries, ENTRIES, {"position": next_id, "subject": its}),
    ]
    async with world.bot.database.migrating() as tx:
        for table, count, changed in copies:
            few = count if tx.is_postgres else count // 200
            await tx.connection.execute(copying(table, few, {"flow_key": FLOW, **changed}))
        await tx.connection.execute(audit_head.update().values(position=FIRST + ENTRIES))
        if tx.is_postgres:
            await tx.connection.execute(text("SELECT setval('outbox_messages_id_seq', 1000000)"))
            await tx.connection.execute(text("SELECT setval('flow_lists_id_seq', 1000000)"))
            await tx.connection.execute(text("ANALYZE"))


def copying(table: Table, count: int, changed: dict[str, str]) -> TextClause:
    """Return a statement that adds copies of a table's first row, with changed columns."""
    columns = ", ".join(table.c.keys())
    values = ", ".join(changed.get(name, name) for name in table.c.keys())  # noqa: SIM118
    return text(
        "WITH RECURSIVE numbers(n) AS"  # noqa: S608 - the names of tables and columns
        f" (SELECT CAST(1 AS BIGINT) UNION ALL SELECT n + 1 FROM numbers WHERE n < {count}),"
        f" one AS (SELECT * FROM {table.name} LIMIT 1)"
        f" INSERT INTO {table.name} ({columns}) SELECT {values} FROM one, numbers"
    )


@contextmanager
def recorded() -> Iterator[dict[str, list[Any]]]:
    """Record all statements with the first of their parameters."""
    seen = defaultdict[str, list[Any]](list)

    def note(connection, _cursor, statement, parameters, _context, is_many):
        seen_with = seen[statement]
        if len(seen_with) < PARAMETER_SETS:
            seen_with.append(parameters[0] if is_many else parameters)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(Engine, "before_cursor_execute", note)


async def use(world: World) -> None:
    """Do everything that people, Slack and the clock do with the bot."""
    slack, ask = world.slack, world.ask
    world.flow.identities[:] = ["+15550100"]
    for nth in range(50):
        sid = f"{SID}{10 + nth}" if nth else SURVEY
        on_list = [f"+{n}" for n in range(1, ACCESS + 1) if n % 50 == nth]
        world.services.state.flows[sid] = Flow(sid, on_list)
    for user, command, words in (
        (OTTO, "/testusers", "list survey"),
        (OTTO, "/testusers", "history survey"),
        (OTTO, "/testusers", "requests"),
        (OTTO, "/testusers", "mine"),
        (OTTO, "/testusers", "review"),
        (OTTO, "/testusers", "review survey"),
        (OTTO, "/testusers", "presets"),
        (OTTO, "/orgs", ""),
        (OTTO, "/ratelimits", ""),
        (OTTO, "/gatehouse", "whoami"),
        (OTTO, "/gatehouse", "status"),
        (ADAM, "/gatehouse", "audit 50"),
    ):
        await ask(user, command, words)
    for user in (OTTO, ADA):
        await slack.open_home(user)
        await slack.until(lambda user=user: slack.workspace.homes.get(user))
    card = await world.asked("add welcome +15550101 for 2h")
    await world.approve(card, "*Applied*")
    await world.click(OTTO, card, "Undo")
    await world.click(OTTO, await world.card(1), "Cancel")
    card = await world.asked("remove welcome +15550101")
    await slack.click(ADA, card, "Deny")
    await slack.submit(ADA, await world.form(ADA), {"Reason": "no"})
    await world.shows(card, "Denied")
    await extend(world)
    await retry(world)
    await ask(OTTO, "/testusers", "add survey +15550102 for 2h")
    await world.told(OTTO, "approved by an automatic rule")
    await ask_by_program(world)
    await world.service._scrape()
    await Retention(world.bot.database, RETAIN_DAYS, PRUNES).run(None, None)


async def extend(world: World) -> None:
    """Ask for a longer access with the form that a button opens."""
    before = len(world.cards())
    mine = await world.ask(OTTO, "/testusers", "mine")
    await world.slack.click(OTTO, mine, "Extend")
    await world.slack.submit(OTTO, await world.form(), {})
    await world.card(before)


async def retry(world: World) -> None:
    """Apply a change that the service refuses at first."""
    refusal = Fault(FaultKind.STATUS, "flow", method="POST", status=400)
    world.services.state.faults.add(refusal)
    card = await world.asked("add welcome +15550103 for 2h")
    await world.approve(card, "Failed")
    refusal.lift()
    await world.click(ADA, card, "Retry")
    await world.shows(card, "*Applied*")


async def ask_by_program(world: World) -> None:
    """Ask for a change as a program does, twice, and read what came of it."""
    url = f"{world.bot.inventory.gateway.addresses[0]}/testusers"
    async with aiohttp.ClientSession(headers={"Authorization": "Bearer ci"}) as session:
        for _ in range(2):
            async with session.post(url, data=b"add welcome +15550104 for 2h") as answer:
                request_id = (await answer.json())["request"]
        async with session.get(f"{url}/{request_id}") as answer:
            assert (await answer.json())["state"] == "pending"


def reads_all(statement: str, line: str) -> bool:
    """Return True if a line of a plan says that all rows of a large table are read."""
    if scan := re.search(r"Seq Scan on (\w+)", line):
        return scan[1] in LARGE
    scan = re.match(r"SCAN (\w+?)(?:_\d)?( USING.* INDEX (\w+))?$", line)
    if scan is None or scan[1] not in LARGE | ALIASES:
        return False
    # This index has only those who have access.
    return scan[3] != "ux_request_people_access" and not (scan[2] and "LIMIT" in statement)


async def plans_of(url: str, seen: dict[str, list[Any]]) -> dict[str, list[str]]:
    """Return the lines of the database's plans for each statement that was recorded."""
    plans = defaultdict[str, list[str]](list)
    database = Database(url, SystemClock())
    explain = "EXPLAIN QUERY PLAN" if database.is_sqlite else "EXPLAIN"
    async with database.read_only(sees_snapshot=False) as tx:
        for statement, sets in seen.items():
            if statement.startswith(EXPLAINED):
                for parameters in sets:
                    plan = f"{explain} {statement}"
                    rows = await tx.connection.exec_driver_sql(plan, parameters)
                    plans[statement] += [row[-1] for row in rows]
    await database.close()
    return plans


@pytest.mark.slow
@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_nothing_reads_all_of_a_large_table(database_url):
    settings = {
        "flow_policies": json.dumps({"survey": RULE}),
        "inventory_watch": "off",
        "gateway_port": "0",
        "gateway_clients": json.dumps(CLIENTS),
    }
    async with empty_world(database_url, **settings) as world:
        await fill(world)
    with recorded() as seen:
        async with empty_world(database_url, **settings) as world:
            await use(world)
    plans = await plans_of(database_url, seen)
    slow = {
        statement: plan
        for statement, plan in plans.items()
        if not statement.startswith(ALL_JOBS) and any(reads_all(statement, line) for line in plan)
    }
    assert not slow, "\n\n".join("\n".join([name, *plan]) for name, plan in slow.items())
