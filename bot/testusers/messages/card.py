"""Request cards, which are rendered from stored state, and buttons for requests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from bot.approvals.rules import Act, State
from bot.flows.rules.flows import Flow
from bot.flows.rules.lists import apply_change
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import (
    MESSAGE_CHARACTERS,
    SECTION_CHARACTERS,
    Message,
    SlackBlock,
)
from bot.testusers.messages import phrases
from bot.testusers.messages.phrases import brief, change_in_plain, change_of, who
from bot.testusers.parse.form import Prefilled, ShownRequest
from bot.testusers.rules.requests import Done, Request

EXTENSIONS = {"+2 h": 2 * 3600, "+1 day": 24 * 3600}
OFFERED = {
    State.PENDING: [Act.APPROVE, Act.DENY, Act.CANCEL],
    State.FAILED: [Act.RETRY],
}
STYLES = {Act.APPROVE: "primary", Act.DENY: "danger"}
# Each confirmation dialog's title, opening words and button label.
DIALOGS = {
    Act.CANCEL: ("Cancel this request?", "This request will be withdrawn", "Cancel it"),
    Act.RETRY: ("Try again?", "The approved change will be sent again", "Retry"),
    Act.UNDO: ("Ask to undo this?", "This creates a request to reverse the change", "Ask to undo"),
}
ENDED_SHOWN = 5
RELATED_SHOWN = 3
REASON_CHARACTERS = 500
# The length of the lines that don't describe the change, if the card would be too long otherwise.
CUT_CHARACTERS = 150
CLOSED = frozenset({State.APPLIED, State.DENIED, State.CANCELLED, State.EXPIRED})


def card(request: Request, needed: int, approvers: str, related: Sequence[Request] = ()) -> Message:
    """Return a request's card, with the buttons for its current state.

    Args:
        request: The request, as stored.
        needed: The number of approvals that the request needs.
        approvers: The line that mentions who can approve, while the request is pending.
        related: Other open requests that affect the same people.
    """
    blocks = _blocks(request, needed, approvers, related, SECTION_CHARACTERS)
    if phrases.size_of(blocks) > MESSAGE_CHARACTERS:
        blocks = _blocks(request, needed, approvers, related, CUT_CHARACTERS)
    asker, change = who(request.requester), change_of(request)
    if request.state is State.PENDING:
        return Message(f"{asker} wants to {change}. Approve or deny?", blocks)
    return Message(f"{phrases.outcome_of(request)}: {asker} asked to {change}.", blocks)


def _blocks(
    request: Request, needed: int, approvers: str, related: Sequence[Request], limit: int
) -> list[SlackBlock]:
    """Return the card's blocks. Lines that don't describe the change are cut to `limit`.

    If it's so low because the card is too long, people with different ends share a title.
    """
    is_pending = request.state is State.PENDING
    asked = "wants" if is_pending else "asked"
    change = change_of(request, name=phrases.counted)
    reason = phrases.quote(request.requested.reason, REASON_CHARACTERS)
    more = _also_open(related) if is_pending else _news(request)
    return [
        *block_kit.sections(
            [
                *_cut(_status(request, needed), limit),
                f"*{who(request.requester)}* {asked} to {change}",
                *_people(request, each_end=limit > CUT_CHARACTERS),
                *_cut(reason, limit),
            ]
        ),
        block_kit.context(" · ".join(_facts(request))),
        *block_kit.sections(_cut(more, limit)),
        *block_kit.sections(filter(None, [approvers])),
        *block_kit.row(act_buttons(request, *Act)),
    ]


def _cut(lines: Iterable[str], limit: int) -> list[str]:
    return [text.cut(line, limit) for line in lines]


def _status(request: Request, needed: int) -> Iterator[str]:
    """Yield lines that describe the request's state, and the approvals so far."""
    outcome, failure = phrases.outcome_of(request), request.attempts.failure
    if failure:
        steps = {State.FAILED: phrases.after_all(request), State.APPLYING: " I'm still trying."}
        step = steps.get(request.state, "")
        outcome += f". {text.sentence(failure, REASON_CHARACTERS)}{step}"
    yield outcome
    yield from phrases.quote(request.round.denial_reason, REASON_CHARACTERS)
    if request.round.rule is not None:
        yield phrases.rule_named(request.round.rule)
    if request.state is not State.PENDING:
        return
    if request.round.news:
        news = text.sentence(" ".join(request.round.news), REASON_CHARACTERS)
        yield f":arrows_counterclockwise: *Needs approval again*: {news}"
    if needed > 1:
        given = [approval.who for approval in request.round.approvals]
        names = f" ({phrases.names(given)})" if given else ""
        yield f"*{len(given)} of {needed} approvals*{names}"


def _facts(request: Request) -> Iterator[str]:
    """Yield the small print: the list's size, times, and the requester's ID."""
    if sizes := _sizes(request):
        yield sizes
    if request.state is State.PENDING:
        yield f"this request expires {text.time(request.expires_at)}"
        # Anyone can give themselves the name of somebody else.
        yield f"requester {request.requester.slack_user_id}"
        return
    yield f"requested {text.time(request.created_at)}"
    done = request.result.done
    at = done.at if done is not None else request.round.decided_at
    if at is not None and request.state in CLOSED:
        yield f"{request.state} {text.time(at)}"


