"""Request cards, which are rendered from stored state, and buttons for requests."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bot.approvals.rules import MOVES, OVER, Act, State
from bot.flows.rules import Flow
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import SECTION_CHARACTERS, Message, SlackBlock
from bot.testusers.messages import phrases
from bot.testusers.messages.phrases import (
    WORDS,
    Show,
    brief,
    change_in_plain,
    change_of,
    in_full,
    undo_in_plain,
)
from bot.testusers.parse.command import ChangeKind, Prefilled, ShownRequest
from bot.testusers.rules.people import Did, Effect, Over, RequestPerson, Wants
from bot.testusers.rules.requests import Request

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
# Short identities share a line, which Slack wraps to fit the screen.
IDENTITIES_A_LINE = 60
SHORT_CHARACTERS = 40


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


def card(request: Request, around: Surroundings, limit: int = SECTION_CHARACTERS) -> Message:
    """Return a request's card, with the buttons for its current state.

    Lines that don't describe the change are cut to `limit`. If the card is too long, the limit is
    lower, and people with different ends share a title. The text says everything that the blocks
    say, because screen readers read nothing else.
    """
    asker, change = phrases.asker(request), change_of(request)
    asked = "asked"
    title = f"{phrases.outcome_of(request)}: {asker} asked to {change}."
    if request.state is State.PENDING:
        asked = "wants"
        title = f"{asker} wants to {change}. Approve or deny?"
    by = asker if request.requested.client else f"*{asker}*"
    counted = f"{by} {asked} to {change_of(request, name=phrases.counted)}"
    status = _cut(_status(request, around.needed), limit)
    about = [
        *_people(request, each_end=limit > CUT_CHARACTERS),
        *_cut(phrases.quote(request.requested.reason, REASON_CHARACTERS), limit),
        *phrases.warning(around.warning),
    ]
    facts = " · ".join(_facts(request, around))
    news = [*_already(request, around), *phrases.also_open(around.related), *_news(request)]
    more = _cut(news, limit)
    approvers = [around.approvers] if around.approvers else []
    blocks = [
        *block_kit.sections([*status, counted, *about]),
        block_kit.context(facts),
        *block_kit.sections(more),
        *block_kit.sections(approvers),
    ]
    message = Message("\n".join([title, *status, *about, facts, *more, *approvers]), blocks)
    message = message.with_buttons(*act_buttons(request, *Act))
    if message.is_too_long and limit > CUT_CHARACTERS:
        return card(request, around, CUT_CHARACTERS)
    return message


def _cut(lines: Iterable[str], limit: int) -> list[str]:
    return [text.cut(line, limit) for line in lines]


def _status(request: Request, needed: int) -> Iterator[str]:
    """Yield lines that describe the request's state, and the approvals so far."""
    outcome, decisions = phrases.outcome_of(request), request.round
    if failure := request.attempts.failure:
        steps = {State.FAILED: phrases.after_all(request), State.APPLYING: " I'm still trying."}
        step = steps.get(request.state, "")
        outcome += f". {text.sentence(failure, REASON_CHARACTERS)}{step}"
    yield outcome
    yield from phrases.quote(decisions.denial_reason, REASON_CHARACTERS)
    if decisions.rule is not None:
        yield phrases.rule_named(decisions.rule)
    if request.state is not State.PENDING:
        return
    if decisions.news:
        news = text.sentence(" ".join(decisions.news), REASON_CHARACTERS)
        yield f":arrows_counterclockwise: *Needs approval again*: {news}"
    if needed > 1:
        approvers = [approval.who for approval in decisions.approvals]
        names = f" ({phrases.names(approvers)})" if approvers else ""
        yield f"*{len(approvers)} of {needed} approvals*{names}"


def _facts(request: Request, around: Surroundings) -> Iterator[str]:
    """Yield the small print: the list's size, times, and the requester's ID."""
    state, result = request.state, request.result
    before, after = result.size_before, result.size_after
    has_result = request.has_effect or result.applied_at is not None
    if not has_result:
        before = around.size
        effects = [one.effect for one in request.left if one not in around.already]
        after = before + effects.count(Effect.ADD) - effects.count(Effect.REMOVE)
    if has_result or state in {State.PENDING, State.APPLYING}:
        now = phrases.how_many(after)
        yield now if before == after else f"{before} → {now}"
    if state is State.PENDING:
        yield f"this request expires {text.time(request.expires_at)}"
        # Anyone can give themselves the name of somebody else.
        yield f"requester {request.requester.slack_user_id}"
        return
    yield f"requested {text.time(request.created_at)}"
    at = result.applied_at or request.round.decided_at
    if at is not None and state in OVER:
        yield f"{state} {text.time(at)}"


