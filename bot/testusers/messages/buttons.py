"""The buttons for a request in its current state, and those that open the filled-in form."""

from collections.abc import Sequence
from dataclasses import replace

from bot.approvals.parse import spell_duration
from bot.approvals.rules import Act, State
from bot.slack.messages import block_kit, ids
from bot.slack.messages.block_kit import SlackBlock
from bot.testusers.messages.phrases import change_in_plain
from bot.testusers.parse.form import Prefilled
from bot.testusers.rules.changes import Flow
from bot.testusers.rules.requests import Request

EXTENSIONS = {"+2 h": 2 * 3600, "+1 day": 24 * 3600}
OFFERED = {
    State.PENDING: [Act.APPROVE, Act.DENY, Act.CANCEL],
    State.SCHEDULED: [Act.DENY, Act.CANCEL],
    State.FAILED: [Act.RETRY],
}
STYLES = {Act.APPROVE: "primary", Act.DENY: "danger"}
# The title, the sentence and the label of the dialog that asks to confirm.
DIALOGS = {
    Act.CANCEL: (
        "Cancel this request?",
        "It will be withdrawn and can't be approved anymore",
        "Cancel it",
    ),
    Act.RETRY: ("Try again?", "Sends the approved change again without a new approval", "Retry"),
    Act.UNDO: ("Ask to undo this?", "Asks an approver to take this back", "Ask to undo"),
}


def act_buttons(request: Request, *acts: Act) -> list[SlackBlock]:
    """Return the buttons for those of the actions that the request offers in its state."""
    if request.progress.undone_by:
        return []
    offered = list(OFFERED.get(request.state, ()))
    took_effect = request.state is State.APPLIED or request.has_failed_in_part
    change = (request.progress.part or request.requested).change
    # There is nothing to undo once the access is over.
    if took_effect and (change.removals or not request.is_over):
        offered.append(Act.UNDO)
    return [_act_button(request, act) for act in offered if act in acts]


def _act_button(request: Request, act: Act) -> SlackBlock:
    label, dialog = act.capitalize(), None
    if act in DIALOGS:
        title, sentence, proceed = DIALOGS[act]
        dialog = block_kit.confirm(title, f"{sentence}: {change_in_plain(request)}.", proceed)
    spoken = f"{label} the request of {request.requester.name} on {request.flow.name}"
    action_id, style = ids.testusers_act(act), STYLES.get(act)
    return block_kit.button(label, action_id, request.id, style=style, spoken=spoken, sure=dialog)


def form_button(
    label: str, filled: Prefilled, action_id: str = ids.TESTUSERS_EXTEND, style: str | None = None
) -> list[SlackBlock]:
    """Return the button that opens the filled-in form; no button if the values don't fit."""
    value = filled.value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return []
    return [block_kit.button(label, action_id, value, style=style)]


def extend_buttons(flow: Flow, identities: Sequence[str]) -> list[SlackBlock]:
    """Return `Extend`, `+2 h` and `+1 day`; an empty list if the people don't fit into a button."""
    filled = Prefilled(flow.sid, "add", tuple(identities))
    more = [
        form_button(label, replace(filled, more_seconds=seconds), f"{ids.TESTUSERS_MORE}.{number}")
        for number, (label, seconds) in enumerate(EXTENSIONS.items())
    ]
    buttons = [button for row in (form_button("Extend", filled), *more) for button in row]
    return buttons if len(buttons) > len(EXTENSIONS) else []


def again_button(request: Request) -> list[SlackBlock]:
    """Return `Ask again`, which opens the form with the same request, if it fits."""
    requested, change = request.requested, request.requested.change
    if requested.undo_of or (change.additions and change.removals):
        return []
    # A duration takes precedence. A fixed end is the same for everybody.
    seconds = requested.duration_seconds
    filled = Prefilled(
        request.flow.sid,
        "remove" if change.removals else "add",
        change.identities,
        spell_duration(seconds) if seconds else "",
        requested.starts_at,
        None if seconds else max(requested.ends.values(), default=None),
    )
    return form_button("Ask again", filled)


def person_menu(flow: Flow, identity: str, *, has_end: bool) -> SlackBlock | None:
    """Return a menu with `Extend` and `Remove` for a listed person; a button if they don't fit."""
    person = Prefilled(flow.sid, identities=(identity,))
    more = {label: replace(person, more_seconds=seconds) for label, seconds in EXTENSIONS.items()}
    filled = {
        **({"Extend": person, **more} if has_end else {"Set an end date": person}),
        "Remove": replace(person, kind="remove"),
    }
    options = [(label, value.value()) for label, value in filled.items()]
    if any(len(value) > block_kit.OPTION_VALUE_CHARACTERS for _, value in options):
        return next(iter(form_button("Change…", person)), None)
    return block_kit.overflow(ids.TESTUSERS_PERSON, options)
