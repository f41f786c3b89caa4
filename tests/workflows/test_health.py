"""Tests that each fault is reported, and that the alert is cleared when the fault ends."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from bot.checks.health import HEALTH_JOB, Health
from bot.checks.rules import Finding, Part, well
from bot.errors import DatabaseUnavailable
from bot.metrics import Metrics
from bot.organizations.rules import Directory
from bot.services.calls import ServiceLog
from bot.store import jobs, outbox
from bot.store.job_loop import Lease
from bot.store.jobs import Job

APPROVALS, ALERTS = "C0APPROVALS", "C0ALERTS"


class NoOrganizations:
    async def known(self) -> Directory:
        return Directory(())


@pytest.fixture
def shared(database, clock):
    settings = SimpleNamespace(approvals_channel=APPROVALS, alerts_channel=ALERTS)
    return SimpleNamespace(
        settings=settings,
        database=database,
        clock=clock,
        metrics=Metrics(),
        directory=NoOrganizations(),
    )


@pytest.fixture
def health(shared):
    return Health(shared)


def parts(health) -> list[Part]:
    return [trouble.part for trouble in health.troubles()]


def lost(part: Part) -> list[Finding]:
    return [Finding(part, "channel_archived", "C1 is archived. Choose another channel.")]


def test_socket_is_deaf_after_a_minute_without_a_connection(health, clock):
    health.note_socket(connected=False)
    clock.advance(59)
    health.note_socket(connected=False)
    assert parts(health) == []
    clock.advance(1)
    health.note_socket(connected=False)
    assert (parts(health), health.missing()) == ([Part.SOCKET], "slack")
    health.note_socket(connected=True)
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
        return [message for key in keys for message in (await outbox.waiting(tx, key)).messages]


async def due(database) -> list[Job]:
    async with database.transaction() as tx:
        return [job for job in await jobs.claim(tx, "me", 10) if job.kind == HEALTH_JOB]


async def test_a_lasting_problem_is_one_message(shared, health, database, clock):
    processes = (health, Health(shared))
    for process in processes:
        process.note(lost(Part.APPROVALS_CHANNEL))
    await health.tell()
    assert await cards(database) == []
    clock.advance(60)
    for process in processes:
        await process.tell()
    (message,) = await cards(database)
    shown = await health.card(None, message)
    assert shown.channel_id == ALERTS
    assert "Needs attention: the approvals channel" in (await shown.draw()).text
    for _ in range(10):
        clock.advance(30)
        await health.tell()
        assert await due(database) == []
    health.note([well(Part.APPROVALS_CHANNEL, "")])
    clock.advance(91)
    await health.tell()
    (job,) = await due(database)
    await health.end(job, Lease(database, "me", job))
    opened, ended = await cards(database)
    assert opened.key == ended.key
    assert "Working again" in (await (await health.card(None, ended)).draw()).text
    assert await due(database) == []


@pytest.mark.parametrize(("up", "is_over"), [(89, False), (91, True)])
async def test_trouble_is_not_over_just_because_nobody_looked(shared, clock, up, is_over):
    before = Health(shared)
    before.note(lost(Part.APPROVALS_CHANNEL))
    clock.advance(60)
    await before.tell()
    # The process is stopped for a while, and the fault persists.
    clock.advance(120)
    (job,) = await due(shared.database)
    restarted = Health(shared)
    clock.advance(up)
    again_at = await restarted.end(job, Lease(shared.database, "me", job))
    assert (again_at is None) == is_over
    assert len(await cards(shared.database)) == 1 + is_over


async def test_trouble_that_comes_back_is_a_message_of_its_own(health, database, clock):
    for _ in range(2):
        health.note(lost(Part.APPROVALS_CHANNEL))
        clock.advance(60)
        await health.tell()
        health.note([well(Part.APPROVALS_CHANNEL, "")])
        clock.advance(120)
        (job,) = await due(database)
        await health.end(job, Lease(database, "me", job))
    assert len({message.key for message in await cards(database)}) == 2


@pytest.fixture
def services(clock):
    return ServiceLog(clock.now, ["inventory (eu)", "flow"])


@pytest.fixture
def report(database, services, clock, monkeypatch):
    async def three(_tx):
        return 3

    monkeypatch.setattr("bot.checks.health.count_pending", three)
    shared = SimpleNamespace(
        database=database,
        services=services,
        clock=clock,
        metrics=Metrics(),
        directory=NoOrganizations(),
    )
    return Health(shared)


async def test_the_last_success_and_the_last_failure_are_both_kept(services, clock):
    services.note("flow", None)
    succeeded_at = clock.now()
    clock.advance(5)
    services.note("flow", "timeout")
    seen = services.seen()[1]
    assert (seen.succeeded_at, seen.failed_at) == (succeeded_at, clock.now())
    assert seen.failure == "timeout"
    clock.advance(5)
    services.note("flow", None)
    assert services.seen()[1].succeeded_at == clock.now()
    assert services.seen()[1].failure == "timeout"


@pytest.mark.parametrize(
    ("name", "failures", "is_failing"),
    [
        ("email", ["credentials_refused"], True),
        ("email", ["permission_missing"], False),
        ("email", ["service_failed"], True),
        ("email", ["timeout"], True),
        ("email", ["wrong_form"], True),
        ("email", ["timeout", "cancelled", "service_refused"], True),
        ("email", ["timeout", None, "service_refused"], False),
        ("oauth (eu)", ["service_refused"], True),
        # The service blocks one organization, not the data center.
        ("inventory (eu)", ["rate_limited"], False),
    ],
)
async def test_a_persons_mistake_does_not_count_against_a_service(
    clock, name, failures, is_failing
):
    services = ServiceLog(clock.now, [name])
    for failure in failures:
        services.note(name, failure)
    [seen] = services.seen()
    assert seen.is_failing is is_failing


async def test_the_status_counts_jobs_and_what_else_there_is(report, database, clock):
    for key, due in (("a", -120), ("b", -5), ("c", 60)):
        async with database.transaction() as tx:
            due_at = await tx.now() + timedelta(seconds=due)
            await jobs.put(tx, Job(key, "x", "x", due_at))
    clock.advance(90)
    status = await report.status()
    assert (status.jobs.waiting, status.jobs.due, status.jobs.late) == (3, 3, 2)
    counts = {"open_incidents": 0, "pending_requests": 3, "undelivered_messages": 0}
    assert status.counts == counts
    assert status.uptime_seconds == 90


async def test_a_database_that_is_away_is_part_of_the_status(report, database, monkeypatch):
    def away(_):
        raise DatabaseUnavailable

    monkeypatch.setattr(type(database), "read_only", away)
    status = await report.status()
    assert status.jobs is None
    assert len(status.services) == 2
