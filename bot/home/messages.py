"""The Home tab: requests waiting for a person, their own requests, and the limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.approvals.rules import State
from bot.quotas.messages import MARKS
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.use import OrganizationUse
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.help import ABOUT_TEST_USERS
from bot.slack.messages.message import SlackBlock
from bot.testusers.messages import pages
from bot.testusers.messages.buttons import decision_buttons
from bot.testusers.messages.pages import GrantGroup, PendingRow
from bot.testusers.messages.phrases import Show, change_of, in_full, masked, reason_of
from bot.testusers.rules.requests import Request

WAITING, OWN, LIMITS = "Waiting for you", "Your requests", "Limits"
ENDING_SHOWN = 10
MORE_ACCESS = "`/testusers mine` shows everybody you requested access for."
NO_ACCESS = "You don't have access to Gatehouse yet:"
MORE_REQUESTS = "`/testusers requests` shows all of them."
NO_REQUESTS = "You have no open requests, and none decided in the last 7 days."
WORDS = {
    LimitKind.MINUTE: "this minute",
    LimitKind.DAY: "today",
    LimitKind.CONCURRENT: "at once",
}
STATES = {
    State.PENDING: ":hourglass: Waiting for approval",
    State.SCHEDULED: ":calendar: Approved, starts later",
    State.APPLYING: ":gear: Approved, updating the list",
    State.APPLIED: ":white_check_mark: Applied",
    State.FAILED: ":x: Failed",
    State.DENIED: ":no_entry: Denied",
    State.CANCELLED: ":wastebasket: Cancelled",
    State.EXPIRED: ":alarm_clock: Expired",
}


@dataclass(frozen=True, slots=True)
class OpenBlock:
    """An organization that the service blocks; `until` is the time of the next attempt."""

    name: str
    data_center: str
    code: int
    until: datetime | None


@dataclass(frozen=True, slots=True)
class HomeContent:
    """The content of one person's Home tab at a given time.

    Attributes:
        waiting: Requests that the person may decide on and has not approved yet, oldest first.
        waiting_total: The total number of such requests; `waiting` may have fewer.
        own: The person's requests that are pending or were decided recently, newest first.
        ending: Access that the person requested and that ends soon, the next to end first.
        blocks: Organizations that are blocked now.
        closest: The organizations closest to a limit, closest first.
        asks_changes: True if the person may request changes and cancel their own requests.
        sees_identities: True if the person sees identities in full.
    """

    waiting: Sequence[PendingRow]
    waiting_total: int
    own: Sequence[Request]
    ending: Sequence[GrantGroup]
    blocks: Sequence[OpenBlock]
    closest: Sequence[OrganizationUse]
    asks_changes: bool
    sees_identities: bool


def home(content: HomeContent, approvals_channel: str) -> dict[str, Any]:
    """Return the Home tab of a person with a role."""
    show = in_full if content.sees_identities else masked
    change = block_kit.button("Change test users", ids.HOME_TESTUSERS, "home", style="primary")
    return _view(
        [
            block_kit.actions(
                *([change] if content.asks_changes else []),
                block_kit.button("Organizations", ids.HOME_ORGS, "home"),
                block_kit.button("Rate limits", ids.HOME_RATELIMITS, "home"),
            ),
            block_kit.header(WAITING),
            *_waiting(content, approvals_channel, show),
            block_kit.header(OWN),
            *(_request(request, show, cancels=content.asks_changes) for request in content.own),
            *([] if content.own else [block_kit.context(NO_REQUESTS, ABOUT_TEST_USERS)]),
            *_ending(content, show),
            block_kit.header(LIMITS),
            *_limits(content),
        ]
    )


def sentence(reason: str) -> dict[str, Any]:
    """Return the Home tab of a person without access: a sentence with the reason."""
    return _view([block_kit.section(text.sentence(reason, 1000))])


def _view(shown: Sequence[SlackBlock]) -> dict[str, Any]:
    return {"type": "home", "blocks": [dict(block) for block in shown]}


def _waiting(content: HomeContent, approvals_channel: str, show: Show) -> list[SlackBlock]:
    if not content.waiting:
        return [block_kit.context("Nothing is waiting for you.")]
    shown: list[SlackBlock] = []
    for row in content.waiting:
        _, body = pages.waiting(row, approvals_channel, show)
        shown += body
    left = content.waiting_total - len(content.waiting)
    return [*shown, *([block_kit.context(f"And {left} more. {MORE_REQUESTS}")] if left else [])]


def _request(request: Request, show: Show, *, cancels: bool) -> SlackBlock:
    in_part = " in part" if request.has_failed_in_part else ""
    reason = {
        State.DENIED: request.progress.denial_reason,
        State.FAILED: request.progress.failure,
    }.get(request.state, "")
    why = f": {text.escape(reason_of(request, reason, show), 200)}" if reason else ""
    state = f"{STATES[request.state]}{in_part}{_by(request)}{why}"
    asked = f"asked {text.time(request.created_at)}"
    change = change_of(request, show)
    markup = f"{state}\n{change[:1].upper()}{change[1:]} · {asked}"
    if request.state not in {State.PENDING, State.SCHEDULED} or not cancels:
        return block_kit.section(markup)
    (cancel,) = decision_buttons(request, decides=False)
    return block_kit.section(markup, cancel)


def _by(request: Request) -> str:
    decided = {State.APPLIED, State.FAILED, State.DENIED}
    if request.decided_by is None or request.state not in decided:
        return ""
    name = text.escape(request.decided_by.name, 80)
    if request.requested.without_approval:
        return f" without approval by {name}"
    return f" by {name}" if request.state is State.DENIED else f", approved by {name}"


def _ending(content: HomeContent, show: Show) -> list[SlackBlock]:
    if not content.ending:
        return []
    shown = content.ending[:ENDING_SHOWN]
    blocks = [pages.group_blocks(group, show, asks=content.asks_changes)[1] for group in shown]
    left = len(content.ending) - len(shown)
    return [
        block_kit.section("*Ending within 24 hours*"),
        *(block for of_group in blocks for block in of_group),
        *([block_kit.context(f"And {left:,} more. {MORE_ACCESS}")] if left else []),
    ]


def _limits(content: HomeContent) -> list[SlackBlock]:
    lines = []
    for block in content.blocks:
        again = f" Gatehouse will try again {text.time(block.until)}." if block.until else ""
        where = f"*{text.escape(block.name, 80)}* ({block.data_center})"
        lines.append(f":no_entry: {where} is blocked (code {block.code}).{again}")
    for use in content.closest:
        standing = use.standing
        kind = max(LimitKind, key=lambda kind: standing.meter(kind).share)
        where = f"*{text.escape(use.name, 80)}* ({standing.key.data_center})"
        meter = standing.meter(kind)
        lines.append(f"{MARKS[standing.state]} {where}: {meter} {WORDS[kind]}")
    if not lines:
        return [block_kit.context("No organization is blocked or close to a limit.")]
    return [block_kit.section("\n".join(lines))]
