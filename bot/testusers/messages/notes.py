"""Notes: answers to commands and clicks, and messages to requesters and in threads."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bot.approvals.rules import Act, Reason, State
from bot.permissions import Permission
from bot.slack.messages import block_kit, ids, replies, text
from bot.slack.messages.help import May
from bot.slack.messages.message import TEXT_CHARACTERS, Message, SlackBlock
from bot.slack.parse import escaped
from bot.testusers.messages.buttons import (
    Prefilled,
    again_button,
    cancel_button,
    extend_buttons,
    form_button,
)
from bot.testusers.messages.phrases import (
    COMPLETES,
    after_all,
    approvers,
    brief,
    change_of,
    decider,
    effect_of_change,
    flow_name,
    how_many,
    in_full,
    masked,
    mention,
    parts_of,
    quote,
    rule_of,
    what_failed,
    who,
)
from bot.testusers.parse.change import ChangeRequest, quoted
from bot.testusers.parse.command import as_command
from bot.testusers.rules.changes import Effect, Flow
from bot.testusers.rules.requests import Preset, Request

PRESETS_SHOWN = 50
PRESET_EXAMPLE = "/testusers preset save demo-team +15550100 +15550101"
NOT_POSTED = "Slack hasn't accepted the card yet. It will appear as soon as Slack does."
JUST_NOW = timedelta(minutes=1)
# States in which a requester may want to ask again.
ASKED_AGAIN = frozenset({State.DENIED, State.EXPIRED})
UNDER_WAY = "The card shows the result."


def asked(
    flow: Flow, effect: Effect, request: Request | None, channel_id: str, time_zone: str = ""
) -> Message:
    """Return the answer to the requester: the request, the parts left out, and its state.

    `time_zone` is the requester's time zone, if they gave a time.
    """
    lines = []
    if request is None:
        lines.append(f"Nothing to change on {flow_name(flow)}, so I didn't ask anyone.")
    elif request.requested.without_approval:
        lines.append(f"Applying now, without approval: {change_of(request)}.")
    elif request.progress.rule:
        lines.append(f"Approved by a rule, applying now: {change_of(request)}.")
        lines.append(f"{rule_of(request)}.")
    else:
        lines.append(f"Sent to <#{channel_id}>: {change_of(request)}.")
        lines.append("You'll get a DM when someone decides.")
    if time_zone and request is not None:
        lines.append(f"Times are in your Slack time zone, {text.escape(time_zone)}.")
    if effect.dropped.additions:
        lines.append(f"Already on the list: {brief(effect.dropped.additions)}")
    if effect.dropped.removals:
        lines.append(f"Not on the list: {brief(effect.dropped.removals)}")
    if effect.respelled:
        lines.append(f"On the list with another spelling: {brief(effect.respelled)}")
    if effect.kept:
        lines.append(f"Also on the list with another spelling, and kept: {brief(effect.kept)}")
    return _message(lines)


def asked_before(
    earlier: Request,
    age: timedelta,
    command: ChangeRequest,
    channel_id: str,
    *,
    is_own: bool = False,
    card: str | None = None,
) -> Message:
    """Return the answer to a repeated request, with `Ask anyway` and a link to the first card.

    `is_own` is True if the same person made the open request.
    """
    when = "just now" if age < JUST_NOW else f"{text.duration(age // JUST_NOW * 60)} ago"
    waits = "to start" if earlier.state is State.SCHEDULED else f"in <#{channel_id}>"
    asker = "You" if is_own else who(earlier.requester)
    line = f"{asker} already asked for this {when}: {change_of(earlier)}."
    button = block_kit.button("Ask anyway", ids.TESTUSERS_ASK_ANYWAY, value_of(command))
    return _with_steps(_message([f"{line} It's waiting {waits}."]), card, button)


def value_of(command: ChangeRequest) -> str:
    """Return the command as a button value; "" if it doesn't fit, or can't be typed."""
    typed = as_command(command)
    return typed if len(typed) <= block_kit.VALUE_CHARACTERS else ""


def decided(act: Act, reason: Reason, request: Request, needed: int) -> Message:
    """Return the answer to a click."""
    change = change_of(request)
    if reason is Reason.QUORUM_OPEN:
        given = len(request.progress.approvals)
        if request.has_enough_approvals(needed):
            return _message([f"Thanks! That's now enough approvals to {change}. {COMPLETES}"])
        return _message([f"Thanks! That's {given} of {needed} approvals to {change}."])
    outcome = {
        Act.APPROVE: "You approved",
        Act.DENY: "You denied",
        Act.CANCEL: "You cancelled",
        Act.RETRY: "Trying again",
    }[act]
    becomes = {
        State.APPLYING: [UNDER_WAY],
        State.APPLIED: ["It has been applied."],
    }
    return _message([f"{outcome}: {change}.", *becomes.get(request.state, [])])


def outcome(request: Request, payload: Mapping[str, Any], card: str | None = None) -> Message:
    """Return the message to the requester about the outcome of the request.

    `card` is the link to the request's card, if known.
    """
    event = str(payload["event"])
    if event == "ended":
        identities = [str(identity) for identity in payload["identities"]]
        seconds, flow = request.requested.duration_seconds, request.flow
        lasted = f" after {text.duration(seconds)}" if seconds is not None else ""
        line = f"Access to {flow_name(flow)} has ended{lasted}: {brief(identities)}"
        again = form_button(flow, identities, "Give access again", seconds)
        return _with_steps(_message([line]), card, again)
    if event == State.FAILED:
        about = f"your request to {change_of(request)}, {_granted(request)}"
        step = after_all(request) or " An approver can press Retry on the card."
        lines = [
            f":x: *Failed*, {what_failed(request)}: {about}.",
            *parts_of(request),
            f"{text.sentence(str(payload['reason']), 500)}{step}",
        ]
        return _with_steps(_message(lines), card)
    again = again_button(request) if event in ASKED_AGAIN else None
    return _with_steps(_message(_outcome(event, request)), card, again)


def _with_steps(message: Message, card: str | None, *steps: SlackBlock | None) -> Message:
    buttons = [button for button in steps if button is not None]
    links = [f"<{card}|View the card>"] if card else []
    room = TEXT_CHARACTERS - sum(len(link) + 1 for link in links)
    return Message(
        "\n".join((text.cut(message.text, room), *links)),
        (
            *message.slack_blocks,
            *map(block_kit.section, links),
            *([block_kit.actions(*buttons)] if buttons else []),
        ),
    )


def _outcome(event: str, request: Request) -> list[str]:
    asked_for = f"your request to {change_of(request)}"
    if event == State.DENIED:
        reason = quote(request.progress.denial_reason, 500)
        return [f":no_entry: *Denied* by {decider(request)}: {asked_for}.", *reason]
    if event == "unposted":
        is_open = request.state is State.PENDING
        missing = "Nobody has been asked yet" if is_open else "The card is missing"
        return [
            f":warning: *{missing}*: Slack hasn't accepted the card: {asked_for}.",
            "I'll post it as soon as Slack accepts it. For the cause, see `/gatehouse status`.",
        ]
    if event == State.EXPIRED:
        is_begun = bool(request.progress.approvals)
        lapse = "its approval wasn't completed" if is_begun else "nobody approved it"
        return [f":alarm_clock: *Expired*, {lapse} in time: {asked_for}."]
    if event == "asked_again":
        news = text.sentence(" ".join(request.progress.news), 500)
        return [f":arrows_counterclockwise: *Needs approval again*: {asked_for}.", news]
    if event == State.SCHEDULED:
        return [f":calendar: *Starts later*, {_granted(request)}: {asked_for}."]
    return [f":white_check_mark: *Applied*, {_granted(request)}: {effect_of_change(request)}."]


def _granted(request: Request) -> str:
    if request.requested.without_approval:
        return f"without approval by {decider(request)}"
    return f"approved by {approvers(request) or decider(request)}"


def ending(request: Request, identities: list[str], at: datetime) -> Message:
    """Return the announcement that access ends soon, with `Extend`."""
    line = f"Access of {brief(identities)} to {flow_name(request.flow)} ends {text.time(at)}."
    return _with_steps(_message([line]), None, *extend_buttons(request.flow, identities))


def with_next_steps(message: Message, request: Request, card: str | None) -> Message:
    """Return the message with `Cancel` and, once the card is posted, a link to the card."""
    if card is None:
        message = Message(
            f"{message.text}\n{NOT_POSTED}", (*message.slack_blocks, block_kit.context(NOT_POSTED))
        )
    return _with_steps(message, card, cancel_button(request))


def failed_in_thread(request: Request) -> Message:
    """Return the message in the card's thread that informs the approvers about a failure."""
    progress, reason = request.progress, text.sentence(request.progress.failure, 500)
    if progress.is_unsure:
        line = f":grey_question: I don't know whether this went through: {change_of(request)}."
        return _message([f"{line} {reason}{after_all(request)}", *parts_of(request)])
    became = what_failed(request)
    result = f"{became[0].upper()}{became[1:]}. An approver can press Retry."
    return _message([f":x: Couldn't {change_of(request)}: {reason} {result}", *parts_of(request)])


