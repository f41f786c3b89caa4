"""What is broken is known, told, and forgotten when it works again."""

from datetime import timedelta
from types import SimpleNamespace

import pytest

from bot.checks.clock_watch import ClockWatch
from bot.checks.health import Health
from bot.checks.health_alerts import HEALTH_JOB, HealthAlerts
from bot.checks.health_watch import HealthWatch
from bot.checks.rules.health import Part
from bot.errors import SlackRefused
from bot.store import jobs, outbox
from bot.store.causes import DISK_FULL
from bot.store.job_loop import Lease
from bot.store.jobs import Job

CHANNELS = {Part.APPROVALS_CHANNEL: "C0APPROVALS", Part.ALERTS_CHANNEL: "C0ALERTS"}
DATE = "Mon, 02 Mar 2026 09:00:00 GMT"


@pytest.fixture
def health(clock):
    health = Health(clock, CHANNELS)
    health.meet("T0OURS")
    return health


def parts(health) -> list[Part]:
    return [trouble.part for trouble in health.troubles()]


class FakeSlack:
    """Slack, with the channels as they are now."""

    def __init__(self) -> None:
        self.channels = {name: {"is_member": True} for name in CHANNELS.values()}

    async def who_am_i(self) -> SimpleNamespace:
        return SimpleNamespace(answered_at=DATE, scopes=frozenset())

    async def channel(self, channel_id: str):
        if channel_id not in self.channels:
            raise SlackRefused("channel_not_found")
        return self.channels[channel_id]


@pytest.mark.parametrize("error", ["invalid_auth", "token_revoked", "account_inactive"])
def test_revoked_token_is_known_until_a_call_is_taken(health, error):
    health.note_slack("chat_update", error, None)
    assert (parts(health), health.missing()) == ([Part.SLACK_TOKEN], "slack")
    health.note_slack("auth_test", None, None)
    assert parts(health) == []


def test_token_of_socket_mode_says_nothing_of_the_bots(health):
    health.note_slack("apps_connections_open", "invalid_auth", None)
    assert parts(health) == []


def test_channel_that_refuses_posts_leaves_the_bot_ready(health):
    health.note_slack("chat_postMessage", "not_in_channel", "C0APPROVALS")
    (trouble,) = health.troubles()
    assert trouble.part is Part.APPROVALS_CHANNEL
    assert "C0APPROVALS" in trouble.sentence
    assert "/invite" in trouble.sentence
    assert health.missing() is None
    health.note_slack("chat_postMessage", None, "C0APPROVALS")
    assert parts(health) == []


def test_direct_message_that_is_refused_is_no_trouble(health):
    health.note_slack("chat_postMessage", "channel_not_found", "U0SOMEBODY")
    assert parts(health) == []


def test_socket_is_deaf_after_a_minute_without_a_connection(health, clock):
    health.note_socket(is_connected=False)
    clock.advance(59)
    health.note_socket(is_connected=False)
    assert parts(health) == []
    clock.advance(1)
    health.note_socket(is_connected=False)
    assert (parts(health), health.missing()) == ([Part.SOCKET], "slack")
    health.note_socket(is_connected=True)
    assert parts(health) == []


def test_database_comes_before_slack_in_what_is_missing(health):
    health.note_slack("auth_test", "invalid_auth", None)
    health.note_database(DISK_FULL)
    assert health.missing() == "database"


@pytest.fixture
def alerts(database, clock):
    return HealthAlerts(database, CHANNELS, clock)


@pytest.fixture
def watch(health, alerts, database, clock):
    slack = FakeSlack()
    watch = HealthWatch(health, alerts, slack, database, CHANNELS, clock)
    watch.slack = slack
    return watch


async def test_channels_that_cannot_be_posted_to_are_found_by_looking(health, watch):
    del watch.slack.channels["C0APPROVALS"]
    watch.slack.channels["C0ALERTS"] = {"is_archived": True}
    await watch.look_at_channels()
    assert parts(health) == [Part.APPROVALS_CHANNEL, Part.ALERTS_CHANNEL]
    watch.slack.channels = FakeSlack().channels
    await watch.look_at_channels()
    assert parts(health) == []


async def test_clocks_are_compared_by_the_time_of_slacks_answers(health, watch, monkeypatch):
    compared = []

    async def compare(_watch, date, _asked_at):
        compared.append(date)

    monkeypatch.setattr(ClockWatch, "compare", compare)
    await watch.look_at_token()
    assert compared == [DATE]


async def test_writing_is_tried(health, watch):
    await watch.look_at_database()
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
    health, alerts, database, clock
):
    health.note_channel(Part.APPROVALS_CHANNEL, "not_in_channel")
    await alerts.tell(health.troubles())
    assert await cards(database) == []
    clock.advance(60)
    other = HealthAlerts(database, CHANNELS, clock)
    for teller in (alerts, other):
        await teller.tell(health.troubles())
    (message,) = await cards(database)
    shown = await alerts.card(message)
    assert shown.channel_id == "C0ALERTS"
    assert "Needs attention: the approvals channel" in shown.message.text
    for _ in range(10):
        clock.advance(30)
        await alerts.tell(health.troubles())
        assert await due(database) == []
    health.note_channel(Part.APPROVALS_CHANNEL, None)
    clock.advance(91)
    await alerts.tell(health.troubles())
    (job,) = await due(database)
    await alerts.end(job, Lease(database, "me", job))
    opened, ended = await cards(database)
    assert opened.key == ended.key
    assert "Working again" in (await alerts.card(ended)).message.text
    assert await due(database) == []


async def test_trouble_that_comes_back_is_a_message_of_its_own(health, alerts, database, clock):
    for _ in range(2):
        health.note_socket(is_connected=False)
        clock.advance(60)
        health.note_socket(is_connected=False)
        clock.advance(60)
        await alerts.tell(health.troubles())
        health.note_socket(is_connected=True)
        clock.advance(120)
        (job,) = await due(database)
        await alerts.end(job, Lease(database, "me", job))
    assert len({message.key for message in await cards(database)}) == 2


async def test_alerts_channel_that_is_lost_is_told_in_the_other(health, alerts, database, clock):
    health.note_channel(Part.ALERTS_CHANNEL, "is_archived")
    clock.advance(61)
    await alerts.tell(health.troubles())
    (message,) = await cards(database)
    assert (await alerts.card(message)).channel_id == "C0APPROVALS"


async def test_job_that_fails_for_a_minute_is_late(database, clock):
    async with database.transaction() as tx:
        await jobs.put(tx, Job("a", "x", "x", await tx.now()))
    for tries in range(6):
        async with database.transaction() as tx:
            (job,) = await jobs.claim(tx, "me", 1)
            assert (await jobs.count(tx)).late == 0
            again_at = await tx.now() + timedelta(seconds=min(2.0**tries, 20))
            await jobs.fail(tx, "me", job, again_at, "Slack refused: invalid_auth.")
        clock.advance(min(2.0**tries, 20))
    async with database.read_only() as tx:
        assert (await jobs.count(tx)).late == 1
