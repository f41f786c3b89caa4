"""The inventory service's organizations and data centers, and functions to search them."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import chain

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from bot.errors import Ambiguous, NotFound
from bot.spelling import folded, most_alike

UNNAMED = "(no name)"
WITHOUT_ORGANIZATION = "List of organizations"
# IDs should contain only digits, but all characters that are safe in URLs and keys are accepted.
# The length is checked separately, because a limit in the pattern would slow down matching.
IDENTIFIER = r"^[^\s\p{C}]+$"
LONGEST_IDENTIFIER = 64


# Stands for the data center in the keys of other APIs, whose names stand for the organization.
API = "api"


@dataclass(frozen=True, order=True)
class OrganizationKey:
    """Identifies the organization, data center or other API that a call counts against.

    `organization_id` is empty for calls that count against a data center, such as a first listing.
    """

    data_center: str
    organization_id: str = ""

    def __str__(self) -> str:
        return f"{self.data_center}/{self.organization_id or '-'}"

    @property
    def is_api(self) -> bool:
        """True for an API that is set in `APIS`."""
        return self.data_center == API

    @property
    def service(self) -> str:
        """The name of the data center or of the API."""
        return self.organization_id if self.is_api else self.data_center

    @property
    def center(self) -> str:
        """The data center to add to the organization's name, which is empty for an API."""
        return "" if self.is_api else f" ({self.data_center})"

    @property
    def path(self) -> str:
        """The key as text, for button values and job subjects. `of_path` parses it."""
        return f"{self.data_center}/{self.organization_id}"

    @classmethod
    def of_path(cls, path: str) -> "OrganizationKey":
        """Parse a key's path. Invalid text produces a key that matches no organization."""
        data_center, _, organization_id = path.partition("/")
        return cls(data_center, organization_id)


class Organization(BaseModel):
    """An organization as the service lists it. Unknown fields are ignored.

    A field with the wrong type makes the whole listing fail, but a field that is missing or null
    doesn't, except for the ID.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")

    organization_id: str = Field(pattern=IDENTIFIER, max_length=LONGEST_IDENTIFIER)
    name: str = UNNAMED
    contact_name: str | None = None
    email: str | None = None
    is_default_org: bool = False
    language_code: str | None = None
    fiscal_year_start_month: int | None = None
    account_created_date: str | None = None
    time_zone: str | None = None
    is_org_active: bool = True
    currency_id: str | None = None
    currency_code: str | None = None
    currency_symbol: str | None = None
    currency_format: str | None = None
    price_precision: int | None = None

    @field_validator("name", "is_default_org", "is_org_active", mode="before")
    @classmethod
    def _null_is_nothing(cls, value: object, info: ValidationInfo) -> object:
        # A validator of the whole model would turn fields that nobody reads into Python objects.
        return cls.model_fields[info.field_name or ""].default if value is None else value

    @field_validator("name")
    @classmethod
    def _never_blank(cls, name: str) -> str:
        return name if name.strip() else UNNAMED


# Only the beginnings of longer names are searched.
SEARCHED_CHARACTERS = 400
CANDIDATES = 10
# The number of names to suggest if nothing matches.
MEANT = 3
CANDIDATE_CHARACTERS = 100
# A menu option can have at most 75 characters, including the ID.
CHOICE_CHARACTERS = 40
# Only the beginnings of long names are compared.
COMPARED_CHARACTERS = 40


@dataclass(frozen=True)
class Listing:
    """A data center's organizations at one point in time."""

    data_center: str
    organizations: tuple[Organization, ...]
    fetched_at: datetime

    @cached_property
    def by_id(self) -> "dict[str, Place]":
        """The organizations by ID, each with its data center."""
        return {
            listed.organization_id: Place(self.data_center, listed) for listed in self.organizations
        }

    @property
    def places(self) -> "Collection[Place]":
        """The organizations, each with its data center."""
        return self.by_id.values()

    def representative(self) -> str:
        """Return the default or first active organization's ID, if any, or an empty string."""
        default = [listed for listed in self.organizations if listed.is_default_org]
        active = [listed for listed in self.organizations if listed.is_org_active]
        return next((listed.organization_id for listed in (*default, *active)), "")


@dataclass(frozen=True)
class DataCenterReport:
    """A data center's last successful listing, and a sentence about a later failure, if any."""

    data_center: str
    listing: Listing | None
    failure: str | None = None


