"""Notes about requests: answers to clicks, and messages to requesters."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bot.approvals.rules.approval import Act, Reason, State
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.message import TEXT_CHARACTERS, Message, SlackBlock
from bot.testusers.messages.buttons import (
    again_button,
    decision_buttons,
    extend_buttons,
    form_button,
)
from bot.testusers.messages.card import effect_of_change
from bot.testusers.messages.phrases import (
    COMPLETES,
    after_all,
    approvers,
    brief,
    change_of,
    decider,
    flow_name,
    mention,
    parts_of,
    quote,
    rule_of,
    what_failed,
    who,
)
from bot.testusers.parse.change import ChangeRequest
from bot.testusers.parse.command import as_command
from bot.testusers.rules.changes import Effect, Flow
from bot.testusers.rules.requests import Request

JUST_NOW = timedelta(minutes=1)
# What a requester may want to ask for once more.
ASKED_AGAIN = frozenset({State.DENIED, State.EXPIRED})
UNDER_WAY = "Updating the list now. The card will show when it's done."


def asked(
    flow: Flow, effect: Effect, request: Request | None, channel_id: str, time_zone: str = ""
) -> Message:
    """Return the answer to the requester: the request, what was left out, and its state.

    `time_zone` is the requester's, where they gave a time.
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
        lines.append(f"Times are read in your Slack time zone, {text.escape(time_zone)}.")
    if effect.dropped.additions:
        lines.append(f"Already on the list: {brief(effect.dropped.additions)}")
    if effect.dropped.removals:
        lines.append(f"Not on the list: {brief(effect.dropped.removals)}")
    if effect.respelled:
        lines.append(f"Spelled differently on the list: {brief(effect.respelled)}")
    if effect.kept:
        lines.append(f"Also on the list, spelled differently, and left: {brief(effect.kept)}")
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
    waits = "for its start" if earlier.state is State.SCHEDULED else f"in <#{channel_id}>"
    asker = "You" if is_own else who(earlier.requester)
    line = f"{asker} already asked for this {when}: {change_of(earlier)}."
    button = block_kit.button("Ask anyway", ids.TESTUSERS_ASK_ANYWAY, value_of(command))
    markup = f"{line} It's waiting {waits}."
    return _with_steps(Message(markup, (block_kit.section(markup),)), card, button)


def value_of(command: ChangeRequest) -> str:
    """Return the command as a button holds it; "" if it doesn't fit, or can't be typed."""
    typed = as_command(command)
    return typed if len(typed) <= block_kit.VALUE_CHARACTERS else ""


def decided(act: Act, reason: Reason, request: Request, needed: int) -> Message:
    """Return the answer to a click."""
    change = change_of(request)
    if reason is Reason.QUORUM_OPEN:
        given = len(request.progress.approvals)
        if request.has_enough_approvals(needed):
            return _message([f"Thanks! That's enough by now to {change}. {COMPLETES}"])
        return _message([f"Thanks! That's {given} of {needed} approvals to {change}."])
    outcome = {
        Act.APPROVE: "You approved",
        Act.DENY: "You denied",
        Act.CANCEL: "You cancelled",
        Act.RETRY: "Trying again",
    }[act]
    starts_at = request.requested.starts_at
    becomes = {
        State.SCHEDULED: [f"It starts {text.time(starts_at)}." if starts_at else ""],
        State.APPLYING: [UNDER_WAY],
        State.APPLIED: ["It has been applied."],
    }
    return _message([f"{outcome}: {change}.", *becomes.get(request.state, [])])


