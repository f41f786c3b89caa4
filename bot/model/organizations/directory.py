"""What is known of all organizations: the listings of the data centers, and look-ups in them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from functools import cached_property
from heapq import merge

from bot.dataclass import dataclass
from bot.errors import Ambiguous, NotFound
from bot.model.organizations.organization import Organization, OrganizationKey
from bot.model.spelling import LIKENESS, folded

CANDIDATES = 10
CANDIDATE_CHARACTERS = 100
# A menu's text has 75 characters, and the id has to be among them.
CHOICE_CHARACTERS = 40
# Of two names, so many are compared.
COMPARED_CHARACTERS = 40

# Organizations whose texts are looked through together first: most hold nothing that is sought.
SHELF = 64
# Their texts in one, and each with whose it is.
Shelf = tuple[str, "list[tuple[str, Place]]"]


class Contents:
    """The organizations of one data center, ready for look-ups.

    Worked out once a listing, and shared by all listings that say the same.
    """

    def __init__(self, data_center: str, organizations: Sequence[Organization]) -> None:
        places = (Place(data_center, one) for one in organizations)
        self.data_center = data_center
        self.places = tuple(sorted(places, key=_by_name))
        self._by_id: dict[str, Place] = {}
        self._by_word: dict[str, list[Place]] = {}
        self._by_name: dict[str, list[Place]] = {}
        self._by_part: dict[str, list[Place]] = {}
        for place in self.places:
            self._by_id.setdefault(place.organization.organization_id, place)
            for word in {place.folded_id, place.folded_path}:
                self._by_word.setdefault(word, []).append(place)
            self._by_name.setdefault(place.folded_name, []).append(place)
            name = place.folded_name[:COMPARED_CHARACTERS]
            # Its first word is a name too: who types one rarely types all of it.
            for part in {name, *name.split()[:1]}:
                self._by_part.setdefault(part, []).append(place)
            # Worked out when it is first asked for.
            place.searchable  # noqa: B018
        self.keys = [self._by_id[organization_id].key for organization_id in sorted(self._by_id)]
        self._by_beginning: dict[str, list[str]] = {}
        for part in self._by_part:
            for character in set(part[:2]):
                self._by_beginning.setdefault(character, []).append(part)

    def of_id(self, organization_id: str) -> "Place | None":
        """Return the organization of that id."""
        return self._by_id.get(organization_id)

    def with_id(self, word: str) -> "Sequence[Place]":
        """Return those of that folded id, or `<data center>/<id>`."""
        return self._by_word.get(word, ())

    def named(self, name: str) -> "Sequence[Place]":
        """Return those of that folded name."""
        return self._by_name.get(name, ())

    def parts_like(self, typed: str) -> "Iterator[str]":
        """The names, and first words of names, that share one of the first two characters."""
        return (
            part for character in set(typed[:2]) for part in self._by_beginning.get(character, ())
        )

    def called_partly(self, part: str) -> "Sequence[Place]":
        """Return those of that name or first word."""
        return self._by_part.get(part, ())


@dataclass(frozen=True)
class Listing:
    """The organizations of one data center, as listed at `fetched_at` by the database's clock.

    `digest` and `size` (in bytes) are those of the organizations as they are stored; "" and 0
    where they are not.
    """

    data_center: str
    organizations: tuple[Organization, ...]
    fetched_at: datetime
    digest: str = ""
    size: int = 0

    @cached_property
    def contents(self) -> Contents:
        """The organizations, ready for look-ups: with ten thousand better made in a thread."""
        return Contents(self.data_center, self.organizations)

    def confirmed(self, at: datetime, organizations: tuple[Organization, ...]) -> "Listing":
        """The same organizations, listed again at a later time."""
        later = replace(self, fetched_at=at, organizations=organizations)
        vars(later)["contents"] = self.contents
        return later

    @property
    def places(self) -> "tuple[Place, ...]":
        """The organizations with their data center, by name."""
        return self.contents.places

    def place_of(self, organization_id: str) -> "Place | None":
        """Return the organization of that id."""
        return self.contents.of_id(organization_id)

    def representative(self) -> str:
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
        failure: A sentence, when it could not be listed since.
    """

    data_center: str
    listing: Listing | None
    failure: str | None = None


