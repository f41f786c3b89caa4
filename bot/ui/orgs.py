"""`/orgs`: the list, one organization, and what could not be listed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.model.directory import DataCenterReport, Directory, Place
from bot.ui import blocks, ids, text
from bot.ui.message import Message, SlackBlock

USAGE, EXAMPLE = "/orgs [<text>] | show <id or name> | refresh | help", "/orgs show 10234695"
PAGE = 15
FILTER_CHARACTERS = 200
HEADINGS = ("Name", "Id", "Data center", "Currency", "Zone", "State")
FAILURES_SHOWN = 8
# Eight of them fit into the fallback too.
FAILURE_MARKUP = 340
# Fifteen fields fit into a message, escaped, which holds 12,000 characters.
FIELD_CHARACTERS, FIELD_MARKUP = 600, 700


@dataclass(frozen=True)
class View:
    """Which part of the list is shown: the filter typed, and the page from 0."""

    words: str = ""
    page: int = 0

    def value(self) -> str:
        """Return it as a button's value."""
        return json.dumps({"q": self.words[:FILTER_CHARACTERS], "p": self.page}, ensure_ascii=False)

    @classmethod
    def of(cls, value: str) -> "View":
        """Read a button's value; anything unreadable is the first page of all."""
        try:
            data = json.loads(value)
            return cls(str(data["q"])[:FILTER_CHARACTERS], max(0, int(data["p"])))
        except (ValueError, KeyError, TypeError):
            return cls()


class Pages:
    """The pages of the newest directory, each made once: many people ask for the same ones."""

    def __init__(self) -> None:
        self._directory: Directory | None = None
        self._made: dict[tuple[int, bool], Message] = {}

    def listing(self, directory: Directory, view: View, *, may_refresh: bool) -> Message:
        """As the function `listing`; what people filter by is not remembered."""
        if view.words:
            return listing(directory, view, may_refresh=may_refresh)
        if directory is not self._directory:
            self._directory, self._made = directory, {}
        key = (view.page, may_refresh)
        if key not in self._made:
            self._made[key] = listing(directory, view, may_refresh=may_refresh)
        return self._made[key]


