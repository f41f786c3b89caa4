"""What cards, pages and notes about test users say alike."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from bot.model.requests import Request, Who
from bot.model.testusers import Change, Flow, mask, mask_in
from bot.ui import blocks, text
from bot.ui.message import SlackBlock

SECTION_CHARACTERS = 2900
BRIEF_COUNT = 5
BRIEF_CHARACTERS = 60

IDENTITY_CHARACTERS = 300


class Show(Protocol):
    """An identity as the reader may see it, as finished markup of so many characters of it."""

    def __call__(self, identity: str, limit: int = IDENTITY_CHARACTERS, /) -> str: ...  # noqa: D102


def in_full(identity: str, limit: int = IDENTITY_CHARACTERS, /) -> str:
    """An identity for who may see all of it."""
    return text.code(identity, limit)


def masked(identity: str, limit: int = IDENTITY_CHARACTERS, /) -> str:
    """An identity for a viewer: the last four characters."""
    return text.code(mask(identity), limit)


def who(one: Who) -> str:
    """A person, without mentioning them."""
    return text.person(one.name, one.slack_user_id)


def approvers(request: Request, most: int = 20) -> str:
    """Who approved a request, the first ones by name; empty when nobody did."""
    given = request.progress.approvals
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return ", ".join(who(one.who) for one in given[:most]) + more


def flow_name(flow: Flow) -> str:
    """A flow by its alias and SID."""
    sid = text.code(flow.sid)
    return f"*{text.escape(flow.alias)}* ({sid})" if flow.alias else sid


def brief(identities: Sequence[str], show: Show = in_full) -> str:
    """A few identities in a row, and how many more there are."""
    shown = ", ".join(show(one, BRIEF_CHARACTERS) for one in identities[:BRIEF_COUNT])
    more = len(identities) - BRIEF_COUNT
    return f"{shown} and {more} more" if more > 0 else shown


def exact(identities: Sequence[str], show: Show = in_full) -> str:
    """All identities in a row, none shortened."""
    return ", ".join(show(one) for one in identities)


def summary(
    change: Change,
    end_changes: Sequence[str] = (),
    show: Show = in_full,
    name: Callable[[Sequence[str], Show], str] = brief,
) -> str:
    """A change in a few words: `add +1, +2; remove +3`."""
    added = [one for one in change.additions if one not in end_changes]
    parts = [
        f"{verb} {name(some, show)}"
        for verb, some in (
            ("add", added),
            ("remove", change.removals),
            ("change the end of", end_changes),
        )
        if some
    ]
    return "; ".join(parts) or "nothing"


def wish_of(request: Request, show: Show = in_full) -> str:
    """What a request asks for, in a few words."""
    return summary(request.wish.change, request.wish.end_changes, show)


def reason_of(request: Request, reason: str, show: Show = in_full) -> str:
    """A reason; a viewer does not read there what is masked everywhere else."""
    if show is in_full:
        return reason
    return mask_in(reason, (*request.wish.change.additions, *request.wish.change.removals))


def exact_wish_of(request: Request, show: Show = in_full) -> str:
    """What a request asks for, with everybody in it."""
    return summary(request.wish.change, request.wish.end_changes, show, exact)


def sections(lines: Iterable[str]) -> list[SlackBlock]:
    """Lines of markup in as many paragraphs as they need, none cut."""
    chunks: list[str] = []
    for line in lines:
        if chunks and len(chunks[-1]) + len(line) < SECTION_CHARACTERS:
            chunks[-1] += f"\n{line}"
        else:
            chunks.append(line)
    return [blocks.section(chunk) for chunk in chunks]


def size_of(some: Iterable[SlackBlock]) -> int:
    """How many characters of markup the blocks hold, as Slack counts a message."""
    return sum(_characters(block) for block in some)


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0
