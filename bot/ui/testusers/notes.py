"""What people are told about requests: answers to who clicked, messages to who asked."""

from collections.abc import Mapping
from typing import Any

from bot.model.approval import Act, Reason, State
from bot.model.requests import Request
from bot.model.testusers import Effect, Flow
from bot.ui import blocks, text
from bot.ui.message import Message
from bot.ui.testusers.wording import brief, flow_name, who, wish_of

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
    is_begun = act in {Act.APPROVE, Act.RETRY}
    return _message([f"{word}: {change}.", *([UNDER_WAY] if is_begun else [])])


def told(request: Request, payload: Mapping[str, Any]) -> Message:
    """The message to the requester about what has become of the request."""
    change = f"Your request to {wish_of(request)} on {flow_name(request.flow)}"
    event = str(payload["event"])
    if event == "ended":
        identities = brief([str(one) for one in payload["identities"]])
        return _message([f"The time of {identities} on {flow_name(request.flow)} is over."])
    if event == "failed":
        reason = text.escape(str(payload["reason"]), 500)
        return _message([f"{change} failed: {reason}", "An approver can retry it."])
    return _message([f"{change} {_outcome(event, request)}", *_reason(event, request)])


def _outcome(event: str, request: Request) -> str:
    by = who(request.decided_by) if request.decided_by else "nobody"
    if event == State.DENIED:
        return f"was denied by {by}."
    if event == State.EXPIRED:
        return "has expired: nobody decided in time."
    if request.wish.without_approval:
        return "is applied, without approval."
    approvers = ", ".join(who(one.who) for one in request.progress.approvals) or by
    return f"is applied. It was approved by {approvers}."


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
