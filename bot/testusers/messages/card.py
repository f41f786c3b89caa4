"""Request cards, which are rendered from stored state, and buttons for requests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.approvals.rules import Act, State
from bot.flows.rules.flows import Flow
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import (
    MESSAGE_CHARACTERS,
    SECTION_CHARACTERS,
    Message,
    SlackBlock,
)
from bot.testusers.messages import phrases
from bot.testusers.messages.phrases import brief, change_in_plain, change_of, undo_in_plain
from bot.testusers.parse.form import ChangeKind, Prefilled, ShownRequest
from bot.testusers.rules.people import Did, Effect, Over, RequestPerson, Wants
from bot.testusers.rules.requests import Request

OFFERED = {
    State.PENDING: [Act.APPROVE, Act.DENY, Act.CANCEL],
    State.FAILED: [Act.RETRY],
}
STYLES = {Act.APPROVE: "primary", Act.DENY: "danger"}
# Each confirmation dialog's title, opening words and button label.
DIALOGS = {
    Act.CANCEL: ("Cancel this request?", "This request will be withdrawn: {}.", "Cancel it"),
    Act.RETRY: ("Try again?", "The change will be sent again: {}.", "Retry"),
    Act.UNDO: ("Ask to undo this?", "This asks to {}.", "Ask to undo"),
}
ENDED_SHOWN = 5
REASON_CHARACTERS = 500
# The length of the lines that don't describe the change, if the card would be too long otherwise.
CUT_CHARACTERS = 150
CLOSED = frozenset({State.APPLIED, State.DENIED, State.CANCELLED, State.EXPIRED})


@dataclass(frozen=True)
class Surroundings:
    """What a request's card says besides the request itself.

    Attributes:
        needed: The number of approvals that the request needs.
        approvers: The line that mentions who can approve, while the request is pending.
        size: The number of people on the flow's list.
        related: Other open requests for the same people.
        warning: The warning of the flow's policy, if any.
        already: People in the pending request for whom there's nothing to change by now.
    """

    needed: int = 1
    approvers: str = ""
    size: int = 0
    related: Sequence[Request] = ()
    warning: str | None = None
    already: Sequence[RequestPerson] = ()


def card(request: Request, around: Surroundings) -> Message:
    """Return a request's card, with the buttons for its current state."""
    card = _card(request, around, SECTION_CHARACTERS)
    if phrases.size_of(card.slack_blocks) > MESSAGE_CHARACTERS:
        card = _card(request, around, CUT_CHARACTERS)
    return card


def _card(request: Request, around: Surroundings, limit: int) -> Message:
    """Return the card. Lines that don't describe the change are cut to `limit`.

    If it's so low because the card is too long, people with different ends share a title. The text
    says everything that the blocks say, because screen readers read nothing else.
    """
    is_pending = request.state is State.PENDING
    asker, change = phrases.asker(request), change_of(request)
    asked = "wants" if is_pending else "asked"
    title = f"{phrases.outcome_of(request)}: {asker} asked to {change}."
    if is_pending:
        title = f"{asker} wants to {change}. Approve or deny?"
    status = _cut(_status(request, around.needed), limit)
    people = [*_people(request, each_end=limit > CUT_CHARACTERS)]
    reason = _cut(phrases.quote(request.requested.reason, REASON_CHARACTERS), limit)
    reason += phrases.warning(around.warning)
    facts = " · ".join(_facts(request, around.size))
    more = _cut(
        [*_already(request, around), *phrases.also_open(around.related), *_news(request)], limit
    )
    approvers = [around.approvers] if around.approvers else []
    by = asker if request.requested.client else f"*{asker}*"
    counted = f"{by} {asked} to {change_of(request, name=phrases.counted)}"
    blocks = [
        *block_kit.sections([*status, counted, *people, *reason]),
        block_kit.context(facts),
        *block_kit.sections(more),
        *block_kit.sections(approvers),
        *block_kit.row(act_buttons(request, *Act)),
    ]
    lines = [title, *status, *people, *reason, facts, *more, *approvers]
    return Message("\n".join(lines), blocks)


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


def _facts(request: Request, size: int) -> Iterator[str]:
    """Yield the small print: the list's size, times, and the requester's ID."""
    if sizes := _sizes(request, size):
        yield sizes
    if request.state is State.PENDING:
        yield f"this request expires {text.time(request.expires_at)}"
        # Anyone can give themselves the name of somebody else.
        yield f"requester {request.requester.slack_user_id}"
        return
    yield f"requested {text.time(request.created_at)}"
    at = request.result.applied_at or request.round.decided_at
    if at is not None and request.state in CLOSED:
        yield f"{request.state} {text.time(at)}"