@dataclass(frozen=True)
class Place:
    """An organization and the data center that it lives in."""

    data_center: str
    organization: Organization

    @property
    def label(self) -> str:
        """What to choose it by: its name, and where it is."""
        return f"{self.organization.name[:CHOICE_CHARACTERS]} ({self.data_center})"

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

    @cached_property
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

    def of(self, reports: Sequence[DataCenterReport]) -> "Directory":
        """The directory of these reports, with what was worked out where it is so still."""
        if self.is_of(reports):
            return self
        new = Directory(tuple(reports))
        if new._contents == self._contents:
            kept = ("places", "keys", "_by_words", "_by_names")
            vars(new).update({name: getattr(self, name) for name in kept})
        return new

    @cached_property
    def _contents(self) -> list[Contents]:
        return [report.listing.contents for report in self.reports if report.listing]

    @cached_property
    def places(self) -> list[Place]:
        """Every organization with its data center, by name."""
        return list(merge(*(one.places for one in self._contents), key=_by_name))

    @cached_property
    def _by_words(self) -> "list[Shelf]":
        return _shelves(self.places, lambda place: place.searchable)

    @cached_property
    def _by_names(self) -> "list[Shelf]":
        return _shelves(self.places, lambda place: place.folded_name)

    @cached_property
    def keys(self) -> dict[OrganizationKey, None]:
        """Every organization's key once, in order."""
        centers = sorted(self._contents, key=lambda one: one.data_center)
        return dict.fromkeys(key for one in centers for key in one.keys)

    @property
    def failures(self) -> list[DataCenterReport]:
        """The data centers that could not be listed when that was last tried."""
        return [report for report in self.reports if report.failure is not None]

    def report_on(self, data_center: str) -> DataCenterReport:
        """Return what can be said of a data center."""
        found = (report for report in self.reports if report.data_center == data_center)
        return next(found, DataCenterReport(data_center, None))

    def matching(self, text: str) -> list[Place]:
        """Return the organizations with the text in name, id, contact or currency, by name."""
        wanted = folded(text)
        return list(_holding(self._by_words, wanted))

    def has_matching(self, text: str) -> bool:
        """Whether there is one at least."""
        return any(_holding(self._by_words, folded(text)))

    def name_of(self, key: OrganizationKey) -> str:
        """Return what to call whom a call counts against: a name where one is known."""
        unnamed = f"Data center {key.data_center} (no organization named)"
        return self.listed_name(key) or key.organization_id or unnamed

    def listed_name(self, key: OrganizationKey) -> str | None:
        """Return the name in the listing, or None where there is no such organization."""
        listing = self.report_on(key.data_center).listing
        place = listing.place_of(key.organization_id) if listing else None
        return place.organization.name if place else None

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
            raise _ambiguous(meant, f"“{_shortened(text)}” is only part of a name. It matches")
        return self._only(found, text)

    def _called(self, text: str) -> list[Place]:
        wanted = folded(text)
        if not wanted:
            return []
        with_id = [place for one in self._contents for place in one.with_id(wanted)]
        named = [place for one in self._contents for place in one.named(wanted)]
        exactly = [one for one in named if one.organization.name == text.strip()]
        return _each_once(sorted(with_id or exactly or named, key=_by_name))

    def _called_in_part(self, text: str) -> list[Place]:
        return _each_once(list(_holding(self._by_names, folded(text))))

    def _only(self, found: Sequence[Place], text: str) -> Place:
        if not found:
            raise NotFound(self._nobody(text))
        if len(found) > 1:
            raise _ambiguous(found, f"“{_shortened(text)}” matches")
        return found[0]

    def nearest(self, text: str, count: int) -> list[Place]:
        """Return the organizations with the names nearest to what was typed.

        Takes a while where there are thousands.
        """
        wanted = folded(text)[:COMPARED_CHARACTERS]
        parts = {part for one in self._contents for part in one.parts_like(wanted)}
        near = get_close_matches(wanted, parts, count, LIKENESS)
        found = ([p for one in self._contents for p in one.called_partly(part)] for part in near)
        return _each_once([place for those in found for place in sorted(those, key=_by_name)])[
            :count
        ]

    def _nobody(self, text: str) -> str:
        wanted = _shortened(text)
        unlisted = ", ".join(report.data_center for report in self.failures)
        hint = f" Some data centers couldn't be loaded: {unlisted}." if unlisted else ""
        return f"No organization is called “{wanted}”.{hint} /orgs <text> searches by a part of it."


def _shelves(places: Sequence[Place], text_of: Callable[[Place], str]) -> list[Shelf]:
    texts = [(text_of(place), place) for place in places]
    parts = (texts[start : start + SHELF] for start in range(0, len(texts), SHELF))
    return [("\n".join(text for text, _ in part), part) for part in parts]


def _holding(shelves: Iterable[Shelf], wanted: str) -> Iterator[Place]:
    """Those whose text holds what is wanted; nothing is in no text."""
    if not wanted:
        return
    for together, part in shelves:
        if wanted in together:
            yield from (place for text, place in part if wanted in text)


def _by_name(place: Place) -> tuple[str, str, str]:
    return place.folded_name, place.data_center, place.organization.organization_id


def _each_once(found: Sequence[Place]) -> list[Place]:
    """A data center that lists an organization twice still has only one of it."""
    return list({place.key: place for place in found}.values())


def _ambiguous(found: Sequence[Place], beginning: str) -> Ambiguous:
    shown = found[:CANDIDATES]
    is_id_enough = len({place.folded_id for place in found}) == len(found)
    key = "ID" if is_id_enough else f"data center and ID, as in {shown[0].key.path}"
    many = f"{len(found):,} organization{'' if len(found) == 1 else 's'}"
    narrower = " These are the first ten; type more of the name." if len(found) > len(shown) else ""
    return Ambiguous(
        f"{beginning} {many}.{narrower}",
        [_candidate(place, is_id_enough=is_id_enough) for place in shown],
        {place.key.path: _choice(place) for place in shown},
        how_to_choose=f"Use the {key}.",
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