def listing(directory: Directory, view: View, *, may_refresh: bool) -> Message:
    """The organizations that match, a page of them, and what is wrong with which data center."""
    found = directory.matching(view.words) if view.words else directory.places
    pages = max(1, -(-len(found) // PAGE))
    page = min(view.page, pages - 1)
    shown = found[page * PAGE : (page + 1) * PAGE]
    summary = _summary(found, directory, view.words)
    return Message(
        _fallback(summary, shown, directory.failures),
        (
            blocks.section(summary),
            *_failure_blocks(directory.failures),
            *([_table(shown)] if shown else []),
            blocks.context(_where(page, pages, directory)),
            *_controls(shown, View(view.words, page), pages, may_refresh=may_refresh),
        ),
    )


def _summary(found: Sequence[Place], directory: Directory, words: str) -> str:
    centers = sum(report.listing is not None for report in directory.reports)
    where = f"in {text.count(centers, 'data center')}"
    if not words:
        return f"*{text.count(len(found), 'organization')}* {where}"
    matching = f"matching {text.code(words, FILTER_CHARACTERS)}"
    if not found:
        # Perhaps the first word was meant for `show` or `refresh`.
        how = (
            f"`/orgs` shows all of them.\nUsage: {text.code(USAGE)}\nExample: {text.code(EXAMPLE)}"
        )
        return f"*No organization* {matching} among {len(directory.places):,} {where}. {how}"
    return f"*{text.count(len(found), 'organization')}* {matching} {where}"


def _failure_blocks(failures: Sequence[DataCenterReport]) -> list[SlackBlock]:
    """A section each: together they may be longer than one holds, and none may be missing."""
    return [blocks.section(_failure(report)) for report in failures[:FAILURES_SHOWN]]


def _failure(report: DataCenterReport) -> str:
    sentence = text.cut(text.sentence(report.failure or "", 300), FAILURE_MARKUP)
    if report.listing is None:
        return f":warning: *{report.data_center}* is missing: {sentence}"
    as_of = text.time(report.listing.fetched_at)
    return f":warning: *{report.data_center}* as of {as_of}: {sentence}"


def _table(shown: Sequence[Place]) -> SlackBlock:
    return blocks.table([HEADINGS, *(_row(place) for place in shown)])


def _row(place: Place) -> tuple[str, ...]:
    one = place.organization
    return (
        _marked_name(place),
        one.organization_id,
        place.data_center,
        one.currency_code or "",
        one.time_zone or "",
        state(place),
    )


def _marked_name(place: Place) -> str:
    name = text.shorten(place.organization.name, 60)
    return f"{name} (default)" if place.organization.is_default_org else name


def state(place: Place) -> str:
    """`active` or `inactive`."""
    return "active" if place.organization.is_org_active else "inactive"


def _where(page: int, pages: int, directory: Directory) -> str:
    times = [one.listing.fetched_at for one in directory.reports if one.listing]
    as_of = f"Listed {text.time(min(times))}" if times else "Never listed"
    turning = f"Page {page + 1} of {pages} · " if pages > 1 else ""
    return f"{turning}{as_of} · {text.code('/orgs show <id or name>')} for every field"


def _controls(
    shown: Sequence[Place], view: View, pages: int, *, may_refresh: bool
) -> list[SlackBlock]:
    elements: list[SlackBlock] = []
    if shown:
        # By value: Slack refuses a menu in which two are alike.
        by_value = {_option_value(place): _option(place) for place in shown}
        options = [(label, value) for value, label in by_value.items()]
        elements.append(blocks.select("Show one …", ids.ORGS_SHOW, options))
    if view.page > 0:
        back = View(view.words, view.page - 1).value()
        elements.append(blocks.button("Previous", f"{ids.ORGS_PAGE}.previous", back))
    if view.page < pages - 1:
        on = View(view.words, view.page + 1).value()
        elements.append(blocks.button("Next", f"{ids.ORGS_PAGE}.next", on))
    if may_refresh:
        elements.append(blocks.button("Refresh", ids.ORGS_REFRESH, view.value()))
    return [blocks.actions(*elements)] if elements else []


def _option(place: Place) -> str:
    return f"{text.shorten(place.organization.name, 50)} ({place.data_center})"


def _option_value(place: Place) -> str:
    return f"{place.data_center}/{place.organization.organization_id}"[:150]


def _fallback(summary: str, shown: Sequence[Place], failures: Sequence[DataCenterReport]) -> str:
    lines = [summary, *(_failure(report) for report in failures[:FAILURES_SHOWN])]
    for place in shown:
        cells = (text.escape(cell, 60) for cell in _row(place) if cell)
        lines.append(" · ".join(cells))
    return text.cut("\n".join(lines), 3900)


def one(place: Place, report: DataCenterReport) -> Message:
    """Every field of an organization."""
    organization = place.organization
    title = f"{organization.name} ({state(place)})"
    pairs = [
        (label, text.cut(text.escape(value, FIELD_CHARACTERS), FIELD_MARKUP))
        for label, value in _fields(place)
    ]
    lines = [f"*{text.escape(title, 400)}*", *(f"{label}: {value}" for label, value in pairs)]
    age = report.listing.fetched_at if report.listing else None
    footnotes = [f"Listed {text.time(age)}"] if age else []
    if report.failure:
        footnotes.append(_failure(report))
    return Message(
        text.cut("\n".join(lines), 3900),
        (
            blocks.header(title),
            *blocks.fields(pairs),
            *([blocks.context(*footnotes)] if footnotes else []),
        ),
    )


def _fields(place: Place) -> list[tuple[str, str]]:
    """Every field under its name in the service, in people's words."""
    one = place.organization
    month = one.fiscal_year_start_month
    return [
        ("Name", one.name),
        ("Id", one.organization_id),
        ("Data center", place.data_center),
        ("Contact", one.contact_name or "–"),
        ("Email", one.email or "–"),
        ("State", state(place)),
        ("Default organization", "yes" if one.is_default_org else "no"),
        ("Currency", _currency(place)),
        ("Currency id", one.currency_id or "–"),
        ("Price format", one.currency_format or "–"),
        ("Price decimals", "–" if one.price_precision is None else str(one.price_precision)),
        ("Time zone", one.time_zone or "–"),
        ("Language", one.language_code or "–"),
        ("Fiscal year starts", "–" if month is None else _month(month)),
        ("Created", one.account_created_date or "–"),
    ]


def _currency(place: Place) -> str:
    one = place.organization
    return " ".join(part for part in (one.currency_code, one.currency_symbol) if part) or "–"


MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def _month(number: int) -> str:
    """Name a month; the service counts from 0, as its specification says of the first."""
    return f"{MONTHS[number]} ({number})" if 0 <= number < len(MONTHS) else str(number)
