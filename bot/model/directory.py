"""What is known of all organizations: the listings of the data centers, and look-ups in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from heapq import merge

from bot.errors import Ambiguous, NotFound
from bot.model.organization import Organization, OrganizationKey
from bot.model.spelling import folded

CANDIDATES = 10
CANDIDATE_CHARACTERS = 100
# A menu's text has 75 characters, and the id has to be among them.
CHOICE_CHARACTERS = 40


@dataclass(frozen=True)
class Listing:
    """The organizations of one data center, as listed at `fetched_at`."""

    data_center: str
    organizations: tuple[Organization, ...]
    fetched_at: datetime

    @cached_property
    def places(self) -> "tuple[Place, ...]":
        """The organizations with their data center, by name; sorted once a listing."""
        places = (Place(self.data_center, one) for one in self.organizations)
        return tuple(sorted(places, key=_by_name))

    def prepare(self) -> None:
        """Work out what look-ups need; with ten thousand organizations better in a thread."""
        for place in self.places:
            # Worked out when they are first asked for.
            place.searchable  # noqa: B018
            place.folded_path  # noqa: B018

    def place_of(self, organization_id: str) -> "Place | None":
        """Return the organization of that id."""
        return next(
            (one for one in self.places if one.key.organization_id == organization_id), None
        )

    def spokesman(self) -> str:
        """Return the id that the next listing names: the default one, else the first active."""
        for one in self.organizations:
            if one.is_default_org:
                return one.organization_id
        active = (one.organization_id for one in self.organizations if one.is_org_active)
        return next(active, "")


@dataclass(frozen=True)
class DataCenterReport:
    """What can be said of a data center: its listing, old or new, and what went wrong if anything.

    Attributes:
        data_center: Its suffix, such as `com.au`.
        listing: The last good one; None when there never was one.
        failure: A sentence, when it could not be listed now.
    """

    data_center: str
    listing: Listing | None
    failure: str | None = None


@dataclass(frozen=True)
class Place:
    """An organization and the data center that it lives in."""

    data_center: str
    organization: Organization

    @cached_property
    def folded_name(self) -> str:
        """The name as it is looked up."""
        return folded(self.organization.name)

    @cached_property
    def folded_id(self) -> str:
        """The id as it is looked up."""
        return folded(self.organization.organization_id)

    @cached_property
    def folded_path(self) -> str:
        """`<data center>/<id>` as it is looked up: an id may exist in several data centers."""
        return f"{self.data_center}/{self.folded_id}"

    @cached_property
    def searchable(self) -> str:
        """Name, id, contact and currency as they are looked up, one a line."""
        one = self.organization
        rest = (one.contact_name, one.currency_code, one.currency_symbol)
        words = (folded(word) for word in rest if word)
        return "\n".join((self.folded_name, self.folded_id, *words))

    @property
    def key(self) -> OrganizationKey:
        """What its calls are counted under."""
        return OrganizationKey(self.data_center, self.organization.organization_id)


@dataclass(frozen=True)
class Directory:
    """All organizations of all data centers."""

    reports: tuple[DataCenterReport, ...]

    def is_of(self, reports: Sequence[DataCenterReport]) -> bool:
        """Whether it has the very listings of these reports, and says the same of them."""
        return len(self.reports) == len(reports) and all(
            mine.listing is theirs.listing
            and (mine.data_center, mine.failure) == (theirs.data_center, theirs.failure)
            for mine, theirs in zip(self.reports, reports, strict=True)
        )

    @cached_property
    def places(self) -> list[Place]:
        """Every organization with its data center, by name."""
        listings = (report.listing.places for report in self.reports if report.listing)
        return list(merge(*listings, key=_by_name))

    @property
    def failures(self) -> list[DataCenterReport]:
        """The data centers that could not be listed now."""
        return [report for report in self.reports if report.failure is not None]

    def report_on(self, data_center: str) -> DataCenterReport:
        """Return what can be said of a data center."""
        found = (report for report in self.reports if report.data_center == data_center)
        return next(found, DataCenterReport(data_center, None))

    def matching(self, text: str) -> list[Place]:
        """Return the organizations with the text in name, id, contact or currency, by name."""
        wanted = folded(text)
        return [place for place in self.places if wanted and wanted in place.searchable]

    def name_of(self, key: OrganizationKey) -> str:
        """Return what to call whom a call counts against: a name where one is known."""
        unnamed = f"Data center {key.data_center} (no organization named)"
        return self.listed_name(key) or key.organization_id or unnamed

    def listed_name(self, key: OrganizationKey) -> str | None:
        """Return the name in the listing, or None where there is no such organization."""
        for report in self.reports:
            if report.data_center == key.data_center and report.listing is not None:
                for one in report.listing.organizations:
                    if one.organization_id == key.organization_id:
                        return one.name
        return None

    def find(self, text: str) -> Place:
        """Return the one organization of that id, `<data center>/<id>` or name.

        An exact id wins over an exact name, and that over a part of a name; neither case nor the
        marks of a phone count, but where several are alike without them.

        Raises:
            NotFound: There is none.
            Ambiguous: There are several.
        """
        found = self._called(text) or self._called_in_part(text)
        return self._only(found, text)

    def named(self, text: str) -> Place:
        """As `find`, for what acts on it: a part of a name is not enough, whomever else it fits.

        Raises:
            NotFound: There is none.
            Ambiguous: There are several, or it is a part of a name.
        """
        found = self._called(text)
        if not found and (meant := self._called_in_part(text)):
            raise _ambiguous(meant, f"“{_shortened(text)}” is only a part of a name. It fits")
        return self._only(found, text)

    def _called(self, text: str) -> list[Place]:
        wanted = folded(text)
        if not wanted:
            return []
        with_id = [one for one in self.places if wanted in (one.folded_id, one.folded_path)]
        named = [one for one in self.places if one.folded_name == wanted]
        exactly = [one for one in named if one.organization.name == text.strip()]
        return _each_once(with_id or exactly or named)

    def _called_in_part(self, text: str) -> list[Place]:
        wanted = folded(text)
        fitting = [one for one in self.places if wanted in one.folded_name]
        return _each_once(fitting) if wanted else []

    def _only(self, found: Sequence[Place], text: str) -> Place:
        if not found:
            raise NotFound(self._nobody(text))
        if len(found) > 1:
            raise _ambiguous(found, f"“{_shortened(text)}” fits")
        return found[0]

    def _nobody(self, text: str) -> str:
        wanted = _shortened(text)
        unlisted = ", ".join(report.data_center for report in self.failures)
        hint = f" These data centers could not be listed now: {unlisted}." if unlisted else ""
        is_typed_again = wanted == text.strip() and folded(text)
        search = f"Search with /orgs {wanted}, or list all" if is_typed_again else "List all"
        return f"There is no organization “{wanted}”.{hint} {search} with /orgs."


def _by_name(place: Place) -> tuple[str, str, str]:
    return place.folded_name, place.data_center, place.organization.organization_id


def _each_once(found: Sequence[Place]) -> list[Place]:
    """A data center that lists an organization twice still has only one of it."""
    return list({place.key: place for place in found}.values())


def _ambiguous(found: Sequence[Place], beginning: str) -> Ambiguous:
    shown = found[:CANDIDATES]
    first = ", the first ten here" if len(found) > len(shown) else ""
    is_id_enough = len({place.folded_id for place in found}) == len(found)
    key = "the id" if is_id_enough else f"data center and id, as in {shown[0].key.path}"
    many = f"{len(found):,} organization{'' if len(found) == 1 else 's'}"
    return Ambiguous(
        f"{beginning} {many}{first}; use {key}.",
        [_candidate(place, is_id_enough=is_id_enough) for place in shown],
        {place.key.path: _choice(place) for place in shown},
    )


def _candidate(place: Place, *, is_id_enough: bool) -> str:
    """Enough of the name, and the id whole: it is what one types next."""
    one = place.organization
    where = f"{one.organization_id}, {place.data_center}" if is_id_enough else place.key.path
    return f"{_shortened(one.name)} ({where})"


def _choice(place: Place) -> str:
    return f"{_shortened(place.organization.name, CHOICE_CHARACTERS)} ({place.key.path})"


def _shortened(words: str, limit: int = CANDIDATE_CHARACTERS) -> str:
    words = words.strip()
    return words if len(words) <= limit else f"{words[:limit]}…"
