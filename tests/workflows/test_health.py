"""What is broken is known, reported, and forgotten when it works again."""

from types import SimpleNamespace

import pytest

from bot.checks.findings import Finding, well
from bot.checks.health import HEALTH_JOB, Health
from bot.checks.rules import Part
from bot.checks.slack import slack_token
from bot.errors import SlackRateLimited, SlackRefused, SlackUnreachable
from bot.metrics import Metrics
from bot.slack.manifest import SCOPES
from bot.store import jobs, outbox
from bot.store.job_loop import Lease
from bot.store.jobs import Job

APPROVALS, ALERTS = "C0APPROVALS", "C0ALERTS"


class FakeSlack:
    """Slack, as it is now."""

    def __init__(self) -> None:
        self.error = None
        self.scopes = frozenset(SCOPES)
        self.channels = {
            name: {"is_member": True, "is_private": True} for name in (APPROVALS, ALERTS)
        }

    async def who_am_i(self) -> SimpleNamespace:
        if self.error:
            raise self.error
        return SimpleNamespace(team_id="T1", team_name="T", answered_at="", scopes=self.scopes)

    async def channel(self, channel_id: str):
        if channel_id not in self.channels:
            raise SlackRefused("channel_not_found")
        return self.channels[channel_id]


@pytest.fixture
def shared(database, clock):
    settings = SimpleNamespace(approvals_channel=APPROVALS, alerts_channel=ALERTS)
    return SimpleNamespace(
        settings=settings, database=database, clock=clock, slack=FakeSlack(), metrics=Metrics()
    )


@pytest.fixture
def health(shared):
    return Health(shared, {})


def parts(health) -> list[Part]:
    return [trouble.part for trouble in health.troubles()]


def lost(setting: str) -> list[Finding]:
    return [Finding(setting, "channel_archived", "C1 is archived. Choose another channel.")]


@pytest.mark.parametrize(
    ("error", "broken", "missing"),
    [
        (SlackRefused("token_revoked"), [Part.SLACK_TOKEN], "slack"),
        (SlackRefused("internal_error"), [], None),
        (SlackUnreachable(), [Part.SLACK_API], None),
        (SlackRateLimited(3), [], None),
    ],
)
async def test_what_slack_answers_is_told_apart(shared, health, error, broken, missing):
    shared.slack.error = error
    await health.look(slack_token)
    assert (parts(health), health.missing()) == (broken, missing)
    shared.slack.error = None
    await health.look(slack_token)
    assert parts(health) == []


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


async def test_alerts_channel_that_is_lost_is_told_in_the_other(health, database, clock):
    health.note(lost("ALERTS_CHANNEL"))
    clock.advance(61)
    await health.tell()
    (message,) = await cards(database)
    assert (await health.card(message)).channel_id == APPROVALS