def outcome(request: Request, payload: Mapping[str, Any], card: str | None = None) -> Message:
    """Return the message to the requester about the outcome of the request.

    `card` is the link to the request's card, where that is known.
    """
    event = str(payload["event"])
    if event == "ended":
        identities = [str(identity) for identity in payload["identities"]]
        return _with_steps(_ended(request, identities), card, _grant_again(request, identities))
    if event == "failed":
        return _with_steps(_message(_failed(request, str(payload["reason"]))), card)
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
    """Return the outcome, then who decided, then the change."""
    asked_for = f"your request to {change_of(request)}"
    if event == State.DENIED:
        reason = quote(request.progress.denial_reason, 500)
        return [f":no_entry: *Denied* by {decider(request)}: {asked_for}.", *reason]
    if event == "unposted":
        return [
            f":warning: *Nobody has been asked yet*: Slack hasn't taken the card of {asked_for}.",
            "I'll post it as soon as Slack does. `/gatehouse status` says what is wrong.",
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


def _failed(request: Request, reason: str) -> list[str]:
    about = f"your request to {change_of(request)}, {_granted(request)}"
    step = after_all(request) or " An approver can press Retry on the card."
    return [
        f":x: *Failed*, {what_failed(request)}: {about}.",
        *parts_of(request),
        f"{text.sentence(reason, 500)}{step}",
    ]


def ending(request: Request, identities: list[str], at: datetime) -> Message:
    """Return the announcement that access ends soon, with `Extend`."""
    line = f"Access of {brief(identities)} to {flow_name(request.flow)} ends {text.time(at)}."
    extend = extend_buttons(request.flow, identities)
    return _with_steps(Message(line, (block_kit.section(line),)), None, *extend)


def with_next_steps(message: Message, request: Request, card: str | None) -> Message:
    """Return the message with `Cancel` and a link to the card."""
    (cancel,) = decision_buttons(request, decides=False)
    return _with_steps(message, card, cancel)


def failed_in_thread(request: Request) -> Message:
    """Return the message in the card's thread that tells the approvers about a failure."""
    progress, reason = request.progress, text.sentence(request.progress.failure, 500)
    if progress.is_unsure:
        line = f":grey_question: I don't know whether this went through: {change_of(request)}."
        return _message([f"{line} {reason}{after_all(request)}", *parts_of(request)])
    became = what_failed(request)
    result = f"{became[0].upper()}{became[1:]}. An approver can press Retry."
    return _message([f":x: Couldn't {change_of(request)}: {reason} {result}", *parts_of(request)])


def cured_in_thread(request: Request) -> Message:
    """Return the text that replaces a failure in the thread once the change is applied."""
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
    """Return the message that ends that alert."""
    return _message([":white_check_mark: The flow service works again for Gatehouse."])


def _ended(request: Request, identities: list[str]) -> Message:
    seconds = request.requested.duration_seconds
    lasted = f" after {text.duration(seconds)}" if seconds is not None else ""
    return _message([f"Access to {flow_name(request.flow)} has ended{lasted}: {brief(identities)}"])


def _grant_again(request: Request, identities: list[str]) -> SlackBlock | None:
    seconds = request.requested.duration_seconds
    return form_button(request.flow, identities, "Give access again", seconds)


def reminder(request: Request) -> Message:
    """Return the reminder in the thread of a pending card."""
    until = text.time(request.expires_at)
    asker = who(request.requester)
    return _message(
        [f"Still waiting for approval: {asker} wants to {change_of(request)}. Expires {until}."]
    )


def escalation(request: Request, escalate_to: Sequence[str]) -> Message:
    """Return the escalation in the thread of a pending card; it mentions its recipients."""
    until = text.time(request.expires_at)
    asker = who(request.requester)
    waiting = f"Still waiting: {asker} wants to {change_of(request)}. Expires {until}."
    return _message([" ".join([*map(mention, escalate_to), waiting])])


def no_longer_waiting(request: Request) -> Message:
    """Return the text that replaces a reminder or an escalation once the request is decided."""
    became = {
        State.DENIED: f"{decider(request)} denied it",
        State.CANCELLED: f"{decider(request)} cancelled it",
        State.EXPIRED: "it expired",
    }.get(request.state, f"approved by {approvers(request) or decider(request)}")
    asker = who(request.requester)
    return _message([f"No longer waiting, {became}: {asker} wanted to {change_of(request)}."])


def _message(lines: list[str]) -> Message:
    markup = "\n".join(lines)
    return Message(markup, (block_kit.section(markup),))
