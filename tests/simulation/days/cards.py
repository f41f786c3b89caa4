"""Checks that the text on a card matches the stored request."""

import re
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime

from bot.approvals.rules import State
from bot.slack.messages import ids, text
from bot.slack.messages.block_kit import Message
from bot.testusers.rules.people import Access, Did, Wants
from bot.testusers.rules.requests import Request

MARKS = {
    State.PENDING: (":hourglass:",),
    State.APPLYING: (":gear:",),
    State.APPLIED: (":white_check_mark:", ":warning:"),
    State.FAILED: (":x:", ":grey_question:"),
    State.DENIED: (":no_entry:",),
    State.CANCELLED: (":wastebasket:",),
    State.EXPIRED: (":alarm_clock:",),
}
BUTTONS = {f"{ids.TESTUSERS_ACT}approve": State.PENDING, f"{ids.TESTUSERS_ACT}retry": State.FAILED}
NONE_MISSING = re.compile(r"(?<!\d)0 approvals")
OVERDUE = "*Expired but not removed yet:*"


def words(message: Message) -> list[str]:
    """Return all the text in a message."""
    return list(_texts([message.text, *message.slack_blocks]))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def wrong_card(
    card: Message, request: Request, granted: Collection[Access], at: datetime
) -> Iterator[str]:
    """Find false statements on a card. `granted` is all access to the card's flow."""
    texts = words(card)
    said = "\n".join(texts)
    if not any(mark in said for mark in MARKS[request.state]):
        yield f"it is {request.state}"
    if NONE_MISSING.search(said):
        yield "none is missing"
    mine = [item for item in granted if item.request_id == request.id]
    yield from _wrong_people(said, request, {item.spelling for item in mine})
    yield from (
        f"{item.spelling} goes at {item.ends_at}"
        for item in mine
        if item.ends_at and text.time(item.ends_at) not in said
    )
    if OVERDUE in said and not any(item.ends_at and item.ends_at <= at for item in mine):
        yield "nobody's time is over"
    for button, state in BUTTONS.items():
        is_offered = request.state is state and not request.undo
        if (button in texts) is not is_offered:
            yield f"{button} is {'' if is_offered else 'not '}to be offered"


def _wrong_people(said: str, request: Request, mine: Collection[str]) -> Iterator[str]:
    """Yield a problem for each person whose access doesn't match the card."""
    replaced = re.search(r"\*Replaced by a later request:\* (.*)", said)
    over = set(re.findall(r"\*Access ended:\* `(.+?)`", said))
    over |= set(re.findall(r"`(.+?)`", replaced[1])) if replaced else set()
    for who in mine:
        if who in over or "*Undone*" in said:
            yield f"{who} has access by it"
    for who in _let_in(request):
        if who not in mine and who not in over and "*Undone*" not in said:
            yield f"{who} has no access by it any more"
    for who in set(mine) - _let_in(request):
        yield f"{who} has access, and it is {request.state}"


def _let_in(request: Request) -> set[str]:
    """Return the people that a request added, including those who were removed later."""
    made = request.those(Did.MADE)
    return {person.spelling for person in made if person.wants is Wants.ADD}
