"""Tests that the organization directory is cached, and that processes share the directory."""

import asyncio
from datetime import timedelta

import pytest

from bot.errors import DatabaseUnavailable, QuotaExhausted
from bot.organizations import directory as directory_module
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import Organization, OrganizationKey
from bot.services.calls import REFRESH, CallCause
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ServiceFailed,
    ServiceRefused,
)
from tests.conftest import BOTH

CAUSE, ANEW = CallCause("list", "U0ADA"), CallCause(REFRESH, "U0ADA")


def organization(number: int, name: str, **fields: object) -> Organization:
    return Organization(organization_id=str(number), name=name, **fields)


class FakeInventory:
    """A fake inventory. A test can delay the responses or make calls fail."""

    def __init__(self, **centers: list[Organization]) -> None:
        self.centers = centers
        self.calls: list[tuple[str, str]] = []
        self.errors: dict[str, Exception] = {}
        self.go_on = asyncio.Event()
        self.go_on.set()

    @property
    def data_centers(self) -> list[str]:
        return list(self.centers)

    async def organizations(
        self, key: OrganizationKey, cause: CallCause
    ) -> tuple[Organization, ...]:
        self.calls.append((key.data_center, key.organization_id))
        await self.go_on.wait()
        if key.data_center in self.errors:
            raise self.errors[key.data_center]
        return tuple(self.centers[key.data_center])


@pytest.fixture
def inventory() -> FakeInventory:
    return FakeInventory(
        com=[organization(1, "Alpha"), organization(2, "Beta", is_default_org=True)],
        eu=[organization(3, "alpha"), organization(4, "Gamma GmbH", currency_code="EUR")],
    )


@pytest.fixture
def make(database, clock, inventory):
    def another(**named: str) -> OrganizationDirectory:
        return OrganizationDirectory(inventory, database, clock, 300, named)

    return another


def names(found) -> list[str]:
    return [place.organization.name for place in found.places]


class SkewedClock:
    """A clock that is wrong by a fixed number of seconds."""

    def __init__(self, clock, seconds: float) -> None:
        self._clock, self._skew = clock, timedelta(seconds=seconds)
        self.monotonic, self.sleep = clock.monotonic, clock.sleep

    def now(self):
        return self._clock.now() + self._skew


@pytest.mark.parametrize("seconds", [-290, 600])
async def test_the_age_of_a_listing_uses_the_databases_clock(database, clock, inventory, seconds):
    skewed = SkewedClock(clock, seconds)
    directory = OrganizationDirectory(inventory, database, skewed, 300, {})
    for _ in range(20):
        await directory.directory(CAUSE)
        clock.advance(30)
    assert len(inventory.calls) == 2 * 2


async def test_refresh_of_one_process_is_seen_by_the_others(make, inventory, clock):
    one, other = make(), make()
    for directory in (one, other):
        await directory.directory(CAUSE)
    inventory.centers["eu"][0] = organization(3, "Renamed")
    clock.advance(5)
    await one.directory(ANEW)
    assert len(inventory.calls) == 4
    clock.advance(4.9)
    await one.directory(CAUSE)
    clock.advance(0.1)
    assert "Renamed" in names(await other.directory(CAUSE))
    assert len(inventory.calls) == 4


async def test_refresh_of_one_process_is_seen_by_the_others_within_five_seconds(
    make, inventory, clock
):
    one, other = make(), make()
    await one.directory(CAUSE)
    clock.advance(10)
    await other.directory(CAUSE)
    inventory.centers["eu"][0] = organization(3, "Renamed")
    await one.directory(ANEW)
    clock.advance(5)
    assert "Renamed" in names(await other.directory(CAUSE))


@pytest.mark.parametrize(("seconds", "calls"), [(4.9, 1), (5.0, 2)])
async def test_refresh_shows_a_listing_that_is_less_than_five_seconds_old(
    make, inventory, clock, seconds, calls
):
    directory = make()
    await directory.directory(ANEW)
    clock.advance(seconds)
    await directory.directory(ANEW)
    assert len(inventory.calls) == calls * 2


@pytest.fixture
def reads(database, monkeypatch):
    """Return a list to which an entry is added whenever a transaction is opened."""
    opened = []
    for name in ("transaction", "read_only", "autocommit"):
        real = getattr(type(database), name)

        def counted(self, *, real=real, name=name):
            opened.append(name)
            return real(self)

        monkeypatch.setattr(type(database), name, counted)
    return opened


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_a_listing_that_was_just_read_costs_no_database_access(make, clock, reads):
    directory = make()
    await directory.directory(CAUSE)
    clock.advance(5)
    reads.clear()
    for _ in range(10):
        await directory.directory(CAUSE)
        await directory.known()
        clock.advance(0.49)
    assert reads == ["read_only"]


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_repeated_refreshes_by_all_processes_cost_one_call_in_five_seconds(
    make, inventory, clock
):
    processes = [make(), make()]
    for click in range(60):
        found = await processes[click % 2].directory(ANEW)
        # The listing is shown with the time when it was fetched.
        fetched = {report.listing.fetched_at for report in found.reports}
        assert max(clock.now() - at for at in fetched) < timedelta(seconds=5)
        clock.advance(0.1)
    assert len(inventory.calls) == 2 * 2


