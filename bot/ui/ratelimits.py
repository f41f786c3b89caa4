"""`/ratelimits`: every organization's use at a glance."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime

from bot.model.quota import LimitKind
from bot.model.standing import Standing, State
from bot.model.use import OrganizationUse, Overview
from bot.ui import blocks, ids, text
from bot.ui.message import Message, SlackBlock

PAGE = 15
FAILURES_SHOWN = 8
HEADINGS = ("Organization", "Data center", "Minute", "Day", "At once", "State")
NUMBERS = frozenset({2, 3, 4})
MARKS = {
    State.BLOCKED: ":no_entry:",
    State.DAY_FULL: ":red_circle:",
    State.MINUTE_FULL: ":red_circle:",
    State.BUSY: ":large_orange_circle:",
    State.NEARLY_FULL: ":large_yellow_circle:",
    State.FINE: ":large_green_circle:",
}


def moment(at: float) -> str:
    """Seconds since 1970 as a time that Slack shows in the reader's zone."""
    return text.clock_time(datetime.fromtimestamp(at, UTC))


def overview(found: Overview, page: int = 0) -> Message:
    """A page of the organizations, worst first."""
    pages = max(1, -(-len(found.uses) // PAGE))
    page = min(page, pages - 1)
    shown = found.uses[page * PAGE : (page + 1) * PAGE]
    summary, failures = _summary(found), _failures(found)
    turning = f"Page {page + 1} of {pages} · " if pages > 1 else ""
    return Message(
        text.cut("\n".join([summary, *failures, *(_line(use) for use in shown)]), 3900),
        (
            blocks.section(summary),
            *(blocks.section(failure) for failure in failures),
            *([blocks.table([HEADINGS, *map(_row, shown)], right=NUMBERS)] if shown else []),
            blocks.context(
                f"{turning}As of {moment(found.at)} · {text.code('/ratelimits <org>')} for the last"
                " 24 hours"
            ),
            *_controls(shown, page, pages),
        ),
    )


def _summary(found: Overview) -> str:
    states = Counter(use.standing.state for use in found.uses)
    counted = [f"{MARKS[state]} {states[state]:,} {state}" for state in State if states[state]]
    # What counts against a data center itself has a row of its own, and is no organization.
    total = sum(bool(use.standing.key.organization_id) for use in found.uses)
    lines = [f"*Limits of {text.count(total, 'organization')}*, worst first"]
    lines += [" · ".join(counted)] if counted else []
    return "\n".join(lines)


def _failures(found: Overview) -> list[str]:
    """A line for each data center that was never listed."""
    return [
        f":warning: *{report.data_center}* was never listed"
        + (f": {text.cut(text.sentence(report.failure, 200), 300)}" if report.failure else "")
        for report in found.unlisted[:FAILURES_SHOWN]
    ]


def _row(use: OrganizationUse) -> tuple[str, ...]:
    meters = (str(use.standing.meter(kind)) for kind in LimitKind)
    name = text.shorten(use.name, 60)
    return (name, use.standing.key.data_center, *meters, state_in_words(use.standing))


def _line(use: OrganizationUse) -> str:
    standing = use.standing
    meters = ", ".join(f"{standing.meter(kind)} {kind.in_words}" for kind in LimitKind)
    where = f"({standing.key.data_center})"
    return f"{text.escape(use.name, 60)} {where}: {meters}, {state_in_words(standing)}"


def state_in_words(standing: Standing) -> str:
    """The state, and of a block the code."""
    block = standing.blocks.longest
    return f"{standing.state} ({int(block.code)})" if block else str(standing.state)


def _controls(shown: Sequence[OrganizationUse], page: int, pages: int) -> list[SlackBlock]:
    elements: list[SlackBlock] = []
    if shown:
        options = [(_option(use), use.standing.key.path[:150]) for use in shown]
        elements.append(blocks.select("Show one …", ids.RATELIMITS_SHOW, options))
    if page > 0:
        elements.append(blocks.button("Previous", f"{ids.RATELIMITS_PAGE}.previous", str(page - 1)))
    if page < pages - 1:
        elements.append(blocks.button("Next", f"{ids.RATELIMITS_PAGE}.next", str(page + 1)))
    elements.append(blocks.button("Refresh", f"{ids.RATELIMITS_PAGE}.refresh", str(page)))
    return [blocks.actions(*elements)]


def _option(use: OrganizationUse) -> str:
    return f"{text.shorten(use.name, 50)} ({use.standing.key.data_center})"
