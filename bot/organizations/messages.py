"""Messages for `/orgs`: the list, one organization, and data centers that couldn't be loaded."""

from calendar import month_name
from collections.abc import Mapping, Sequence

from bot.commands import ORGS
from bot.organizations.rules import DataCenterReport, Directory, Place
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import Message, Page, SlackBlock, Wanted

PAGE = 15
FILTER_CHARACTERS = 200
HEADINGS = ("Name", "ID", "State", "Data center", "Currency", "Zone")
# A section can have 3,000 characters, which is enough for seven escaped fields.
FIELD_MARKUP = 400
CAUSE_MARKUP = 340
STATES = {True: "active", False: "inactive"}
MONTHS = dict(enumerate(month_name[1:]))


def listing(directory: Directory, wanted: Wanted, *, may_refresh: bool) -> Message:
    """Show a page of matching organizations, and list the data centers that couldn't be loaded."""
    places = directory.matching(wanted.text) if wanted.text else directory.places
    page = Page.cut(places, PAGE, wanted)
    rows: list[tuple[str, ...]] = []
    choices: list[tuple[str, str]] = []
    for place in page.items:
        organization = place.organization
        center = place.data_center
        name = text.shorten(organization.name, 60)
        state = STATES[organization.is_org_active]
        name = f"{name} (default)" if organization.is_default_org else name
        money = organization.currency_code or ""
        zone = organization.time_zone or ""
        rows.append((name, organization.organization_id, state, center, money, zone))
        choices.append((f"{text.shorten(organization.name, 50)} ({center})", place.key.path))
    lines = [" · ".join(text.escape(cell, 60) for cell in row if cell) for row in rows]
    times = [report.listing.fetched_at for report in directory.reports if report.listing]
    as_of = f"Updated {text.time(min(times))}" if times else "Not loaded yet"
    search = text.code("/orgs <text>")
    hints = f"To search, use {search}. For details, use {text.code('/orgs show <id or name>')}."
    controls: list[SlackBlock] = []
    if choices:
        controls.append(block_kit.select("Open an organization…", ids.ORGS_SHOW, choices))
    controls += page.turns(ids.ORGS_PAGE)
    if may_refresh:
        controls.append(block_kit.button("Refresh", ids.ORGS_REFRESH, page.wanted.value()))
    return block_kit.tabular(
        [_summary(places, directory, wanted.text), *problems(directory.failures)],
        [HEADINGS, *rows],
        lines,
        (page.place, as_of, hints),
        controls,
    )


def _summary(places: Sequence[Place], directory: Directory, words: str) -> str:
    centers = sum(report.listing is not None for report in directory.reports)
    if not centers and directory.reports:
        # Without any listing, Gatehouse doesn't know whether any organizations match.
        return "*No organizations could be loaded.*"
    where = f"in {text.count(centers, 'data center')}"
    if not words:
        return f"*{text.count(len(places), 'organization')}* {where}"
    matched = text.code(words, FILTER_CHARACTERS)
    if not places:
        # The first word may be a misspelled `show` or `refresh`.
        usage = text.code(ORGS.usage())
        example = text.code(ORGS.example("show"))
        how = f"Usage: {usage}\nExample: {example}"
        everyone = f"`/orgs` lists all {len(directory.places):,} organizations {where}."
        return f"No organization matches {matched}. {everyone}\n{how}"
    return f"*{text.count(len(places), 'organization')}* matching {matched} {where}"


def one(place: Place, report: DataCenterReport) -> Message:
    """Show every field of an organization."""
    organization = place.organization
    currency = (organization.currency_code, organization.currency_symbol)
    precision = organization.price_precision
    month = organization.fiscal_year_start_month
    main = _labelled(
        {
            "ID": organization.organization_id,
            "State": STATES[organization.is_org_active],
            "Data center": place.data_center,
            "Contact": organization.contact_name,
            "Email": organization.email,
            "Currency": " ".join(part for part in currency if part),
            "Time zone": organization.time_zone,
        }
    )
    rest = _labelled(
        {
            "Default organization": "yes" if organization.is_default_org else "no",
            "Currency ID": organization.currency_id,
            "Price format": organization.currency_format,
            "Price decimals": None if precision is None else str(precision),
            "Language": organization.language_code,
            # The service counts months from 0.
            "Fiscal year starts": None if month is None else MONTHS.get(month, str(month)),
            "Created": organization.account_created_date,
        }
    )
    footnotes = [f"Updated {text.time(report.listing.fetched_at)}"] if report.listing else []
    if report.failure:
        footnotes += problems([report])
    lines = "\n".join([f"*{text.escape(organization.name, 400)}*", *main])
    blocks = (block_kit.header(organization.name), block_kit.section("\n".join(main)))
    message = Message(lines, blocks).plus(block_kit.context(*rest))
    if footnotes:
        message = message.plus(block_kit.context(*footnotes))
    limits = block_kit.button("Rate limits", ids.RATELIMITS_SHOW, place.key.path)
    return message.plus(block_kit.actions(limits))


def _labelled(fields: Mapping[str, str | None]) -> list[str]:
    return [
        f"{label}: {text.cut(text.escape(value or '–'), FIELD_MARKUP)}"
        for label, value in fields.items()
    ]


def problems(reports: Sequence[DataCenterReport]) -> list[str]:
    """Return a line for each data center that couldn't be listed."""
    lines = []
    for report in reports:
        state = "couldn't be loaded"
        if report.listing is not None:
            state = f"is out of date (from {text.time(report.listing.fetched_at)})"
        why = text.cut(text.sentence(report.failure or ""), CAUSE_MARKUP)
        lines.append(f":warning: *{report.data_center}* {state}: {why}")
    return lines