async def test_repeated_refreshes_of_a_broken_data_center_cost_one_call_in_five_seconds(
    make, inventory, clock
):
    directory = make()
    inventory.errors["eu"] = ServiceFailed("inventory", "It is down.")
    for _ in range(60):
        found = await directory.directory(ANEW)
        assert [report.failure for report in found.failures] == ["It is down."]
        clock.advance(0.1)
    assert inventory.calls.count(("eu", "")) == 2


async def test_a_listing_that_another_process_fetched_saves_the_call(make, inventory, clock):
    one, other = make(), make()
    await one.directory(CAUSE)
    await other.directory(CAUSE)
    clock.advance(298)
    await other.known()
    clock.advance(1)
    await one.directory(ANEW)
    clock.advance(2)
    # This process has an old listing until it reads the database again.
    await other.directory(CAUSE)
    assert len(inventory.calls) == 4


async def test_an_organization_that_a_client_names_is_looked_up_in_the_stored_listing(
    make, inventory, clock
):
    one, other = make(), make()
    await other.directory(CAUSE)
    clock.advance(5)
    await other.known()
    inventory.centers["eu"].append(organization(5, "Delta"))
    await one.directory(ANEW)
    assert "Delta" not in names(await other.directory(CAUSE))
    assert await other.lists(OrganizationKey("eu", "5"))
    assert len(inventory.calls) == 4


async def test_a_listing_names_the_organization_that_it_counts_against(make, inventory, clock):
    await make().directory(CAUSE)
    assert sorted(inventory.calls) == [("com", ""), ("eu", "")]
    clock.advance(300)
    await make().directory(CAUSE)
    # The default organization, or else the first active one.
    assert sorted(inventory.calls[2:]) == [("com", "2"), ("eu", "3")]
    clock.advance(300)
    await make(eu="4").directory(CAUSE)
    assert sorted(inventory.calls[4:]) == [("com", "2"), ("eu", "4")]


@pytest.mark.parametrize("refusal", [ServiceRefused, CredentialsRefused, PermissionMissing])
async def test_a_refused_organization_takes_no_data_center_away(make, inventory, clock, refusal):
    directory = make()
    await directory.directory(CAUSE)
    inventory.errors["com"] = refusal("inventory", "Not this one.")
    clock.advance(300)
    failed = await directory.directory(CAUSE)
    assert failed.report_on("com").failure == "Not this one."
    assert inventory.calls[2:].count(("com", "2")) == 1
    del inventory.errors["com"]
    clock.advance(5)
    assert not (await directory.directory(CAUSE)).failures
    assert inventory.calls[-1] == ("com", "")


@pytest.mark.parametrize("refusal", [ServiceRefused, CredentialsRefused, PermissionMissing])
async def test_a_refused_call_for_one_organization_says_nothing_about_the_data_center(
    make, inventory, refusal
):
    directory = make()
    await directory.directory(CAUSE)
    inventory.errors["com"] = refusal("inventory", "Not this one.")
    with pytest.raises(refusal):
        await directory.call(OrganizationKey("com", "1"), CallCause("check", "U0ADA"))
    assert not (await directory.known()).failures
    assert await directory.representative("com") == "2"


@pytest.mark.parametrize("error", [QuotaExhausted, DatabaseUnavailable])
async def test_a_call_that_was_not_made_is_told_only_to_whoever_asked(
    make, inventory, clock, error
):
    directory = make()
    await directory.directory(CAUSE)
    declined = error() if error is DatabaseUnavailable else error("Full.", "minute", 1.0)
    inventory.errors["com"] = declined
    clock.advance(300)
    assert [report.data_center for report in (await directory.directory(CAUSE)).failures] == ["com"]
    assert not (await directory.known()).failures


async def test_a_data_center_that_takes_too_long_is_not_waited_for(make, inventory, monkeypatch):
    monkeypatch.setattr(directory_module, "PATIENCE_SECONDS", 0.05)
    directory = make()
    inventory.go_on.clear()
    found = await directory.directory(CAUSE)
    assert [report.data_center for report in found.failures] == ["com", "eu"]
    assert "The data center didn't respond" in found.failures[0].failure
    inventory.go_on.set()
    monkeypatch.setattr(directory_module, "PATIENCE_SECONDS", 10)
    # The call continued, and the next caller gets the response.
    assert len((await directory.directory(CAUSE)).places) == 4
    assert len(inventory.calls) == 2


async def test_a_database_that_is_away_costs_no_listing(make, inventory, database, monkeypatch):
    directory = make()
    monkeypatch.setattr(type(database), "transaction", _away)
    monkeypatch.setattr(type(database), "read_only", _away)
    found = await directory.directory(CAUSE)
    assert len(found.places) == 4
    assert len((await directory.known()).places) == 4


def _away(_database):
    raise DatabaseUnavailable


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_the_last_good_listing_survives_a_restart(make, inventory, clock):
    await make().directory(CAUSE)
    clock.advance(4000)
    refusal = QuotaExhausted("All 100 are used.", limit_kind="minute")
    inventory.errors = dict.fromkeys(("com", "eu"), refusal)
    found = await make().directory(CAUSE)
    assert len(found.places) == 4
    assert [report.failure for report in found.failures] == ["All 100 are used."] * 2
    assert len((await make().known()).places) == 4
