"""Listing: parse, keep, look up and answer, for 10 to 10,000 organizations; how each grows."""

import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cachetools import TTLCache
from pydantic_core import to_json
from yarl import URL

from bench.figures import Aim, Figure
from bot.background.single_flight import SingleFlight
from bot.clients.calls import Answer, ServiceCall
from bot.clients.inventory import organizations_in
from bot.model.organizations.directory import DataCenterReport, Directory, Listing
from bot.model.organizations.organization import Organization
from bot.ui.orgs import OrgsPage, Pages, listing
from sandbox.services.organizations import DataCenter, many_organizations

SIZES = (10, 100, 1_000, 10_000)
ROUNDS = 3
FIRST_ID = 400_000_000
SEARCHED = "zzz is in none"
CALL = ServiceCall("inventory", "the inventory service (com)", "GET", URL("http://127.0.0.1/"))
AT = datetime(2026, 1, 1, tzinfo=UTC)
# Ten where the time is quadratic.
GROWTH = Aim(most=2)
LOOK_UPS = 20_000


@dataclass(frozen=True)
class Subject:
    """A listing of one size: as it comes, as a bare program has it, and as we keep it."""

    size: int
    body: bytes
    bare: list[dict[str, Any]]
    organizations: tuple[Organization, ...]
    directory: Directory
    page: dict[str, Any]

    @classmethod
    def of(cls, size: int) -> "Subject":
        """Make one; the names are 40 characters long."""
        body = DataCenter("com", many_organizations("com", size, 40, FIRST_ID)).listing
        organizations = tuple(_parsed(body))
        bare = json.loads(body)["organizations"]
        directory = _directory(organizations)
        page = listing(directory, OrgsPage(), may_refresh=True).payload()
        return cls(size, body, bare, organizations, directory, page)

    @property
    def last_id(self) -> str:
        """The id that a scan finds last."""
        return str(FIRST_ID + self.size - 1)


def _parsed(body: bytes) -> list[Organization]:
    return organizations_in(CALL, Answer(200, {}, body))


def _directory(organizations: tuple[Organization, ...]) -> Directory:
    return Directory((DataCenterReport("com", Listing("com", organizations, AT)),))


Work = Callable[[Subject], object]


@dataclass(frozen=True)
class Step:
    """A step of ours, and what a bare program would do; `grows` with the number or not at all."""

    what: str
    peer: str
    ours: Work
    theirs: Work
    grows: bool = True


STEPS = (
    Step(
        "parse",
        "json.loads",
        lambda one: _parsed(one.body),
        lambda one: json.loads(one.body),
    ),
    Step(
        "sort, once a listing",
        "sorted dicts",
        lambda one: _directory(one.organizations).places,
        lambda one: sorted(one.bare, key=lambda each: str(each["name"]).casefold()),
    ),
    Step(
        "write as JSON, once a listing",
        "json.dumps",
        lambda one: to_json(one.organizations),
        lambda one: json.dumps(one.bare),
    ),
    Step(
        "look up by id",
        "scan of dicts",
        lambda one: one.directory.find(one.last_id),
        lambda one: [each for each in one.bare if each["organization_id"] == one.last_id],
    ),
    Step(
        "filter by text",
        "scan of dicts",
        lambda one: one.directory.matching(SEARCHED),
        lambda one: [each for each in one.bare if SEARCHED in str(each).casefold()],
    ),
    Step(
        "render a page",
        "json.dumps of it",
        lambda one: listing(one.directory, OrgsPage(), may_refresh=True),
        lambda one: json.dumps(one.page),
        grows=False,
    ),
)


async def measure() -> list[Figure]:
    """Return the figures of every step, of memory, and of hot look-ups."""
    subjects = [Subject.of(size) for size in SIZES]
    figures = [figure for step in STEPS for figure in _figures(step, subjects)]
    return [*figures, *_memory(subjects[-2:]), _hot_look_up(), _hot_page(subjects[-1])]


def _figures(step: Step, subjects: list[Subject]) -> list[Figure]:
    took = [_in_turn(step, one) for one in subjects]
    sizes = [
        Figure(f"{step.what}: {one.size:,}", "ms", step.peer, ours, theirs)
        for one, (ours, theirs) in zip(subjects, took, strict=True)
    ]
    factor = SIZES[-1] / SIZES[-2] if step.grows else 1
    return [*sizes, _growth(step.what, "ms", took[-1][0], took[-2][0], factor)]


def _growth(what: str, unit: str, large: list[float], small: list[float], factor: float) -> Figure:
    expected = [value * factor for value in small]
    peer = f"{factor:g} x that of {SIZES[-2]:,}"
    return Figure(f"{what}: growth", unit, peer, large, expected, GROWTH)


def _in_turn(step: Step, subject: Subject) -> tuple[list[float], list[float]]:
    ours, theirs = [], []
    repeats = max(1, 1_000 // subject.size)
    for _ in range(ROUNDS):
        theirs.append(_milliseconds(lambda: step.theirs(subject), repeats))
        ours.append(_milliseconds(lambda: step.ours(subject), repeats))
    return ours, theirs


def _milliseconds(work: Callable[[], object], repeats: int) -> float:
    gc.collect()
    began = time.process_time()
    for _ in range(repeats):
        work()
    return (time.process_time() - began) * 1e3 / repeats


def _memory(subjects: list[Subject]) -> list[Figure]:
    small, large = ([_kib(_parsed, one.body)] for one in subjects)
    bare = [_kib(json.loads, subjects[-1].body)]
    against = Figure(f"memory: {SIZES[-1]:,}", "KiB", "dicts", large, bare)
    return [against, _growth("memory", "KiB", large, small, SIZES[-1] / SIZES[-2])]


def _kib(make: Callable[[bytes], object], body: bytes) -> float:
    tracemalloc.start()
    kept = make(body)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return held / 1024


def _hot_look_up() -> Figure:
    """A listing that is fresh: our cache with its single flight, and the bare cache in it."""
    cache: TTLCache[str, int] = TTLCache(64, 300)
    cache["com"] = 1
    single_flight = SingleFlight(cache)
    ours, bare = _hot(lambda: single_flight.cached("com"), lambda: cache.get("com"))
    return Figure("hot look-up", "us", "bare cachetools get", ours, bare, Aim(most=2))


def _hot_page(subject: Subject) -> Figure:
    """A page that somebody else asked for just now, and a bare cache that would hold it."""
    pages = Pages()
    cache: TTLCache[int, object] = TTLCache(64, 300)
    cache[0] = pages.listing(subject.directory, OrgsPage(), may_refresh=True)
    ours, bare = _hot(
        lambda: pages.listing(subject.directory, OrgsPage(), may_refresh=True), lambda: cache.get(0)
    )
    return Figure(
        f"hot page of {subject.size:,}", "us", "bare cachetools get", ours, bare, Aim(most=2)
    )


def _hot(ours: Callable[[], object], bare: Callable[[], object]) -> tuple[list[float], list[float]]:
    took: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        took[1].append(_milliseconds(bare, LOOK_UPS) * 1e3)
        took[0].append(_milliseconds(ours, LOOK_UPS) * 1e3)
    return took