def cured_in_thread(request: Request) -> Message:
    """Return the text that replaces the failure message once the change is applied."""
    done, by = request.progress.done, request.progress.retried_by
    at = text.time(done.at) if done else ""
    how = f"It worked on retry ({who(by)}, {at})" if by else f"It went through after all ({at})"
    return _message([f":white_check_mark: {how}: {change_of(request)}."])


def service_refuses(sentence: str, flow: Flow) -> Message:
    """Return the alert that the flow service rejects Gatehouse's credentials."""
    return _message(
        [
            f":key: *Gatehouse can't use the flow service.* {text.sentence(sentence, 500)}",
            f"An approved change to {flow_name(flow)} couldn't be made.",
            "Whoever runs Gatehouse: fix this, then press Retry on each card that failed.",
        ]
    )


def service_accepts() -> Message:
    """Return the message that ends the alert about refused credentials."""
    return _message([":white_check_mark: The flow service works again for Gatehouse."])


def still_waiting(request: Request, escalate_to: Sequence[str] | None = None) -> Message:
    """Return the reminder in a pending card's thread; an escalation mentions people."""
    is_reminder = escalate_to is None
    waiting = "Still waiting for approval" if is_reminder else "Still waiting"
    asked = f"{who(request.requester)} wants to {change_of(request)}"
    line = f"{waiting}: {asked}. The request expires {text.time(request.expires_at)}."
    return _message([" ".join([*map(mention, escalate_to or ()), line])])


