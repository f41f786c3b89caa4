"""The organization directory: shared, cached, kept, and honest about what it could not list."""

import asyncio
from datetime import timedelta

import pytest
from aiohttp import web
from pydantic import SecretStr
from sqlalchemy import event
from yarl import URL

from bot.background.single_flight import SingleFlight
from bot.clients.credentials import QueryToken
from bot.clients.inventory import DataCenterAccess, InventoryClient
from bot.errors import Ambiguous, DatabaseUnavailable, NotConfigured, NotFound, QuotaExhausted
from bot.model.organizations.organization import Organization, OrganizationKey
from bot.model.quotas.calls import CallCause
from bot.service_errors import RateLimited, ServiceFailed
from bot.store import listings
from bot.store.engine import Database
from bot.store.migrations import migrate
from bot.workflows import directory as directory_module
from bot.workflows.directory import LOOK_AGAIN_SECONDS, REFRESH, OrganizationDirectory
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.running import running_services
from sandbox.services.state import ServicesState
from tests.support.guard import FakeGuard
from tests.support.http import open_bench, web_server

CAUSE, ANEW = CallCause("list", "U0ADA"), CallCause(REFRESH, "U0ADA")


def organization(number: int, name: str, **fields: object) -> Organization:
    return Organization(organization_id=str(number), name=name, **fields)


class FakeInventory:
    """Data centers with organizations; a test holds and breaks them."""

    def __init__(self, **centers: list[Organization]) -> None:
        self.centers = centers
        self.calls: list[tuple[str, str]] = []
        self.errors: dict[str, Exception] = {}
        self.go_on = asyncio.Event()
        self.go_on.set()

    @property
    def data_centers(self) -> list[str]:
        return list(self.centers)

    async def organizations(self, key: OrganizationKey, cause: CallCause) -> list[Organization]:
        self.calls.append((key.data_center, key.organization_id))
        await self.go_on.wait()
        if key.data_center in self.errors:
            raise self.errors[key.data_center]
        return list(self.centers[key.data_center])


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


async def test_the_listings_of_all_data_centers_are_one(make):
    found = await make().directory(CAUSE)
    assert names(found) == ["Alpha", "alpha", "Beta", "Gamma GmbH"]
    assert found.failures == []


async def test_without_data_centers_it_says_which_setting_is_needed(make, inventory):
    inventory.centers = {}
    with pytest.raises(NotConfigured, match="INVENTORY_DATA_CENTERS"):
        await make().directory(CAUSE)


async def test_however_many_ask_each_data_center_is_called_once(make, inventory):
    directory = make()
    inventory.go_on.clear()
    asking = [asyncio.create_task(directory.directory(CAUSE)) for _ in range(50)]
    asking += [asyncio.create_task(directory.directory(ANEW, fresh=True)) for _ in range(5)]
    async with asyncio.timeout(10):
        while len(inventory.calls) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    inventory.go_on.set()
    found = await asyncio.gather(*asking)
    assert {len(one.places) for one in found} == {4}
    assert sorted(center for center, _ in inventory.calls) == ["com", "eu"]


async def test_a_listing_is_fresh_for_its_time(make, inventory, clock):
    directory = make()
    await directory.directory(CAUSE)
    clock.advance(299)
    await directory.directory(CAUSE)
    assert len(inventory.calls) == 2
    clock.advance(1)
    await directory.directory(CAUSE)
    assert len(inventory.calls) == 4


async def test_a_refresh_calls_whatever_is_cached(make, inventory):
    directory = make()
    await directory.directory(CAUSE)
    inventory.centers["eu"].append(organization(5, "Delta"))
    found = await directory.directory(ANEW, fresh=True)
    assert "Delta" in names(found)
    assert "Delta" in names(await directory.directory(CAUSE))
    assert len(inventory.calls) == 4


async def test_another_process_s_listing_is_used_while_it_is_fresh_and_no_longer(
    make, inventory, clock
):
    await make().directory(CAUSE)
    clock.advance(200)
    second = make()
    assert len((await second.directory(CAUSE)).places) == 4
    assert len(inventory.calls) == 2
    clock.advance(100)
    await second.directory(CAUSE)
    assert len(inventory.calls) == 4


class SkewedClock:
    """The clock of a process whose wall time is wrong."""

    def __init__(self, clock, seconds: float) -> None:
        self._clock, self._skew = clock, timedelta(seconds=seconds)
        self.monotonic, self.sleep = clock.monotonic, clock.sleep

    def now(self):
        return self._clock.now() + self._skew