def _sizes(request: Request) -> str:
    """Return the size of the list before and after the change, if the change has an effect."""
    done, requested = request.result.done, request.requested
    if done is not None:
        before, after = done.size_before, done.size_after
    elif request.state in {State.PENDING, State.APPLYING}:
        # Added people who are still on the list won't be on it when this change is applied.
        new = set(requested.change.additions).difference(requested.end_changes)
        seen = [identity for identity in requested.compared.seen if identity not in new]
        before, after = len(seen), len(apply_change(seen, requested.change))
    else:
        return ""
    now = phrases.how_many(after)
    return now if before == after else f"{before} → {now}"


def _also_open(related: Sequence[Request]) -> Iterator[str]:
    """Yield a line with the other open requests that affect the same people."""
    listed = [f"{change_of(other)}, by {who(other.requester)}" for other in related]
    more = len(listed) - RELATED_SHOWN
    if more > 0:
        listed[RELATED_SHOWN:] = [f"{more} more"]
    if listed:
        yield f":warning: *Other open requests for the same people:* {'; '.join(listed)}"


def _news(request: Request) -> Iterator[str]:
    """Yield lines about other events: outside changes, access that ended, and undos."""
    result = request.result
    for title, people in phrases.on_the_list(request).items():
        yield f"*{title}:* {brief(people)}"
    if result.done is not None:
        yield from _surprises(request, result.done)
    if result.respelled:
        yield f"The service stores this as {brief([*result.respelled.values()])}"
    shown = result.ended[-ENDED_SHOWN:]
    if len(result.ended) > len(shown):
        ended = phrases.how_many(len(result.ended))
        yield f"*Access ended for {ended}. Most recently:*"
    for end in shown:
        gone = " (already removed)" if end.was_gone else ""
        yield f"*Access ended:* {phrases.in_full(end.identity)} {text.time(end.at)}{gone}"
    if result.superseded and not result.is_undone:
        yield f"*Replaced by a later request:* {brief(result.superseded)}"
    if result.overdue:
        why = text.sentence(result.overdue, 300)
        yield f"*Expired but not removed yet:* {why} I'll keep trying."
    if result.undone_by:
        yield "*Undone*" if result.is_undone else "*Undo requested*"


def _surprises(request: Request, done: Done) -> Iterator[str]:
    """Yield lines about requested changes that were already made and about outside changes."""
    already = done.already.without(request.requested.end_changes)
    if already.additions:
        yield f"*Already on the list:* {brief(already.additions)}"
    if already.removals:
        yield f"*Already removed:* {brief(already.removals)}"
    edits = (("added", done.outside.additions), ("removed", done.outside.removals))
    if kept := "; ".join(f"{verb} {brief(people)}" for verb, people in edits if people):
        yield f"*Someone else made these changes in the meantime, and I kept them:* {kept}"


def _people(request: Request, *, each_end: bool) -> Iterator[str]:
    """Yield lines that name everyone in the request, because approvers must see each person."""
    groups = phrases.titled(request, each_end=each_end)
    for title, identities in groups.items():
        # A single title would only repeat the line above.
        if len(groups) > 1:
            yield f"*{title} ({len(identities)}):*"
        yield from phrases.lines_of(identities)


def act_buttons(request: Request, *acts: Act) -> list[SlackBlock]:
    """Return a button for each of these actions that the request's state allows."""
    if request.result.undone_by:
        return []
    offered = list(OFFERED.get(request.state, ()))
    if request.can_be_undone:
        offered.append(Act.UNDO)
    buttons = []
    for act in filter(acts.__contains__, offered):
        label, dialog = act.capitalize(), None
        if act in DIALOGS:
            title, sentence, proceed = DIALOGS[act]
            dialog = block_kit.confirm(title, f"{sentence}: {change_in_plain(request)}.", proceed)
        spoken = f"{label} {request.requester.name}'s request for {request.flow.name}"
        action_id, style = f"{ids.TESTUSERS_ACT}{act}", STYLES.get(act)
        shown = ShownRequest(request.id, request.requested.card_version).value()
        button = block_kit.button(label, action_id, shown, style=style, spoken=spoken, sure=dialog)
        buttons.append(button)
    return buttons


def main_buttons(*, asks: bool) -> list[SlackBlock]:
    """Return buttons for the most common tasks, including `Change test users` if `asks` is set."""
    return [
        *([change_button()] if asks else []),
        block_kit.button("Organizations", f"{ids.RUN_COMMAND}.orgs", "/orgs"),
        block_kit.button("Rate limits", f"{ids.RUN_COMMAND}.ratelimits", "/ratelimits"),
    ]


def change_button() -> SlackBlock:
    """Return the button that opens the empty form."""
    return block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")


def form_button(
    label: str, filled: Prefilled, action_id: str = ids.TESTUSERS_EXTEND, style: str | None = None
) -> list[SlackBlock]:
    """Return a button that opens the form with these values, or an empty list if they don't fit."""
    value = filled.value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return []
    return [block_kit.button(label, action_id, value, style=style)]


def extend_buttons(flow: Flow, identities: Sequence[str]) -> list[SlackBlock]:
    """Return the buttons `Extend`, `+2 h` and `+1 day`, or none if there are too many people."""
    filled = Prefilled(flow.sid, "add", tuple(identities))
    buttons = form_button("Extend", filled)
    for number, (label, seconds) in enumerate(EXTENSIONS.items()):
        more = replace(filled, more_seconds=seconds)
        buttons += form_button(label, more, f"{ids.TESTUSERS_MORE}.{number}")
    return buttons if len(buttons) > len(EXTENSIONS) else []