def no_longer_waiting(request: Request, *, is_escalation: bool = False) -> Message:
    """Return the text that replaces a reminder or an escalation once the request is decided."""
    became = {
        State.DENIED: f"{decider(request)} denied it",
        State.CANCELLED: f"{decider(request)} cancelled it",
        State.EXPIRED: "it expired",
    }.get(request.state, f"approved by {approvers(request) or decider(request)}")
    if is_escalation:
        return _message([f"No need to step in anymore, {became}."])
    asked = f"{who(request.requester)} wanted to {change_of(request)}"
    return _message([f"No longer waiting, {became}: {asked}."])


def presets(saved: Sequence[Preset], *, sees_identities: bool, flow: str = "") -> Message:
    """Return all presets, with the first few people of each."""
    if not saved:
        return _message([f"There are no presets yet. Save one: {text.code(PRESET_EXAMPLE)}"])
    show = in_full if sees_identities else masked
    use = text.code(f"/testusers add {flow or 'welcome'} @{saved[0].name}")
    lines = [f"*{text.count(len(saved), 'preset')}*. Use them like this: {use}"]
    lines += [
        f"• {_preset(preset.name)} ({how_many(len(preset.identities))}): "
        f"{brief(preset.identities, show)}"
        f" · saved by {who(preset.saved_by)} {text.time(preset.saved_at)}"
        for preset in saved[:PRESETS_SHOWN]
    ]
    left = len(saved) - PRESETS_SHOWN
    lines += [f"And {left} more."] if left > 0 else []
    return Message("\n".join(lines), block_kit.sections(lines))


