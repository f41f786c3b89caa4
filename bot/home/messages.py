"""The Home tab: requests that a person can decide on, the person's own requests, and the limits."""

from collections.abc import Sequence
from typing import Any

from bot.approvals.rules import Act
from bot.quotas.messages import MARKS, again
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import Incident
from bot.quotas.rules.use import Standing
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import SlackBlock
from bot.slack.messages.help import ABOUT_TEST_USERS
from bot.testusers.messages import pages
from bot.testusers.messages.card import act_buttons, main_buttons
from bot.testusers.messages.pages import AccessGroup, OpenRow, Reader
from bot.testusers.messages.phrases import summary
from bot.testusers.rules.requests import Request

WAITING = "Waiting for you"
OWN = "Your requests"
LIMITS = "Limits"
WAITING_SHOWN = 10
ENDING_SHOWN = 10
MORE_ACCESS = "`/testusers mine` shows everyone you requested access for."
NO_ACCESS = "You don't have access to Gatehouse yet."
MORE_REQUESTS = "`/testusers requests` shows all open requests."
NO_REQUESTS = (
    "You have no open requests, and none of your requests were decided in the last 7 days."
)
REVIEW = block_kit.section(
    "Who has access with no end date?",
    block_kit.button("Review", ids.RUN_COMMAND, "/testusers review"),
)
WORDS = {LimitKind.MINUTE: "this minute", LimitKind.DAY: "today", LimitKind.CONCURRENT: "at once"}


def home(
    reader: Reader,
    *,
    waiting: Sequence[OpenRow],
    own: Sequence[Request],
    ending: Sequence[AccessGroup],
    blocks: Sequence[tuple[str, Incident]],
    closest: Sequence[tuple[str, Standing]],
    reviews: bool,
) -> dict[str, Any]:
    """Return the Home tab for a person who has access to Gatehouse.

    Args:
        reader: Whether the person can see identities, and whether the person can request changes.
        waiting: Requests that the person can decide on and hasn't approved yet, oldest first.
        own: The person's requests that are open or were decided recently, newest first.
        ending: Access that the person requested and that ends soon, earliest end first.
        blocks: The names of blocked organizations, each with its incident.
        closest: The names and standings of the organizations closest to a limit, closest first.
        reviews: True for approvers, who get a button for `/testusers review`.
    """
    return _view(
        [
            block_kit.actions(*main_buttons(asks=reader.asks)),
            *([REVIEW] if reviews else []),
            block_kit.header(WAITING),
            *_waiting(waiting, reader),
            block_kit.header(OWN),
            *(_own(request, reader) for request in own),
            *([] if own else [block_kit.context(NO_REQUESTS, ABOUT_TEST_USERS)]),
            *_ending(ending, reader),
            block_kit.header(LIMITS),
            *_limits(blocks, closest),
        ]
    )


def sentence(reason: str) -> dict[str, Any]:
    """Return a Home tab that shows only a sentence, such as why the person has no access."""
    return _view([block_kit.section(text.sentence(reason, 1000))])


def _view(shown: Sequence[SlackBlock]) -> dict[str, Any]:
    return {"type": "home", "blocks": block_kit.told_apart(shown)}


def _waiting(waiting: Sequence[OpenRow], reader: Reader) -> list[SlackBlock]:
    if not waiting:
        return [block_kit.context("Nothing is waiting for you.")]
    shown: list[SlackBlock] = []
    for row in waiting[:WAITING_SHOWN]:
        shown += pages.waiting(row, reader.show).slack_blocks
    left = len(waiting) - WAITING_SHOWN
    if left > 0:
        shown.append(block_kit.context(f"And {left} more. {MORE_REQUESTS}"))
    return shown


def _own(request: Request, reader: Reader) -> SlackBlock:
    cancel = act_buttons(request, Act.CANCEL) if reader.asks else []
    return block_kit.section(summary(request, reader.show), next(iter(cancel), None))


def _ending(ending: Sequence[AccessGroup], reader: Reader) -> list[SlackBlock]:
    if not ending:
        return []
    shown = [block_kit.section("*Access ending within 24 hours*")]
    for group in ending[:ENDING_SHOWN]:
        shown += pages.group_message(group, reader).slack_blocks
    left = len(ending) - ENDING_SHOWN
    if left > 0:
        shown.append(block_kit.context(f"And {left:,} more. {MORE_ACCESS}"))
    return shown


def _limits(
    blocks: Sequence[tuple[str, Incident]], closest: Sequence[tuple[str, Standing]]
) -> list[SlackBlock]:
    lines = []
    for name, incident in blocks:
        where = f"*{text.escape(name, 80)}*{incident.key.center}"
        block = incident.blocks.longest
        when = f" {again(block, incident.now)}" if block else ""
        lines.append(f":no_entry: {where} is blocked (code {incident.code}).{when}")
    for name, standing in closest:
        kind = max(standing.meters, key=lambda kind: standing.meters[kind].share)
        where = f"*{text.escape(name, 80)}*{standing.key.center}"
        meter = standing.meters[kind]
        lines.append(f"{MARKS[standing.state]} {where}: {meter} {WORDS[kind]}")
    if not lines:
        return [block_kit.context("No organization is blocked or close to a limit.")]
    return [block_kit.section("\n".join(lines))]
