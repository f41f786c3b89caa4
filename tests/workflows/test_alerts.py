"""Tests the jobs that belong to an alert, such as the probe at the end of a pause."""

from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest

from bot.errors import DatabaseUnavailable, NotConfigured, QuotaExhausted
from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
)
from bot.permissions import Person
from bot.quotas import messages as ui
from bot.quotas.guard import Guard
from bot.quotas.incidents import Alerts, Probes
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import accounts, incidents
from bot.services.calls import CallCause
from bot.services.errors import RateLimited, ServiceFailed, ServiceRefused
from bot.slack.sender import Outgoing
from bot.store import audit, jobs, outbox
from bot.store.engine import Database
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage, SentCard
from bot.tasks import Tasks

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE)
OTTO = Person("U0OPERATOR", "Otto")


@dataclass
class FakeLease:
    database: Database

    async def confirm(self) -> None:
        pass


class FakeDirectory:
    def __init__(self, inventory) -> None:
        self.call = inventory.organizations
        self.listings = ()

    async def known(self) -> Directory:
        return Directory(self.listings)


class FakeInventory:
    """A fake inventory that uses the real guard and returns the responses that a test sets."""

    data_centers = ("eu",)

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.calls: list[CallCause] = []
        self.error: Exception | None = None
        # Raised before the guard is used, as if a credential could not be renewed.
        self.unsigned: Exception | None = None
        self.during: Callable[[], Awaitable[None]] | None = None
        self.listing: list[object] = ["the listing"]

    async def organizations(self, key, cause):
        if self.unsigned is not None:
            raise self.unsigned
        async with self._guard.call(key, cause) as grant:
            self.calls.append(cause)
            if self.during is not None:
                await self.during()
            await grant.responded()
            if isinstance(self.error, RateLimited):
                await grant.refused(self.error)
            if self.error is not None:
                raise self.error
        return self.listing


@pytest.fixture
def inventory(database, clock) -> FakeInventory:
    return FakeInventory(Guard(database, clock, TERMS, Tasks()))


@pytest.fixture
def directory(inventory) -> FakeDirectory:
    return FakeDirectory(inventory)


@pytest.fixture
def alerts(database, directory) -> Alerts:
    return Alerts(database, directory, "C0ALERTS")


async def be_refused(inventory, code=44) -> None:
    inventory.error = RateLimited("inventory", "Declined.", code=code, message="words")
    with pytest.raises(RateLimited):
        await inventory.organizations(KEY, CallCause("list", "U1"))
    inventory.error = None


async def the_job(database, key="probe:1") -> Job:
    async with database.transaction() as tx:
        [job] = [item for item in await jobs.claim(tx, "me", 50) if item.key == key]
    return job


async def probe(database, directory):
    job = await the_job(database)
    again_at = await Probes(directory, TERMS).run(job, FakeLease(database))
    async with database.transaction() as tx:
        await jobs.finish(tx, "me", job, again_at and jobs.Again(again_at))
    return again_at


async def probe_in_vain(database, directory, error) -> None:
    """Run a probe that fails, and then finish the job, as the job loop would."""
    job = await the_job(database)
    with pytest.raises(type(error)):
        await Probes(directory, TERMS).run(job, FakeLease(database))
    async with database.transaction() as tx:
        await jobs.finish(tx, "me", job, jobs.Again(await tx.now(), job.tries + 1))


async def next_try(database) -> float | None:
    async with database.read_only() as tx:
        longest = (await accounts.load(tx, KEY, TERMS)).blocks.longest
        return longest and longest.until


async def count_open(database) -> int:
    async with database.read_only() as tx:
        return len(await incidents.all_open(tx))


