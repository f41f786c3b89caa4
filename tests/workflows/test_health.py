"""What is broken is known, reported, and forgotten when it works again."""

from types import SimpleNamespace

import pytest

from bot.checks.findings import Finding, well
from bot.checks.health import HEALTH_JOB, Health
from bot.checks.rules import Part
from bot.metrics import Metrics
from bot.store import jobs, outbox
from bot.store.job_loop import Lease
from bot.store.jobs import Job

APPROVALS, ALERTS = "C0APPROVALS", "C0ALERTS"


@pytest.fixture
def shared(database, clock):
    settings = SimpleNamespace(approvals_channel=APPROVALS, alerts_channel=ALERTS)
    return SimpleNamespace(settings=settings, database=database, clock=clock, metrics=Metrics())


@pytest.fixture
def health(shared):
    return Health(shared, {})


def parts(health) -> list[Part]:
    return [trouble.part for trouble in health.troubles()]


def lost(setting: str) -> list[Finding]:
    return [Finding(setting, "channel_archived", "C1 is archived. Choose another channel.")]


def test_socket_is_deaf_after_a_minute_without_a_connection(health, clock):
    health.note([health._socket(is_connected=False)])
    clock.advance(59)
    health.note([health._socket(is_connected=False)])
    assert parts(health) == []
    clock.advance(1)
    health.note([health._socket(is_connected=False)])
    assert (parts(health), health.missing()) == ([Part.SOCKET], "slack")
    health.note([health._socket(is_connected=True)])
    assert parts(health) == []


async def cards(database) -> list[outbox.OutboxMessage]:
    async with database.read_only() as tx:
        keys = await tx.connection.run_sync(
            lambda connection: [
                row[0]
                for row in connection.exec_driver_sql(
                    "SELECT DISTINCT key FROM outbox_messages"
                    " WHERE kind = 'health.card' ORDER BY key"
                )
            ]
        )
        return [message for key in keys for message in await outbox.waiting(tx, key)]


async def due(database) -> list[Job]:
    async with database.transaction() as tx:
        return [job for job in await jobs.claim(tx, "me", 10) if job.kind == HEALTH_JOB]


async def test_what_stays_broken_is_one_message_until_nobody_sees_it(
    shared, health, database, clock
):
    processes = (health, Health(shared, {}))
    for process in processes:
        process.note(lost("APPROVALS_CHANNEL"))
    await health.tell()
    assert await cards(database) == []
    clock.advance(60)
    for process in processes:
        await process.tell()
    (message,) = await cards(database)
    shown = await health.card(message)
    assert shown.channel_id == ALERTS
    assert "Needs attention: the approvals channel" in shown.message.text
    for _ in range(10):
        clock.advance(30)
        await health.tell()
        assert await due(database) == []
    health.note([well("APPROVALS_CHANNEL", "")])
    clock.advance(91)
    await health.tell()
    (job,) = await due(database)
    await health.end(job, Lease(database, "me", job))
    opened, ended = await cards(database)
    assert opened.key == ended.key
    assert "Working again" in (await health.card(ended)).message.text
    assert await due(database) == []


async def test_trouble_that_comes_back_is_a_message_of_its_own(health, database, clock):
    for _ in range(2):
        health.note(lost("APPROVALS_CHANNEL"))
        clock.advance(60)
        await health.tell()
        health.note([well("APPROVALS_CHANNEL", "")])
        clock.advance(120)
        (job,) = await due(database)
        await health.end(job, Lease(database, "me", job))
    assert len({message.key for message in await cards(database)}) == 2
