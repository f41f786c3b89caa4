"""`/ratelimits`: an overview of API usage by organization."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.organizations.messages import problems
from bot.quotas.rules.quota import LimitKind
from bot.quotas.rules.standing import Standing, State
from bot.quotas.rules.use import OrganizationUse, Overview
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.message import Message, SlackBlock

HEADINGS = ("Organization", "State", "Minute", "Day", "At once", "Data center")
NUMBERS = frozenset({2, 3, 4})
MARKS = {
    State.BLOCKED: ":no_entry:",
    State.DAY_FULL: ":red_circle:",
    State.MINUTE_FULL: ":red_circle:",
    State.BUSY: ":large_orange_circle:",
    State.NEARLY_FULL: ":large_yellow_circle:",
    State.FINE: ":large_green_circle:",
}


# Slack tables don't render emoji names.
SIGNS = {
    State.BLOCKED: "\u26d4",
    State.DAY_FULL: "\U0001f534",
    State.MINUTE_FULL: "\U0001f534",
    State.BUSY: "\U0001f7e0",
    State.NEARLY_FULL: "\U0001f7e1",
    State.FINE: "\U0001f7e2",
}


def moment(at: float) -> str:
    """Format seconds since 1970 as a Slack date in the reader's time zone."""
    return text.time(datetime.fromtimestamp(at, UTC))


def overview(found: Overview) -> Message:
    """Show a page of organizations, worst first."""
    summary, failures = _summary(found), problems(found.failures)
    turning = f"Page {found.page + 1} of {found.pages} · " if found.pages > 1 else ""
    table = (
        [block_kit.table([HEADINGS, *map(_row, found.uses)], right=NUMBERS)] if found.uses else []
    )
    return Message(
        "\n".join([summary, *failures, *(_line(use) for use in found.uses)]),
        (
            block_kit.section(summary),
            *(block_kit.section(failure) for failure in failures),
            *table,
            block_kit.context(
                f"{turning}As of {moment(found.at)} · {text.code('/ratelimits <org>')} for one's"
                " last 24 hours"
            ),
            *_controls(found.uses, found.page, found.pages),
        ),
    )


def _summary(found: Overview) -> str:
    states = found.states
    counted = [f"{MARKS[state]} {states[state]:,} {state}" for state in State if states.get(state)]
    total = text.count(found.organizations, "organization")
    lines = [f"*API usage of {total}*, closest to the limit first"]
    lines += [" · ".join(counted)] if counted else []
    return "\n".join(lines)


def _row(use: OrganizationUse) -> tuple[str, ...]:
    meters = (str(use.standing.meter(kind)) for kind in LimitKind)
    name = text.shorten(use.name, 60)
    state = f"{SIGNS[use.standing.state]} {state_in_words(use.standing)}"
    return (name, state, *meters, use.standing.key.data_center)


def _line(use: OrganizationUse) -> str:
    standing = use.standing
    meters = ", ".join(f"{standing.meter(kind)} {kind.in_words}" for kind in LimitKind)
    where = f"({standing.key.data_center})"
    return f"{text.escape(use.name, 60)} {where}: {meters}, {state_in_words(standing)}"


def state_in_words(standing: Standing) -> str:
    """Describe the state, including the code if blocked."""
    block = standing.blocks.longest
    return f"{standing.state} ({int(block.code)})" if block else str(standing.state)


def _controls(shown: Sequence[OrganizationUse], page: int, pages: int) -> list[SlackBlock]:
    elements: list[SlackBlock] = []
    if shown:
        options = [
            (_option(use), use.standing.key.path[: block_kit.OPTION_VALUE_CHARACTERS])
            for use in shown
        ]
        elements.append(block_kit.select("Open an organization …", ids.RATELIMITS_SHOW, options))
    elements += block_kit.turns(ids.RATELIMITS_PAGE, page, pages)
    elements.append(block_kit.button("Refresh", f"{ids.RATELIMITS_PAGE}.refresh", str(page)))
    return [block_kit.actions(*elements)]


def _option(use: OrganizationUse) -> str:
    return f"{text.shorten(use.name, 50)} ({use.standing.key.data_center})"
