"""`/gatehouse status`, and the audit as it is read."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from bot.checks.health import Health
from bot.checks.rules import Counted
from bot.errors import DatabaseUnavailable
from bot.metrics import Metrics
from bot.services.calls import ServiceLog
from bot.store import jobs
from bot.store.jobs import Job


@pytest.fixture
def services(clock):
    return ServiceLog(clock.now, ["inventory (eu)", "flow"])


@pytest.fixture
def report(database, services, clock):
    async def three(_tx):
        return 3

    shared = SimpleNamespace(
        database=database,
        services=services,
        clock=clock,
        metrics=Metrics(),
    )
    return Health(shared, {Counted.PENDING_REQUESTS: three})


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
    ],
)
async def test_what_one_person_asked_for_says_nothing_against_a_service(
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
    assert (status.jobs.total, status.jobs.due, status.jobs.late) == (3, 3, 2)
    assert status.counts == {Counted.PENDING_REQUESTS: 3}
    assert status.uptime_seconds == 90
    assert status.is_database_well


async def test_a_database_that_is_away_is_part_of_the_status(report, database, monkeypatch):
    def away(_):
        raise DatabaseUnavailable

    monkeypatch.setattr(type(database), "read_only", away)
    status = await report.status()
    assert (status.is_database_well, status.jobs) == (False, None)
    assert len(status.services) == 2
