"""The jobs behind an alert: the one call at the end of a pause, and what a mute holds back."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from bot.errors import (
    NotConfigured,
    NotFound,
    OrganizationBlocked,
    QuotaExhausted,
    RateLimited,
    ServiceFailed,
)
from bot.model.calls import PROBE, CallCause
from bot.model.directory import Directory
from bot.model.organization import OrganizationKey
from bot.model.plans import Plan
from bot.model.quota import Terms
from bot.permissions import Person
from bot.store import incidents, jobs, outbox
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.store.jobs import Job
from bot.store.outbox import Letter, SentCard
from bot.workflows.alerts import Alerts, Probes
from bot.workflows.guard import Guard
from bot.workflows.incidents import Incidents
from bot.workflows.outbox import CardNow

KEY = OrganizationKey("eu", "10")
TERMS = Terms(lambda _key: Plan.FREE, timeout_seconds=10.0)
OTTO = Person("U0OPERATOR", "Otto")


@dataclass
class FakeLease:
    database: Database

    async def confirm(self) -> None:
        pass


class FakeDirectory:
    def __init__(self) -> None:
        self.accepted = []

    async def known(self) -> Directory:
        return Directory(())

    async def accept(self, key, found) -> None:
        self.accepted.append((key, found))


class FakeInventory:
    """Asks the real guard, and answers as it is told."""

    data_centers = ("eu",)

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self.calls: list[CallCause] = []
        self.error: Exception | None = None

    async def organizations(self, key, cause):
        if isinstance(self.error, (NotConfigured, QuotaExhausted)):
            raise self.error
        async with self._guard.call(key, cause) as grant:
            self.calls.append(cause)
            await grant.responded()
            if isinstance(self.error, RateLimited):
                await grant.refused(self.error)
            if self.error is not None:
                raise self.error
        return ["the listing"]


@pytest.fixture
def inventory(database, clock) -> FakeInventory:
    return FakeInventory(Guard(database, clock, TERMS, Incidents(TERMS, lambda: None)))


@pytest.fixture
def directory() -> FakeDirectory:
    return FakeDirectory()


@pytest.fixture
def alerts(database, directory) -> Alerts:
    return Alerts(database, AuditStore(None), directory, "C0ALERTS", lambda: None)


async def be_refused(inventory, code=44) -> None:
    inventory.error = RateLimited("inventory", "Declined.", code=code, message="words")
    with pytest.raises(RateLimited):
        await inventory.organizations(KEY, CallCause("list", "U1"))
    inventory.error = None


async def the_job(database, key="probe:1") -> Job:
    async with database.transaction() as tx:
        [job] = [one for one in await jobs.claim(tx, "me", 50) if one.key == key]
    return job


async def probe(database, inventory, directory):
    job = await the_job(database)
    return await Probes(inventory, directory).run(job, FakeLease(database))


async def count_open(database) -> int:
    async with database.reading() as tx:
        return await incidents.count_open(tx)


async def test_the_probe_is_due_when_the_pause_ends(database, clock, inventory):
    await be_refused(inventory)
    clock.advance(59.9)
    async with database.transaction() as tx:
        assert "probe" not in {job.kind for job in await jobs.claim(tx, "me", 50)}
    clock.advance(0.2)
    assert (await the_job(database)).subject == "eu/10"


async def test_a_probe_that_passes_ends_it_and_brings_a_listing(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    clock.advance(60)
    assert await probe(database, inventory, directory) is None
    assert [cause.kind for cause in inventory.calls] == ["list", PROBE]
    assert directory.accepted == [(KEY, ["the listing"])]
    assert await count_open(database) == 0
    async with database.reading() as tx:
        letters = await outbox.waiting(tx, "incident:1")
    assert [letter.kind for letter in letters][-2:] == ["incident_card", "incident_note"]


async def test_a_probe_that_is_refused_is_set_again_twice_as_late(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    clock.advance(60)
    inventory.error = RateLimited("inventory", "Declined.", code=44, message="words")
    with pytest.raises(RateLimited):
        await probe(database, inventory, directory)
    clock.advance(119)
    async with database.transaction() as tx:
        assert not [one for one in await jobs.claim(tx, "you", 50) if one.kind == "probe"]
    clock.advance(2)
    async with database.transaction() as tx:
        assert [one for one in await jobs.claim(tx, "you", 50) if one.kind == "probe"]


async def test_of_a_probe_that_fails_otherwise_there_is_one_call_too(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    clock.advance(60)
    inventory.error = ServiceFailed("inventory", "Down.", status=500)
    with pytest.raises(ServiceFailed):
        await probe(database, inventory, directory)
    with pytest.raises(OrganizationBlocked):
        await inventory.organizations(KEY, CallCause(PROBE))
    assert await count_open(database) == 1


async def test_a_probe_waits_where_the_bots_own_limit_is_used_up(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    clock.advance(60)
    free_at = clock.now() + timedelta(seconds=17)
    inventory.error = QuotaExhausted("Full.", limit_kind="minute", free_at=free_at)
    assert await probe(database, inventory, directory) == free_at


async def test_a_data_center_that_is_gone_is_asked_for_now_and_then(
    database, clock, inventory, directory
):
    await be_refused(inventory)
    clock.advance(60)
    inventory.error = NotConfigured("the inventory service", ["INVENTORY_DATA_CENTERS"])
    again_at = await probe(database, inventory, directory)
    assert again_at == clock.now() + timedelta(hours=1)


async def posted(database, clock) -> None:
    async with database.transaction() as tx:
        card = SentCard("incident:1", "C0ALERTS", "1.1", "print", clock.now())
        await outbox.remember_card(tx, card)


async def test_an_open_card_is_edited_every_ten_seconds_at_most_and_the_end_told_at_once(
    database, clock, inventory, directory, alerts
):
    await be_refused(inventory)
    letter = Letter("incident:1", "incident_card", "1")
    card = await alerts.card(letter)
    assert isinstance(card, CardNow)
    assert (card.channel_id, card.edit_seconds) == ("C0ALERTS", 10.0)
    clock.advance(60)
    await probe(database, inventory, directory)
    assert (await alerts.card(letter)).edit_seconds == 0.0
    assert await alerts.note(letter) is None
    await posted(database, clock)
    assert (await alerts.note(letter)).in_thread


async def test_during_a_mute_a_new_alert_is_held_back_until_its_end(
    database, clock, inventory, directory, alerts
):
    await be_refused(inventory)
    await posted(database, clock)
    await alerts.mute(OTTO, 1)
    clock.advance(60)
    await probe(database, inventory, directory)
    await be_refused(inventory, 45)
    assert await alerts.card(Letter("incident:2", "incident_card", "2")) is None
    clock.advance(3600)
    job = await the_job(database, "alert:2")
    await alerts.after_mute(job, FakeLease(database))
    async with database.reading() as tx:
        assert [one.subject for one in await outbox.waiting(tx, "incident:2")] == ["2"]
    assert await alerts.card(Letter("incident:2", "incident_card", "2")) is not None


async def test_what_is_over_when_the_mute_ends_is_not_told(
    database, clock, inventory, directory, alerts
):
    await be_refused(inventory)
    await alerts.mute(OTTO, 1)
    clock.advance(60)
    await probe(database, inventory, directory)
    async with database.reading() as tx:
        before = len(await outbox.waiting(tx, "incident:1"))
    await alerts.after_mute(replace(await a_job(clock), subject="1"), FakeLease(database))
    async with database.reading() as tx:
        assert len(await outbox.waiting(tx, "incident:1")) == before


async def a_job(clock) -> Job:
    return Job("alert:1", "alert", "1", clock.now())


async def test_a_mute_is_audited(database, clock, inventory, alerts):
    await be_refused(inventory)
    name, until = await alerts.mute(OTTO, 1)
    assert (name, until) == ("10", clock.now() + timedelta(hours=1))
    async with database.reading() as tx:
        [entry] = await AuditStore(None).latest(tx, 5)
    assert (entry.actor, entry.action, entry.subject) == ("U0OPERATOR", "alert.muted", "eu/10")


async def test_an_alert_that_is_not_known_says_so(alerts):
    with pytest.raises(NotFound):
        await alerts.mute(OTTO, 99)
    with pytest.raises(NotFound):
        await alerts.key_of(99)
    assert await alerts.card(Letter("incident:99", "incident_card", "99")) is None
