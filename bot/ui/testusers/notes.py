"""What people are told about requests: answers to who clicked, messages to who asked."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from bot.model.testusers.approval import Act, Reason, State
from bot.model.testusers.changes import Effect, Flow
from bot.model.testusers.requests import Request
from bot.parsing.testusers import ChangeRequest, as_command
from bot.ui import block_kit, ids, text
from bot.ui.message import TEXT_CHARACTERS, Message, SlackBlock
from bot.ui.testusers.buttons import again_button, decision_buttons, extend_button
from bot.ui.testusers.card import effect_of_change
from bot.ui.testusers.phrases import (
    COMPLETES,
    approvers,
    brief,
    change_of,
    decider,
    effect_after,
    flow_name,
    mention,
    parts_of,
    quote,
    what_failed,
    who,
)

JUST_NOW = timedelta(minutes=1)
# What a requester may want to ask for once more.
ASKED_AGAIN = frozenset({State.DENIED, State.EXPIRED})
UNDER_WAY = "Updating the list now. The card will show when it's done."


def asked(flow: Flow, effect: Effect, request: Request | None, channel_id: str) -> Message:
    """The answer to who asked: what was requested, what was left out, where it stands."""
    lines = []
    if request is None:
        lines.append(f"Nothing to change on {flow_name(flow)}, so I didn't ask anyone.")
    elif request.requested.without_approval:
        lines.append(f"Applying now, without approval: {change_of(request)}.")
    else:
        lines.append(f"Sent to <#{channel_id}>: {change_of(request)}.")
        lines += _end_changes(request)
        lines.append("You'll get a DM when someone decides.")
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
    earlier: Request, age: timedelta, command: ChangeRequest, channel_id: str
) -> Message:
    """The answer to who asks for what somebody has asked for already, with `Ask anyway`."""
    when = "just now" if age < JUST_NOW else f"{text.duration(age // JUST_NOW * 60)} ago"
    waits = "for its start" if earlier.state is State.SCHEDULED else f"in <#{channel_id}>"
    line = f"{who(earlier.requester)} already asked for this {when}: {change_of(earlier)}."
    button = block_kit.button("Ask anyway", ids.TESTUSERS_ASK_ANYWAY, value_of(command))
    markup = f"{line} It's waiting {waits}."
    return Message(markup, (block_kit.section(markup), block_kit.actions(button)))


def value_of(command: ChangeRequest) -> str:
    """The command as a button holds it; "" where it does not fit, or cannot be typed."""
    typed = as_command(command)
    return typed if len(typed) <= block_kit.VALUE_CHARACTERS else ""


def _end_changes(request: Request) -> list[str]:
    """What the request means for people who are on the list already."""
    requested = request.requested
    if not requested.end_changes:
        return []
    names = brief(requested.end_changes)
    ends = {requested.current_ends.get(one) for one in requested.end_changes}
    end = ends.pop() if len(ends) == 1 else None
    there = f" until {text.time(end)}" if end else ""
    if requested.duration_seconds is not None:
        becomes = f"will be removed {effect_after(request)}"
    else:
        becomes = "will stay with no end date" if not requested.ends else "will get a new end date"
    return [f"Already on the list{there}: {names}, who {becomes}."]


def decided(act: Act, reason: Reason, request: Request, needed: int) -> Message:
    """The answer to who clicked."""
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
    becomes = {
        State.SCHEDULED: ["It starts later; the card says when."],
        State.APPLYING: [UNDER_WAY],
        State.APPLIED: ["It has been applied."],
    }
    return _message([f"{outcome}: {change}.", *becomes.get(request.state, [])])


def outcome(request: Request, payload: Mapping[str, Any], card: str | None = None) -> Message:
    """The message to the requester about what has become of the request.

    `card` is the link to the request's card, where that is known.
    """
    event = str(payload["event"])
    if event == "ended":
        identities = [str(one) for one in payload["identities"]]
        return _with_steps(_ended(request, identities), card, _grant_again(request, identities))
    if event == "failed":
        return _with_steps(_message(_failed(request, str(payload["reason"]))), card)
    again = again_button(request) if event in ASKED_AGAIN else None
    return _with_steps(_message(_outcome(event, request)), card, again)


def _with_steps(message: Message, card: str | None, button: SlackBlock | None = None) -> Message:
    """The message with a link to the card, and with a button."""
    links = [f"<{card}|View the card>"] if card else []
    room = TEXT_CHARACTERS - sum(len(link) + 1 for link in links)
    return Message(
        "\n".join((text.cut(message.text, room), *links)),
        (
            *message.slack_blocks,
            *map(block_kit.section, links),
            *([block_kit.actions(button)] if button else []),
        ),
    )


def _outcome(event: str, request: Request) -> list[str]:
    """The outcome first, then who decided, then what it is about."""
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
    if event == State.SCHEDULED:
        return [f":calendar: *Starts later*, {_granted(request)}: {asked_for}."]
    return [f":white_check_mark: *Applied*, {_granted(request)}: {effect_of_change(request)}."]


def _granted(request: Request) -> str:
    if request.requested.without_approval:
        return f"without approval by {decider(request)}"
    return f"approved by {approvers(request) or decider(request)}"


def _failed(request: Request, reason: str) -> list[str]:
    about = f"your request to {change_of(request)}, {_granted(request)}"
    return [
        f":x: *Failed*, {what_failed(request)}: {about}.",
        *parts_of(request),
        f"{text.sentence(reason, 500)} An approver can press Retry on the card.",
    ]


def ending(request: Request, identities: list[str], at: datetime) -> Message:
    """The announcement that access ends soon, with `Extend`."""
    line = f"Access of {brief(identities)} to {flow_name(request.flow)} ends {text.time(at)}."
    extend = extend_button(request.flow, identities, request.requested.duration_seconds)
    return _with_steps(Message(line, (block_kit.section(line),)), None, extend)


def with_next_steps(message: Message, request: Request, card: str | None) -> Message:
    """The answer to who asked, with `Cancel` and a link to the card."""
    (cancel,) = decision_buttons(request, decides=False)
    return _with_steps(message, card, cancel)


def failed_in_thread(request: Request) -> Message:
    """The message in the card's thread, so that who approved hears of a failure."""
    reason = text.sentence(request.progress.failure, 500)
    in_part = f", {what_failed(request)}" if request.has_failed_in_part else ""
    line = f":x: This failed{in_part}: {change_of(request)}. {reason}"
    return _message([line, *parts_of(request)])


def _ended(request: Request, identities: list[str]) -> Message:
    """What is so now, and why."""
    seconds = request.requested.duration_seconds
    lasted = f" after {text.duration(seconds)}" if seconds is not None else ""
    return _message([f"Access to {flow_name(request.flow)} has ended{lasted}: {brief(identities)}"])


def _grant_again(request: Request, identities: list[str]) -> SlackBlock | None:
    seconds = request.requested.duration_seconds
    return extend_button(request.flow, identities, seconds, "Give access again")


def reminder(request: Request) -> Message:
    """The one reminder in the thread of a card that waits."""
    until = text.time(request.expires_at)
    asker = who(request.requester)
    return _message(
        [f"Still waiting for approval: {asker} wants to {change_of(request)}. Expires {until}."]
    )


def escalation(request: Request, escalate_to: Sequence[str]) -> Message:
    """The one escalation in the thread of a card that waits; it mentions those it is for."""
    until = text.time(request.expires_at)
    asker = who(request.requester)
    waiting = f"Still waiting: {asker} wants to {change_of(request)}. Expires {until}."
    return _message([" ".join([*map(mention, escalate_to), waiting])])


def no_longer_waiting(request: Request) -> Message:
    """What takes the place of a reminder and an escalation once the request is decided."""
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