async def test_data_center_that_is_gone_is_not_blocked_for_ever(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    clock.advance(60)
    inventory.unsigned = NotConfigured("the inventory service", ["INVENTORY_DATA_CENTERS"])
    assert await probe(database, directory) is None
    assert await next_try(database) is None
    assert await count_open(database) == 0
    async with database.read_only() as tx:
        incident = await incidents.load(tx, "1")
    card, note = (
        ui.incident_card(incident, "Acme"),
        ui.cleared_note(incident, incident.closed_at, "Acme"),
    )
    assert "no longer in the settings" in card.text
    assert "Cleared" not in card.text + note.text


async def test_organization_that_is_gone_is_not_blocked_for_ever(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    inventory.error = ServiceRefused("inventory", "Unknown.", status=404)
    clock.advance(60)
    # The listing is unknown, so the organization may still exist.
    await probe_in_vain(database, directory, inventory.error)
    other = Organization(organization_id="11", name="Other")
    listing = Listing("eu", (other,), clock.now())
    directory.listings = (DataCenterReport("eu", listing),)
    clock.advance(120)
    assert await probe(database, directory) is None
    assert await next_try(database) is None
    async with database.read_only() as tx:
        incident = await incidents.load(tx, "1")
    assert "*Closed*" in ui.incident_card(incident, "Acme").text
    assert (
        "no longer listed by the service"
        in ui.cleared_note(incident, incident.closed_at, "Acme").text
    )


async def test_a_passing_probe_that_the_database_did_not_take_is_made_again(
    database, clock, inventory, directory, monkeypatch
):
    await be_refused(inventory)
    clock.advance(60)

    async def break_down():
        @asynccontextmanager
        async def broken():
            raise DatabaseUnavailable
            yield

        monkeypatch.setattr(database, "transaction", broken)

    inventory.during = break_down
    job = await the_job(database)
    with pytest.raises(DatabaseUnavailable):
        await Probes(directory, TERMS).run(job, FakeLease(database))
    monkeypatch.undo()
    inventory.during = None
    async with database.transaction() as tx:
        await jobs.release_all(tx)
    # No process knows yet that the call has ended.
    again_at = await probe(database, directory)
    assert again_at == clock.now() + timedelta(seconds=15)
    clock.advance(15)
    assert await probe(database, directory) is None
    assert await count_open(database) == 0


async def card_now(database, alerts, message) -> Outgoing | None:
    async with database.read_only() as tx:
        return await alerts.card(tx, message)


async def note_now(database, alerts, message) -> Outgoing | None:
    async with database.read_only() as tx:
        return await alerts.note(tx, message)


async def text_now(database, alerts, message) -> str:
    return (await (await card_now(database, alerts, message)).draw()).text


async def posted(database, clock) -> None:
    async with database.transaction() as tx:
        card = SentCard("incident:1", "C0ALERTS", "1.1", 1, clock.now())
        await outbox.record_card(tx, card, None)


async def test_open_alert_is_edited_every_ten_seconds_at_most(
    database, clock, inventory, directory, alerts
):
    await be_refused(inventory)
    message = OutboxMessage("incident:1", "incident_card", "1")
    card = await card_now(database, alerts, message)
    assert (card.channel_id, card.edit_seconds) == ("C0ALERTS", 10.0)
    clock.advance(60)
    await probe(database, directory)
    assert (await card_now(database, alerts, message)).edit_seconds == 0.0
    assert await note_now(database, alerts, message) is None
    await posted(database, clock)
    assert (await note_now(database, alerts, message)).thread_of == message.key
    await be_refused(inventory)
    assert await note_now(database, alerts, message) is None


async def test_during_a_mute_a_new_alert_is_held_back_until_a_test_call_after_it(
    database, clock, inventory, directory, alerts
):
    await be_refused(inventory)
    await posted(database, clock)
    await alerts.mute(OTTO, "1")
    clock.advance(60)
    await probe(database, directory)
    await be_refused(inventory, 45)
    assert await card_now(database, alerts, card_of(2)) is None
    clock.advance(3600)
    inventory.error = ServiceFailed("inventory", "It is down.")
    await probe_in_vain(database, directory, inventory.error)
    async with database.read_only() as tx:
        assert {item.subject for item in (await outbox.waiting(tx, "incident:2")).messages} == {"2"}
    assert await card_now(database, alerts, card_of(2)) is not None


async def test_the_audit_says_who_muted(database, clock, inventory, alerts):
    await be_refused(inventory)
    await posted(database, clock)
    await alerts.mute(OTTO, "1")
    assert "muted by Otto until" in await text_now(database, alerts, card_of(1))
    async with database.read_only() as tx:
        [entry] = await audit.latest(tx, 1)
    assert (entry.actor, entry.action, entry.subject) == ("U0OPERATOR", "alert.muted", "eu/10")


async def test_a_test_call_without_a_free_slot_is_made_later(database, clock, inventory, directory):
    await be_refused(inventory)
    clock.advance(60)
    inventory.unsigned = QuotaExhausted("Full.", limit_kind="minute")
    await probe_in_vain(database, directory, inventory.unsigned)
    assert await next_try(database) == clock.now().timestamp() + 120
    inventory.unsigned = None
    clock.advance(120)
    assert await probe(database, directory) is None
    assert await count_open(database) == 0


def card_of(number: int) -> OutboxMessage:
    return OutboxMessage(f"incident:{number}", "incident_card", str(number))