@pytest.mark.parametrize("seconds", [-3600, -290, -120, 120, 600, 3600])
async def test_age_of_a_listing_is_told_by_the_database(database, clock, inventory, seconds):
    skewed = SkewedClock(clock, seconds)
    directory = OrganizationDirectory(inventory, database, skewed, 300, {})
    for _ in range(20):
        await directory.directory(CAUSE)
        clock.advance(30)
    assert len(inventory.calls) == 2 * 2


async def test_listing_from_the_future_is_asked_for_again(make, inventory, database, clock):
    await make().directory(CAUSE)
    clock.advance(-3600)
    directory = make()
    await directory.directory(CAUSE)
    assert len(inventory.calls) == 4


async def test_however_many_ask_the_database_is_looked_at_twice(make, database, clock, monkeypatch):
    looks, versions = [], listings.versions

    async def counted(tx):
        looks.append(tx)
        return await versions(tx)

    directory = make()
    await directory.directory(CAUSE)
    monkeypatch.setattr(listings, "versions", counted)
    clock.advance(LOOK_AGAIN_SECONDS)
    # One that had begun before some of them asked tells those nothing.
    await asyncio.gather(*(directory.directory(CAUSE) for _ in range(100)))
    assert len(looks) <= 2


async def test_fresh_listings_are_put_together_once(make, clock, monkeypatch):
    asked, cached = [], SingleFlight.cached

    def counted(self, key):
        asked.append(key)
        return cached(self, key)

    directory = make()
    await directory.directory(CAUSE)
    monkeypatch.setattr(SingleFlight, "cached", counted)
    for _ in range(100):
        await directory.directory(CAUSE)
    assert asked == ["com", "eu"]
    await directory.directory(ANEW, fresh=True)
    await directory.directory(CAUSE)
    assert asked == ["com", "eu"] * 2


async def test_refresh_of_one_process_is_seen_by_the_others(make, inventory, clock):
    one, other = make(), make()
    for directory in (one, other):
        await directory.directory(CAUSE)
    inventory.centers["eu"][0] = organization(3, "Renamed")
    await one.directory(ANEW, fresh=True)
    clock.advance(1)
    assert "Renamed" in names(await other.directory(CAUSE))
    assert len(inventory.calls) == 4


async def test_listing_that_says_the_same_is_not_stored_again(make, inventory, database, clock):
    saved = []

    def note(_connection, _cursor, statement, parameters, *_):
        if "INSERT INTO listings" in statement:
            saved.append(parameters)

    event.listen(database.engine.sync_engine, "before_cursor_execute", note)
    first, second = make(), make()
    await first.directory(CAUSE)
    places = (await second.directory(CAUSE)).places
    clock.advance(200)
    await second.directory(ANEW, fresh=True)
    clock.advance(200)
    assert len((await first.directory(CAUSE)).places) == 4
    assert (await second.directory(CAUSE)).places is places
    assert (len(saved), len(inventory.calls)) == (2, 4)
    inventory.centers["eu"].append(organization(5, "Delta"))
    await second.directory(ANEW, fresh=True)
    assert len(saved) == 3
    clock.advance(1)
    assert "Delta" in names(await first.directory(CAUSE))


async def test_a_refresh_does_not_take_another_process_s_listing(make, inventory):
    await make().directory(CAUSE)
    await make().directory(ANEW, fresh=True)
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


async def test_a_failure_is_named_and_the_last_good_listing_shown_with_its_age(
    make, inventory, clock
):
    directory = make()
    await directory.directory(CAUSE)
    listed_at = clock.now()
    clock.advance(4000)
    inventory.errors["eu"] = ServiceFailed("inventory", "It is on fire.", status=500)
    found = await directory.directory(CAUSE)
    (failure,) = found.failures
    assert (failure.data_center, failure.failure) == ("eu", "It is on fire.")
    assert clock.now() - failure.listing.fetched_at == timedelta(seconds=4000)
    assert failure.listing.fetched_at == listed_at
    assert len(found.places) == 4


async def test_the_last_good_listing_survives_a_restart(make, inventory, clock):
    await make().directory(CAUSE)
    clock.advance(4000)
    refusal = QuotaExhausted("All 100 are used.", limit_kind="minute", free_at=clock.now())
    inventory.errors = dict.fromkeys(("com", "eu"), refusal)
    found = await make().directory(CAUSE)
    assert len(found.places) == 4
    assert [report.failure for report in found.failures] == ["All 100 are used."] * 2
    assert len((await make().known()).places) == 4


async def test_a_failure_is_not_kept(make, inventory):
    directory = make()
    inventory.errors["eu"] = ServiceFailed("inventory", "It is on fire.", status=500)
    found = await directory.directory(CAUSE)
    assert (names(found), found.failures[0].listing) == (["Alpha", "Beta"], None)
    inventory.errors.clear()
    assert (await directory.directory(CAUSE)).failures == []


