"""Listing: parse, sort, write, look up and render 2,000 organizations, against bare programs."""

import gc
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic_core import to_json
from yarl import URL

from bench.figures import Figure
from bot.organizations.client import organizations_in
from bot.organizations.messages import OrgsPage, listing
from bot.organizations.rules import DataCenterReport, Directory, Listing, Organization
from bot.services.calls import Answer, ServiceCall
from sandbox.services.organizations import DataCenter, many_organizations

SIZES = (200, 2_000)
ROUNDS = 5
FIRST_ID = 400_000_000
SEARCHED = "zzz is in none"
CALL = ServiceCall("inventory", "the inventory service (com)", "GET", URL("http://127.0.0.1/"))
AT = datetime(2026, 1, 1, tzinfo=UTC)


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
        directory = _directory(organizations)
        page = listing(directory, OrgsPage(), may_refresh=True).payload()
        bare = json.loads(body)["organizations"]
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
# What we do, what a bare program would do, and its name.
STEPS: dict[str, tuple[Work, Work, str]] = {
    "parse": (lambda our: _parsed(our.body), lambda our: json.loads(our.body), "json.loads"),
    "sort, once a listing": (
        lambda our: _directory(our.organizations).places,
        lambda our: sorted(our.bare, key=lambda each: str(each["name"]).casefold()),
        "sorted dicts",
    ),
    "write as JSON, once a listing": (
        lambda our: to_json(our.organizations),
        lambda our: json.dumps(our.bare),
        "json.dumps",
    ),
    "look up by id": (
        lambda our: our.directory.find(our.last_id),
        lambda our: [each for each in our.bare if each["organization_id"] == our.last_id],
        "scan of dicts",
    ),
    "filter by text": (
        lambda our: our.directory.matching(SEARCHED),
        lambda our: [each for each in our.bare if SEARCHED in str(each).casefold()],
        "scan of dicts",
    ),
    "render a page": (
        lambda our: listing(our.directory, OrgsPage(), may_refresh=True),
        lambda our: json.dumps(our.page),
        "json.dumps of it",
    ),
}


async def measure() -> list[Figure]:
    """Return the figures of every step for each size."""
    subjects = [Subject.of(size) for size in SIZES]
    return [_figure(step, subject) for step in STEPS for subject in subjects]


def _figure(step: str, subject: Subject) -> Figure:
    our_work, their_work, peer = STEPS[step]
    ours, theirs = [], []
    for _ in range(ROUNDS):
        theirs.append(_milliseconds(their_work, subject))
        ours.append(_milliseconds(our_work, subject))
    return Figure(f"{step}: {subject.size:,}", "ms", peer, ours, theirs)


def _milliseconds(work: Work, subject: Subject) -> float:
    gc.collect()
    repeats = 4_000 // subject.size
    began = time.process_time()
    for _ in range(repeats):
        work(subject)
    return (time.process_time() - began) * 1e3 / repeats