def _sizes(request: Request, size: int) -> str:
    """Return the size of the list before and after the change, if the change has an effect."""
    if request.has_effect or request.result.applied_at:
        before, after = request.result.size_before, request.result.size_after
    elif request.state in {State.PENDING, State.APPLYING}:
        effects = [person.effect for person in request.left]
        before, after = size, size + effects.count(Effect.ADD) - effects.count(Effect.REMOVE)
    else:
        return ""
    now = phrases.how_many(after)
    return now if before == after else f"{before} → {now}"


def _already(request: Request, around: Surroundings) -> Iterator[str]:
    """Yield lines about people for whom there was or is nothing to change."""
    found = [*request.those(Did.FOUND), *around.already]
    additions = [person.identity for person in found if person.wants is Wants.ADD]
    removals = [person.identity for person in found if person.wants is Wants.REMOVE]
    if additions:
        yield f"*Already on the list:* {brief(additions)}"
    if removals:
        yield f"*Already removed:* {brief(removals)}"
    if late := request.those(Did.LATE):
        names = brief(phrases.identities_of(late))
        yield f"*Left out, because the requested end had passed:* {names}"


def _news(request: Request) -> Iterator[str]:
    """Yield lines about other events: outside changes, access that ended, and undos."""
    for title, people in phrases.on_the_list(request).items():
        yield f"*{title}:* {brief(people)}"
    outside = request.result.outside
    edits = (("added", outside.additions), ("removed", outside.removals))
    if kept := "; ".join(f"{verb} {brief(people)}" for verb, people in edits if people):
        yield f"*Someone else made these changes in the meantime, and I kept them:* {kept}"
    made = request.those(Did.MADE)
    respelled = [person.spelling for person in made if person.spelling != person.identity]
    if respelled:
        yield f"The service stores this as {brief(respelled)}"
    ended = [person for person in made if person.over in (Over.ENDED, Over.GONE)]
    if len(ended) > ENDED_SHOWN:
        yield f"*Access ended for {phrases.how_many(len(ended))}. Most recently:*"
    ended.sort(key=lambda person: person.over_at or request.created_at)
    for person in ended[-ENDED_SHOWN:]:
        gone = " (already removed)" if person.over is Over.GONE else ""
        at = text.time(person.over_at or request.created_at)
        yield f"*Access ended:* {phrases.in_full(person.spelling)} {at}{gone}"
    replaced = [person.spelling for person in made if person.over is Over.REPLACED]
    if replaced and not request.is_undone:
        yield f"*Replaced by a later request:* {brief(replaced)}"
    if request.result.overdue:
        why = text.sentence(request.result.overdue, 300)
        yield f"*Expired but not removed yet:* {why} I'll keep trying."
    if request.undone_by:
        yield "*Undone*" if request.is_undone else "*Undo requested*"


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
    if request.undone_by:
        return []
    offered = list(OFFERED.get(request.state, ()))
    if request.can_be_undone:
        offered.append(Act.UNDO)
    buttons = []
    for act in filter(acts.__contains__, offered):
        label, dialog = act.capitalize(), None
        if act in DIALOGS:
            title, sentence, proceed = DIALOGS[act]
            does = undo_in_plain(request) if act is Act.UNDO else change_in_plain(request)
            dialog = block_kit.confirm(title, sentence.format(does), proceed)
        spoken = f"{label} {request.requester.name}'s request to {change_in_plain(request)}"
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
    label: str,
    flow: Flow,
    identities: Sequence[str] = (),
    *,
    kind: ChangeKind = "add",
    action_id: str = ids.TESTUSERS_FILL,
) -> list[SlackBlock]:
    """Return a button that opens the form for these people, or an empty list if they don't fit."""
    value = Prefilled(flow.sid, kind, tuple(identities)).value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return []
    spoken = f"{label} {brief(identities, phrases.uncoded, phrases.NAMED)} on {flow.name}"
    return [block_kit.button(label, action_id, value, spoken=spoken if identities else None)]


def extend_buttons(flow: Flow, identities: Sequence[str]) -> list[SlackBlock]:
    """Return the button `Extend`, or none if there are too many people."""
    return form_button("Extend", flow, identities, action_id=ids.TESTUSERS_EXTEND)