async def test_a_data_center_that_takes_too_long_is_not_waited_for(make, inventory, monkeypatch):
    monkeypatch.setattr(directory_module, "PATIENCE_SECONDS", 0.05)
    directory = make()
    inventory.go_on.clear()
    found = await directory.directory(CAUSE)
    assert [report.data_center for report in found.failures] == ["com", "eu"]
    assert "It didn't respond" in found.failures[0].failure
    inventory.go_on.set()
    monkeypatch.setattr(directory_module, "PATIENCE_SECONDS", 10)
    # The call went on, and the next asker has its answer.
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


async def test_a_listing_that_came_another_way_is_the_newest(make, inventory):
    directory = make()
    await directory.directory(CAUSE)
    await directory.accept(OrganizationKey("eu", "3"), [organization(9, "Omega")])
    assert names(await directory.directory(CAUSE)) == ["Alpha", "Beta", "Omega"]
    assert len(inventory.calls) == 2


async def test_what_is_known_is_shown_and_only_who_was_never_listed_is_called(
    make, inventory, clock
):
    first = make()
    await first.report("com", CAUSE)
    clock.advance(4000)
    inventory.errors["com"] = ServiceFailed("inventory", "It is on fire.", status=500)
    for _ in range(2):
        found = await make().listed(CAUSE)
        assert names(found) == ["Alpha", "alpha", "Beta", "Gamma GmbH"]
        assert found.failures == []
    assert [center for center, _ in inventory.calls] == ["com", "eu"]


async def test_failure_is_known_until_a_listing_succeeds(make, inventory, clock):
    directory = make()
    await directory.directory(CAUSE)
    clock.advance(10)
    inventory.errors["eu"] = ServiceFailed("inventory", "It is on fire.", status=500)
    await directory.directory(ANEW, fresh=True)
    calls = len(inventory.calls)
    # Nobody is called: what was listed is fresh still.
    for found in (
        await directory.directory(CAUSE),
        await directory.listed(CAUSE),
        await directory.known(),
    ):
        assert [report.failure for report in found.reports] == [None, "It is on fire."]
        assert len(found.places) == 4
    assert len(inventory.calls) == calls
    await directory.accept(OrganizationKey("eu", "3"), inventory.centers["eu"])
    assert (await directory.known()).failures == (await directory.directory(CAUSE)).failures == []


async def test_failure_is_over_when_another_process_lists(make, inventory, clock):
    directory = make()
    await directory.directory(CAUSE)
    clock.advance(LOOK_AGAIN_SECONDS)
    inventory.errors["eu"] = ServiceFailed("inventory", "It is on fire.", status=500)
    await directory.directory(ANEW, fresh=True)
    assert len((await directory.known()).failures) == 1
    clock.advance(LOOK_AGAIN_SECONDS)
    inventory.errors.clear()
    await make().directory(ANEW, fresh=True)
    assert (await directory.known()).failures == []


async def test_block_is_no_failure_of_the_data_center(make, inventory):
    directory = make()
    await directory.directory(CAUSE)
    inventory.errors["eu"] = RateLimited("inventory", "Too many.", code=44)
    assert len((await directory.directory(ANEW, fresh=True)).failures) == 1
    assert (await directory.known()).failures == []


async def test_who_was_never_listed_and_fails_is_named(make, inventory):
    inventory.errors["eu"] = ServiceFailed("inventory", "It is on fire.", status=500)
    found = await make().listed(CAUSE)
    assert [report.failure for report in found.reports] == [None, "It is on fire."]
    inventory.centers = {}
    with pytest.raises(NotConfigured):
        await make().listed(CAUSE)


async def test_look_ups(make):
    directory = make()
    place, report = await directory.find("3", CAUSE)
    assert (place.organization.name, report.data_center) == ("alpha", "eu")
    assert (await directory.find("  gamma gmbh ", CAUSE))[0].key == OrganizationKey("eu", "4")
    assert (await directory.find("gmb", CAUSE))[0].key == OrganizationKey("eu", "4")
    with pytest.raises(Ambiguous) as caught:
        await directory.find("ALPHA", CAUSE)
    assert caught.value.candidates == ("Alpha (1, com)", "alpha (3, eu)")
    with pytest.raises(NotFound, match="“nobody”"):
        await directory.find("nobody", CAUSE)


async def test_a_look_up_in_vain_says_where_it_could_not_look(make, inventory):
    inventory.errors["eu"] = ServiceFailed("inventory", "x", status=500)
    with pytest.raises(NotFound, match="couldn't be loaded: eu"):
        await make().find("Gamma", CAUSE)


