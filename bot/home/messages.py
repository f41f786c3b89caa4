"""The Home tab: requests that a person can decide on, the person's own requests, and the limits."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from bot.approvals.rules import Act
from bot.organizations.rules import Directory, OrganizationKey
from bot.quotas.messages import MARKS, again
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import DOCUMENTED, Incident, Standing
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import SlackBlock
from bot.slack.messages.replies import ABOUT_TEST_USERS
from bot.testusers.messages import pages
from bot.testusers.messages.card import change_button
from bot.testusers.messages.pages import Group, OpenRow, Reader
from bot.testusers.rules.requests import Request

T = TypeVar("T")

WAITING = "Waiting for you"
OWN = "Your requests"
LIMITS = "Limits"
ROWS_SHOWN, OWN_SHOWN = 10, 15
MORE_ACCESS = "`/testusers mine` shows everyone you requested access for."
NO_ACCESS = "You don't have access to Gatehouse yet."
MORE_REQUESTS = "`/testusers requests` shows all open requests."
NO_REQUESTS = (
    "You have no open requests, and none of your requests were decided in the last 7 days."
)
WORDS = {LimitKind.MINUTE: "this minute", LimitKind.DAY: "today", LimitKind.CONCURRENT: "at once"}


def home(
    reader: Reader,
    *,
    waiting: Sequence[OpenRow],
    own: Sequence[Request],
    ending: Sequence[Group],
    limits: Sequence[SlackBlock],
    doubt: str | None,
) -> dict[str, Any]:
    """Return the Home tab for a person who has access to Gatehouse.

    Args:
        reader: Whether the person can see identities, and whether the person can request changes.
        waiting: Requests that the person can decide on and hasn't approved yet, oldest first.
        own: The person's requests that are open or were decided recently, newest first.
        ending: Access that the person requested and that ends soon, earliest end first.
        limits: What `limits` returns.
        doubt: Why some of the person's rights are unknown, if they are.
    """
    buttons = [
        block_kit.button("Organizations", f"{ids.RUN_COMMAND}.orgs", "/orgs"),
        block_kit.button("Rate limits", f"{ids.RUN_COMMAND}.ratelimits", "/ratelimits"),
    ]
    if reader.asks:
        buttons.insert(0, change_button())
    return _view(
        [
            block_kit.actions(*buttons),
            block_kit.header(WAITING),
            *([] if waiting else [block_kit.context(doubt or "Nothing is waiting for you.")]),
            *_first(
                waiting, lambda row: pages.waiting(row, reader.show).slack_blocks, MORE_REQUESTS
            ),
            block_kit.header(OWN),
            *_first(
                pages.summaries(own, reader, Act.CANCEL),
                lambda row: [block_kit.section(*row)],
                MORE_REQUESTS,
                OWN_SHOWN,
            ),
            *([] if own else [block_kit.context(NO_REQUESTS, ABOUT_TEST_USERS)]),
            *([block_kit.section("*Access ending within 24 hours*")] if ending else []),
            *_first(
                ending, lambda group: pages.group_message(group, reader).slack_blocks, MORE_ACCESS
            ),
            block_kit.header(LIMITS),
            *limits,
        ]
    )


def sentence(reason: str) -> dict[str, Any]:
    """Return a Home tab that shows only a sentence, such as why the person has no access."""
    return _view([block_kit.section(text.sentence(reason, 1000))])


def _view(shown: Sequence[SlackBlock]) -> dict[str, Any]:
    return {"type": "home", "blocks": block_kit.told_apart(shown)}


def _first(
    rows: Sequence[T],
    show: Callable[[T], Sequence[SlackBlock]],
    more: str,
    most: int = ROWS_SHOWN,
) -> list[SlackBlock]:
    """Return the blocks of the first rows, and a line that says where the others are."""
    blocks = list[SlackBlock]()
    for row in rows[:most]:
        blocks += show(row)
    if (left := len(rows) - most) > 0:
        blocks.append(block_kit.context(f"And {left:,} more. {more}"))
    return blocks


def limits(
    names: Directory, blocks: Sequence[Incident], closest: Sequence[Standing]
) -> list[SlackBlock]:
    """Return the open blocks, and the organizations closest to a limit, closest first."""

    def where(key: OrganizationKey) -> str:
        return f"*{text.escape(names.name_of(key), 80)}*{key.center}"

    lines = []
    for incident in blocks:
        block = incident.blocks.longest
        when = f" {again(block, incident.now, incident.key)}" if block else ""
        code = f" (code {incident.code})" if incident.code in DOCUMENTED else ""
        lines.append(f":no_entry: {where(incident.key)} is blocked{code}.{when}")
    for standing in closest:
        kind = max(standing.meters, key=lambda kind: standing.meters[kind].share)
        meter = standing.meters[kind]
        lines.append(f"{MARKS[standing.state]} {where(standing.key)}: {meter} {WORDS[kind]}")
    if not lines:
        return [block_kit.context("No organization is blocked or close to a limit.")]
    return [block_kit.section("\n".join(lines))]
