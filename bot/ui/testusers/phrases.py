"""What cards, pages and notes about test users say alike."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from bot.model.testusers.approval import State
from bot.model.testusers.changes import Flow, mask, mask_in
from bot.model.testusers.requests import Request, Who
from bot.ui import block_kit, text
from bot.ui.message import SlackBlock

BRIEF_COUNT = 5
BRIEF_CHARACTERS = 60
# Several short identities share a line: sixty phone numbers are twelve lines.
IDENTITIES_A_LINE = 5
LINE_CHARACTERS = 200

IDENTITY_CHARACTERS = 300

# More approvals were needed when they were given.
COMPLETES = "Any approver can press Approve to complete it, even if they already did."


class Show(Protocol):
    """An identity as the reader may see it, as finished markup; shortened where it has a limit."""

    def __call__(self, identity: str, limit: int | None = None, /) -> str: ...  # noqa: D102


Name = Callable[[Sequence[str], Show], str]


def in_full(identity: str, limit: int | None = None, /) -> str:
    """An identity for who may see all of it: exactly what is applied."""
    return text.identity(identity, limit)


def masked(identity: str, limit: int | None = None, /) -> str:
    """An identity for a viewer: the last four characters."""
    return text.code(mask(identity), limit or IDENTITY_CHARACTERS)


def who(one: Who) -> str:
    """A person by name, without mentioning them."""
    return text.escape(one.name, 80)


def mention(slack_id: str) -> str:
    """A person or a group, addressed: their phone rings."""
    return f"<!subteam^{slack_id}>" if slack_id.startswith("S") else f"<@{slack_id}>"


def approvers(request: Request, most: int = 20) -> str:
    """Who approved a request, the first ones by name; empty when nobody did."""
    given = request.progress.approvals
    more = f" and {len(given) - most} more" if len(given) > most else ""
    return names([one.who for one in given[:most]]) + more


def names(people: Sequence[Who]) -> str:
    """People by name in a row; with the ID too where two have the same name.

    A name that reads like several is in quotation marks.
    """
    shared = Counter(one.name for one in set(people))
    return ", ".join(_one_name(one, is_shared=shared[one.name] > 1) for one in people)


def _one_name(one: Who, *, is_shared: bool) -> str:
    name = f"“{who(one)}”" if "," in one.name or " and " in one.name else who(one)
    return f"{name} ({text.escape(one.slack_user_id)})" if is_shared else name


def decider(request: Request) -> str:
    """Who decided last, by name."""
    return who(request.decided_by) if request.decided_by else "nobody"


def flow_name(flow: Flow) -> str:
    """A flow by its alias, or by its SID where it has none."""
    return f"*{text.escape(flow.alias)}*" if flow.alias else text.code(flow.sid)


def how_many(number: int) -> str:
    """`1 test user`, `2 test users`."""
    return text.count(number, "test user")


def brief(identities: Sequence[str], show: Show = in_full) -> str:
    """A few identities in a row, and how many more there are."""
    shown = ", ".join(show(one, BRIEF_CHARACTERS) for one in identities[:BRIEF_COUNT])
    more = len(identities) - BRIEF_COUNT
    return f"{shown} and {more} more" if more > 0 else shown


def exact(identities: Sequence[str], show: Show = in_full) -> str:
    """All identities in a row, none shortened."""
    return ", ".join(show(one) for one in identities)


def counted(identities: Sequence[str], _show: Show = in_full) -> str:
    """How many they are."""
    return f"*{how_many(len(identities))}*"


def lines_of(identities: Iterable[str], show: Show = in_full) -> list[str]:
    """All identities, none shortened, several short ones to a line."""
    lines: list[list[str]] = []
    for shown in map(show, identities):
        fits = lines and len(lines[-1]) < IDENTITIES_A_LINE
        if fits and sum(map(len, lines[-1])) + len(shown) < LINE_CHARACTERS:
            lines[-1].append(shown)
        else:
            lines.append([shown])
    return ["  ".join(line) for line in lines]


def change_of(
    request: Request, show: Show = in_full, name: Name = brief, *, in_flow: bool = True
) -> str:
    """What a request asks for: `add +1, +2 to welcome for 2 h; remove +3 from welcome`."""
    requested = request.requested
    added = [one for one in requested.change.additions if one not in requested.end_changes]
    flow = flow_name(request.flow)

    def of(preposition: str) -> str:
        return f" {preposition} {flow}" if in_flow else ""

    parts = (
        added and f"add {name(added, show)}{of('to')}{start_of(request)}{term_of(request)}",
        requested.change.removals and f"remove {name(requested.change.removals, show)}{of('from')}",
        requested.end_changes and _end_change_of(request, name(requested.end_changes, show), of),
    )
    return "; ".join(part for part in parts if part) or "nothing"


def _end_change_of(request: Request, names: str, of: Callable[[str], str]) -> str:
    """What becomes of people who are on the list already."""
    if request.requested.duration_seconds is not None:
        return f"remove {names}{of('from')} {effect_after(request)}"
    if set(request.requested.end_changes).isdisjoint(request.requested.ends):
        return f"keep {names}{of('on')} with no end date"
    return f"change the end date of {names}{of('on')}{term_of(request)}"


def start_of(request: Request) -> str:
    """From when, while that is still to come."""
    starts_at = request.requested.starts_at
    is_to_come = request.state in {State.PENDING, State.SCHEDULED}
    return f" from {text.time(starts_at)}" if starts_at and is_to_come else ""


def term_of(request: Request) -> str:
    """For how long, or until when; empty where that is not the same for all who come."""
    requested = request.requested
    if requested.duration_seconds is not None:
        return f" for {text.duration(requested.duration_seconds)}"
    ends = {requested.ends.get(one) for one in requested.change.additions}
    end = ends.pop() if len(ends) == 1 else None
    return f" until {text.time(end)}" if end else ""


def has_one_term(request: Request) -> bool:
    """Whether all who come have the same end, so that `term_of` says it all."""
    requested = request.requested
    if requested.duration_seconds is not None:
        return True
    return len({requested.ends.get(one) for one in requested.change.additions}) <= 1


def effect_after(request: Request) -> str:
    """When somebody whose time is counted from the change goes: `2 h after approval`."""
    approved = "the change" if request.requested.without_approval else "approval"
    if request.requested.starts_at:
        approved = "it starts"
    return f"{text.duration(request.requested.duration_seconds or 0)} after {approved}"


def state_of(request: Request) -> str:
    """The state of a request in a word or three."""
    return "failed in part" if request.has_failed_in_part else request.state.value


def what_failed(request: Request) -> str:
    """How much of a request that has failed went through, as far as is known."""
    part, is_unsure = request.progress.part, request.progress.is_unsure
    if part is None:
        return "not sure whether the change went through" if is_unsure else "nothing was changed"
    through, asked = part.change.identities, request.requested.change.identities
    rest = ", not sure about the rest" if is_unsure else ""
    return f"only {len(through):,} of {text.count(len(asked), 'change')} went through{rest}"


def parts_of(request: Request) -> list[str]:
    """Who of a request that failed in part got in or out, and who did not; else nothing."""
    part, left = request.progress.part, request.left
    if part is None:
        return []
    ends = set(part.ends_at.values())
    until = f" until {text.time(ends.pop())}" if len(ends) == 1 else ""
    groups = {
        f"Added{until}": part.change.additions,
        "Removed": part.change.removals,
        "Not added": [one for one in left.additions if one not in request.requested.end_changes],
        "Not removed": left.removals,
        "End date not changed": request.requested.end_changes,
    }
    return [f"{title}: {brief(some)}" for title, some in groups.items() if some]


def reason_of(request: Request, reason: str, show: Show = in_full) -> str:
    """A reason; a viewer does not read there what is masked everywhere else."""
    if show is in_full:
        return reason
    return mask_in(reason, request.requested.change.identities)


def quote(reason: str, limit: int) -> list[str]:
    """A reason as a quotation; no line where there is none."""
    return [f"> {text.escape(reason, limit)}"] if reason else []


def small_print(parts: Iterable[str]) -> list[SlackBlock]:
    """Facts on one line; none where there are none."""
    line = " · ".join(part for part in parts if part)
    return [block_kit.context(line)] if line else []


def size_of(some: Iterable[SlackBlock]) -> int:
    """How many characters of markup the blocks hold, as Slack counts a message."""
    return sum(_characters(block) for block in some)


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 0
