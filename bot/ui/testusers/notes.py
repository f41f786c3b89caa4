"""What people are told about requests: answers to who clicked, messages to who asked."""

from collections.abc import Mapping
from typing import Any

from bot.model.approval import Act, Reason, State
from bot.model.requests import Request
from bot.model.testusers import Effect, Flow
from bot.parsing.testusers import ChangeRequest, as_command
from bot.ui import blocks, text
from bot.ui.message import Message
from bot.ui.testusers.wording import BRIEF_COUNT, approvers, brief, flow_name, who, wish_of

COMMAND_CHARACTERS = 500
UNDER_WAY = "Gatehouse changes the list now; the card says when that is done."


def asked(flow: Flow, effect: Effect, request: Request | None, channel_id: str) -> Message:
    """The answer to who asked: what was requested, what was left out, where it stands."""
    lines = []
    if request is None:
        lines.append(f"Nothing to do on {flow_name(flow)}, so nothing was requested.")
    elif request.wish.without_approval:
        lines.append(f"On its way without approval: {wish_of(request)} on {flow_name(flow)}.")
    else:
        lines.append(f"Requested in <#{channel_id}>: {wish_of(request)} on {flow_name(flow)}.")
        lines.append("You get a message when somebody decides.")
    if effect.dropped.additions:
        lines.append(f"There already: {brief(effect.dropped.additions)}")
    if effect.dropped.removals:
        lines.append(f"Not there: {brief(effect.dropped.removals)}")
    return _message(lines)


def decided(act: Act, reason: Reason, request: Request, needed: int) -> Message:
    """The answer to who clicked."""
    change = f"{wish_of(request)} on {flow_name(request.flow)}"
    if reason is Reason.QUORUM_OPEN:
        given = len(request.progress.approvals)
        return _message([f"Your approval counts: {given} of {needed} to {change}."])
    word = {
        Act.APPROVE: "You approved",
        Act.DENY: "You denied",
        Act.CANCEL: "You cancelled",
        Act.RETRY: "It is tried again",
    }[act]
    becomes = {State.APPLYING: [UNDER_WAY], State.APPLIED: ["It is applied."]}
    return _message([f"{word}: {change}.", *becomes.get(request.state, [])])


def told(request: Request, payload: Mapping[str, Any]) -> Message:
    """The message to the requester about what has become of the request."""
    change = f"Your request to {wish_of(request)} on {flow_name(request.flow)}"
    event = str(payload["event"])
    if event == "ended":
        return _message(_ended(request, [str(one) for one in payload["identities"]]))
    if event == "failed":
        reason = text.sentence(str(payload["reason"]), 500)
        return _message(
            [f"{change} failed: {reason}", f"It was {_decided(request)}. An approver can retry it."]
        )
    return _message([f"{change} {_outcome(event, request)}", *_reason(event, request)])


def _outcome(event: str, request: Request) -> str:
    by = who(request.decided_by) if request.decided_by else "nobody"
    if event == State.DENIED:
        return f"was denied by {by}."
    if event == State.EXPIRED:
        return "has expired: nobody decided in time."
    if request.wish.without_approval:
        return "is applied, without approval."
    return f"is applied. It was {_decided(request)}."


def _decided(request: Request) -> str:
    by = who(request.decided_by) if request.decided_by else "nobody"
    if request.wish.without_approval:
        return f"started without approval by {by}"
    return f"approved by {approvers(request) or by}"


def _ended(request: Request, identities: list[str]) -> list[str]:
    """What is so now, why, and what to type."""
    names, flow, wish = brief(identities), flow_name(request.flow), request.wish
    lasted = f" of {text.duration(wish.duration_seconds)}" if wish.duration_seconds else ""
    lines = [f"{names} can no longer test {flow}: the time{lasted} is over."]
    command = _again(request, identities)
    return [*lines, f"To grant it again: {command}"] if command else lines


def _again(request: Request, identities: list[str]) -> str | None:
    """The command that asks for the same again, where it is short and can be shown exactly."""
    seconds = request.wish.duration_seconds
    if len(identities) > BRIEF_COUNT or seconds is None:
        return None
    wish = ChangeRequest("add", request.flow.name, tuple(identities), seconds)
    return text.exact(as_command(wish), COMMAND_CHARACTERS)


def _reason(event: str, request: Request) -> list[str]:
    if event == State.DENIED and request.progress.denial_reason:
        return [f"Reason: {text.escape(request.progress.denial_reason, 500)}"]
    return []


def reminder(request: Request) -> Message:
    """The one reminder in the thread of a card that waits."""
    until = text.time(request.expires_at)
    return _message([f"This still waits for a decision: {wish_of(request)}. It expires {until}."])


def _message(lines: list[str]) -> Message:
    markup = "\n".join(lines)
    return Message(text.cut(markup, 3800), (blocks.section(markup),))