@dataclass(frozen=True)
class Place:
    """An organization and its data center."""

    data_center: str
    organization: Organization

    @property
    def label(self) -> str:
        """The organization's name and its data center, for menus and suggestions."""
        return self.organization.name[:CHOICE_CHARACTERS] + self.key.center

    @cached_property
    def folded_name(self) -> str:
        """The case-folded name without accents, for searches."""
        return folded(self.organization.name[:SEARCHED_CHARACTERS])

    @cached_property
    def folded_id(self) -> str:
        """The case-folded ID, for searches."""
        return folded(self.organization.organization_id)

    @cached_property
    def searchable(self) -> str:
        """The text to search: folded name, ID, contact, and currency, one per line."""
        organization = self.organization
        rest = (organization.contact_name, organization.currency_code, organization.currency_symbol)
        words = (folded(word[:SEARCHED_CHARACTERS]) for word in rest if word)
        return "\n".join((self.folded_name, self.folded_id, *words))

    @cached_property
    def key(self) -> OrganizationKey:
        """The organization's key, which identifies the limits that its calls count against."""
        return OrganizationKey(self.data_center, self.organization.organization_id)


@dataclass(frozen=True)
class Directory:
    """The organizations of all data centers, with methods to search them."""

    reports: tuple[DataCenterReport, ...]

    @cached_property
    def places(self) -> list[Place]:
        """Every organization with its data center, sorted by name."""
        listed = (report.listing.places for report in self.reports if report.listing)
        return sorted(chain.from_iterable(listed), key=lambda place: (place.folded_name, place.key))

    @property
    def failures(self) -> list[DataCenterReport]:
        """The reports of data centers that couldn't be listed."""
        return [report for report in self.reports if report.failure is not None]

    def report_on(self, data_center: str) -> DataCenterReport:
        """Return a data center's report, or an empty report if the data center is unknown."""
        its = (report for report in self.reports if report.data_center == data_center)
        return next(its, DataCenterReport(data_center, None))

    def matching(self, text: str) -> list[Place]:
        """Return the organizations that match the text, sorted by name.

        An organization matches if its name, ID, contact, or currency contains the text.
        """
        wanted = folded(text)
        return [place for place in self.places if wanted and wanted in place.searchable]

    def name_of(self, key: OrganizationKey) -> str:
        """Return the organization's name, or its ID if it isn't listed."""
        return self.listed_name(key) or key.organization_id or WITHOUT_ORGANIZATION

    def listed_name(self, key: OrganizationKey) -> str | None:
        """Return the listed name, or None if the organization isn't listed."""
        listing = self.report_on(key.data_center).listing
        place = listing.by_id.get(key.organization_id) if listing else None
        return place.organization.name if place else None

    def find(self, text: str, *, in_part: bool = True) -> Place:
        """Return the organization with this ID, `<data center>/<id>`, or name.

        An exact ID takes precedence over an exact name, and an exact name over part of a name. Part
        of a name is accepted only with `in_part`. Case and invisible characters are ignored.

        Raises:
            Ambiguous: Several organizations match.
            NotFound: No organization matches.
        """
        wanted = folded(text)
        quoted = f"“{text.strip()[:CANDIDATE_CHARACTERS]}”"
        places = self.places if wanted else []
        with_id = [
            place
            for place in places
            if wanted in (place.folded_id, f"{place.data_center}/{place.folded_id}")
        ]
        parts = [place for place in places if wanted in place.folded_name]
        whole = [place for place in parts if place.folded_name == wanted]
        matches = with_id or whole or (parts if in_part else [])
        if len(matches) > 1:
            raise _ambiguous(matches, quoted)
        if not matches:
            unlisted = ", ".join(report.data_center for report in self.failures)
            hint = f" Some data centers couldn't be loaded: {unlisted}." if unlisted else ""
            near = {place.key.path: place.label for place in parts[:MEANT]}
            near = near or self.closest(text)
            question = " Did you mean one of these?" if near else ""
            # `/orgs` doesn't list other APIs.
            lists = any(report.data_center != API for report in self.reports)
            search = " Use /orgs <text> to search by part of a name." if lists else ""
            sentence = f"No organization is called {quoted}.{hint}{search}{question}"
            raise NotFound(sentence).suggesting(text, near)
        return matches[0]

    def closest(self, text: str) -> dict[str, str]:
        """Return up to three organizations whose name and the text begin with similar words.

        The result maps their paths to their labels.
        """
        firsts = {at: _first_word(place.folded_name) for at, place in enumerate(self.places)}
        near = [self.places[at] for at in most_alike(_first_word(folded(text)), firsts, MEANT)]
        return {place.key.path: place.label for place in near}


def _first_word(name: str) -> str:
    """Return the first word with a letter or a digit: names can begin with an emoji."""
    return re.sub(r"^\W+", "", name).partition(" ")[0][:COMPARED_CHARACTERS]


def _ambiguous(matches: Sequence[Place], quoted: str) -> Ambiguous:
    # The same ID can exist in several data centers.
    choices = {}
    for place in matches[:CANDIDATES]:
        identity = "" if place.key.is_api else f" ({place.key})"
        choices[place.key.path] = place.organization.name[:CHOICE_CHARACTERS] + identity
    example = next(iter(choices))
    sentence = (
        f"{quoted} matches {len(matches):,} organizations. Use the ID, for example {example}."
    )
    return Ambiguous(sentence, choices)