def preset_saved(name: str, identities: Sequence[str], before: Preset | None) -> Message:
    """Return the answer to saving a preset, with its previous people and `Undo`."""
    replaced = f" It was {brief(before.identities)} before." if before else ""
    line = f"Saved: {_preset(name)} stands for {brief(identities)}.{replaced}"
    return _message([line]) if before is None else _with_undo(line, before)


def preset_deleted(preset: Preset) -> Message:
    """Return the answer to deleting a preset, with the people in it and `Undo`."""
    line = f"Deleted {_preset(preset.name)}. It stood for {brief(preset.identities)}."
    return _with_undo(line, preset)


def _with_undo(line: str, before: Preset) -> Message:
    people = " ".join(map(quoted, before.identities))
    undo = escaped(f"/testusers preset save {before.name} {people}")
    return replies.with_commands(_message([line]), [("Undo", undo)])


def _preset(name: str) -> str:
    return text.code(f"@{name}", 60)


def _message(lines: list[str]) -> Message:
    markup = "\n".join(lines)
    return Message(markup, (block_kit.section(markup),))


NOT_UNDERSTOOD = "I didn't understand that. Here are things you can ask me (no slash needed):"
OPEN_FORM = "Open the form to pick a flow and people."
HELLO = (
    "Hi! I look after test users, organizations and their API limits."
    "\nPick one of these, or write `help` for everything I can do."
)
TOO_LONG = "That's too much for one button. Please send it as a command: `testusers add …`."


def not_understood(forms: Message) -> Message:
    """Return the answer to text that isn't a command: a list of possible requests."""
    shown = (block_kit.section(NOT_UNDERSTOOD), *forms.slack_blocks)
    return Message(f"{NOT_UNDERSTOOD}\n{forms.text}", shown)


def greeting(may: May) -> Message:
    """Return two lines and the most frequently used buttons."""
    form = block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")
    buttons = [
        *([form] if may(Permission.REQUEST) else []),
        block_kit.button("Organizations", ids.HOME_ORGS, "dm"),
        block_kit.button("Rate limits", ids.HOME_RATELIMITS, "dm"),
        block_kit.button("Open requests", f"{ids.RUN_COMMAND}.0", "/testusers requests"),
    ]
    return Message(HELLO, (block_kit.section(HELLO), block_kit.actions(*buttons)))


def open_form() -> Message:
    """Return a button that opens the form: Slack opens forms only after a click."""
    button = block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")
    return Message(OPEN_FORM, (block_kit.section(OPEN_FORM), block_kit.actions(button)))


def filled_form(flow: Flow, filled: Prefilled) -> Message:
    """Return a button that opens the form with the values from the message."""
    is_adding = filled.kind != "remove"
    people = brief(filled.identities) if filled.identities else "everyone in the preset"
    start = f" from {text.time(filled.start)}" if filled.start else ""
    end = f" until {text.time(filled.until)}" if filled.until else ""
    term = f" for {text.escape(filled.duration)}" if filled.duration else end
    verb, preposition = ("Add", "to") if is_adding else ("Remove", "from")
    line = (
        f"{verb} {people} {preposition} {flow_name(flow)}{start}{term}:"
        " check the form, then submit it."
    )
    value = filled.value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return Message(TOO_LONG)
    button = block_kit.button("Open the form", ids.TESTUSERS_EXTEND, value, style="primary")
    return Message(line, (block_kit.section(line), block_kit.actions(button)))