@pytest.mark.parametrize("value", ["com/9", "uk/1", "", "com", "/1"])
async def test_a_place_that_is_gone_is_told(make, value):
    directory = make()
    assert (await directory.at("eu/4", CAUSE))[0].organization.name == "Gamma GmbH"
    with pytest.raises(NotFound, match="no longer listed"):
        await directory.at(value, CAUSE)


# Each fault of a data center, over real HTTP, and a word of what is said of it.
FAULTS = {
    "slow": (FaultKind.HANG, "didn't respond within"),
    "dripping": (FaultKind.DRIP, "didn't respond within"),
    "down": (FaultKind.RESET, "closed the connection early"),
    "cut": (FaultKind.CUT_BODY, "closed the connection early"),
    "html": (FaultKind.HTML, "not JSON"),
    "truncated": (FaultKind.TRUNCATED, "not JSON"),
    "wrong types": (FaultKind.WRONG_TYPES, "sent an unexpected response"),
    "code": (FaultKind.CODE, "rejected the request (code 9)"),
    "redirect": (FaultKind.REDIRECT, "redirected the request"),
    "500": (FaultKind.STATUS, "is having problems (HTTP 500)"),
    "huge": (FaultKind.HUGE, "over 10 MiB"),
    "bomb": (FaultKind.BOMB, "over 10 MiB"),
}


@pytest.fixture
async def real(sqlite_url, clock):
    """A directory on the real client, the stand-in services, and what a redirect leads to."""
    lured: list[str] = []

    async def trap(request: web.Request) -> web.Response:
        lured.append(request.path_qs)
        return web.json_response({})

    database = Database(sqlite_url, clock)
    await migrate(database)
    async with (
        running_services(ServicesState()) as services,
        open_bench(total_seconds=0.5) as bench,
        web_server(trap) as elsewhere,
    ):
        access = {
            name: DataCenterAccess(
                URL(services.inventory_url(name)), QueryToken(SecretStr(f"demo-{name}"))
            )
            for name in ("com", "eu", "jp")
        }
        client = InventoryClient(bench.http, FakeGuard(), access)
        directory = OrganizationDirectory(client, database, clock, 300, {})
        yield directory, services, elsewhere, lured
    await database.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_broken_data_center_is_named_with_the_reason_and_the_others_are_listed(
    real, clock, fault
):
    directory, services, elsewhere, lured = real
    kind, told = FAULTS[fault]
    everything = len((await directory.directory(CAUSE)).places)
    clock.advance(3600)
    services.state.faults.add(Fault(kind, "inventory", "eu", location=f"{elsewhere}/steal"))
    found = await directory.directory(CAUSE)
    (report,) = found.failures
    assert report.data_center == "eu"
    assert told in report.failure
    assert "demo-eu" not in report.failure
    assert "127.0.0.1" not in report.failure
    assert clock.now() - report.listing.fetched_at == timedelta(hours=1)
    assert len(found.places) == everything
    assert lured == []
    services.state.faults.lift()
    assert (await directory.directory(CAUSE)).failures == []


async def test_a_data_center_that_never_answered_is_missing_and_named(real):
    directory, services, _, _ = real
    services.state.faults.add(Fault(FaultKind.STATUS, "inventory", "eu", status=503))
    found = await directory.directory(CAUSE)
    assert [(one.data_center, one.listing) for one in found.failures] == [("eu", None)]
    assert {place.data_center for place in found.places} == {"com", "jp"}


async def test_buttons_call_no_data_center_that_has_just_failed(make, inventory, clock):
    directory, broken = make(), ServiceFailed("inventory", "It broke.", status=500)
    inventory.errors = {"com": broken}
    for _ in range(60):
        found = await directory.directory(CAUSE, is_typed=False)
        assert [one.data_center for one in found.failures] == ["com"]
    assert inventory.calls.count(("com", "")) == 1
    clock.advance(5)
    await directory.directory(CAUSE, is_typed=False)
    assert inventory.calls.count(("com", "")) == 2


async def test_typed_listing_after_a_failure_is_tried_anew(make, inventory):
    directory = make()
    inventory.errors = {"com": ServiceFailed("inventory", "It broke.", status=500)}
    await directory.directory(CAUSE)
    inventory.errors.clear()
    assert (await directory.directory(CAUSE)).failures == []
    assert (await directory.directory(CAUSE, is_typed=False)).failures == []


async def test_refresh_button_pressed_on_and_on_makes_a_call_in_five_seconds(
    make, inventory, clock
):
    directory = make()
    for _ in range(120):
        await directory.directory(ANEW, fresh=True, is_typed=False)
    assert len(inventory.calls) == 2
    await directory.directory(ANEW, fresh=True)
    assert len(inventory.calls) == 4
    clock.advance(5)
    await directory.directory(ANEW, fresh=True, is_typed=False)
    assert len(inventory.calls) == 6