def _already(request: Request, around: Surroundings) -> list[str]:
    """Return lines about people for whom there was or is nothing to change."""
    same = [*request.those(Did.FOUND), *around.already]
    groups = {
        "Already on the list": [one.identity for one in same if one.wants is Wants.ADD],
        "Already removed": [one.identity for one in same if one.wants is Wants.REMOVE],
        "Left out, because the requested end had passed": [
            one.identity for one in request.those(Did.LATE)
        ],
    }
    return phrases.titled(groups, "*")


def _news(request: Request) -> Iterator[str]:
    """Yield lines about other events: outside changes, access that ended, and undos."""
    yield from phrases.titled(phrases.on_the_list(request), "*")
    outside = request.result.outside
    edits = (("added", outside.additions), ("removed", outside.removals))
    if kept := "; ".join(f"{verb} {brief(people)}" for verb, people in edits if people):
        yield f"*Someone else made these changes in the meantime, and I kept them:* {kept}"
    made = request.those(Did.MADE)
    respelled = [person.spelling for person in made if person.spelling != person.identity]
    if respelled:
        yield f"The service stores this as {brief(respelled)}"
    ended = [person for person in made if person.over in {Over.ENDED, Over.GONE}]
    if len(ended) > ENDED_SHOWN:
        yield f"*Access ended for {phrases.how_many(len(ended))}. Most recently:*"
    ended.sort(key=lambda person: person.over_at or request.created_at)
    for person in ended[-ENDED_SHOWN:]:
        gone = " (already removed)" if person.over is Over.GONE else ""
        at = text.time(person.over_at or request.created_at)
        yield f"*Access ended:* {in_full(person.spelling)} {at}{gone}"
    replaced = [person.spelling for person in made if person.over is Over.REPLACED]
    yield from phrases.titled({"Replaced by a later request": replaced}, "*")
    if request.result.overdue:
        why = text.sentence(request.result.overdue, 300)
        yield f"*Expired but not removed yet:* {why} I'll keep trying."
    if request.undo:
        yield "*Undone*" if request.undo is State.APPLIED else "*Undo requested*"


def _people(request: Request, *, each_end: bool) -> Iterator[str]:
    """Yield lines that name everyone in the request, because approvers must see each person."""
    groups = phrases.alike(request, each_end=each_end)
    for people in groups:
        # A single title would only repeat the line above.
        if len(groups) > 1:
            verb = WORDS[people[0].effect][0].capitalize()
            yield f"*{verb}{phrases.lasting(request, people)} ({len(people)}):*"
        identities = [in_full(person.identity) for person in people]
        is_short = max(map(len, identities)) < SHORT_CHARACTERS
        size = IDENTITIES_A_LINE if is_short else 1
        for at in range(0, len(identities), size):
            yield "  ".join(identities[at : at + size])


def act_buttons(request: Request, *acts: Act, show: Show = in_full) -> list[SlackBlock]:
    """Return a button for each of these actions that the request's state allows."""
    if request.undo:
        return []
    offered = [act for act, (start, _) in MOVES.items() if start is request.state]
    if request.can_be_undone:
        offered.append(Act.UNDO)
    buttons, change = list[SlackBlock](), change_in_plain(request, show)
    for act in offered:
        if act not in acts:
            continue
        label, dialog = act.capitalize(), None
        if act in DIALOGS:
            title, sentence, proceed = DIALOGS[act]
            does = undo_in_plain(request) if act is Act.UNDO else change
            dialog = block_kit.confirm(title, sentence.format(does), proceed)
        button = block_kit.button(
            label,
            f"{ids.TESTUSERS_ACT}{act}",
            ShownRequest(request.id, request.requested.card_version).value(),
            style=STYLES.get(act),
            spoken=f"{label} {request.requester.name}'s request to {change}",
            sure=dialog,
        )
        buttons.append(button)
    return buttons


def change_button() -> SlackBlock:
    """Return the button that opens the empty form."""
    return block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")


def form_button(
    label: str,
    flow: Flow,
    identities: Sequence[str] = (),
    action_id: str = ids.TESTUSERS_FILL,
    *,
    kind: ChangeKind = "add",
) -> list[SlackBlock]:
    """Return a button that opens the form for these people, or an empty list if they don't fit."""
    value = Prefilled(flow.sid, kind, tuple(identities)).value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return []
    spoken = f"{label} {phrases.in_plain(identities)} on {flow.name}"
    return [block_kit.button(label, action_id, value, spoken=spoken if identities else None)]
