"""Replies to commands and clicks, direct messages to requesters, and messages in threads."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from bot.approvals.rules import Act, State
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import MESSAGE_CHARACTERS, Message
from bot.testusers.messages import phrases
from bot.testusers.messages.card import act_buttons, change_button, form_button
from bot.testusers.messages.phrases import brief, change_of, flow_name
from bot.testusers.parse.command import as_line
from bot.testusers.rules.requests import Asked, Preset, Request

PRESET_EXAMPLE = "/testusers preset save demo-team +15550100 +15550101"
NOTHING = "There's nothing to change on {}, so I didn't make a request."
NOT_POSTED = "I couldn't post the card yet, but I'll keep trying."


def asked(asked: Asked, channel_id: str, *more: str) -> Message:
    """Return the reply to the requester: the status, people left out, and other open requests.

    `more` are further lines about the request.
    """
    request, lines = asked.request, [NOTHING.format(flow_name(asked.flow))]
    if request is not None:
        change, rule = change_of(request), request.round.rule
        lines = [f"Sent to <#{channel_id}> for approval: {change}.", *more]
        if asked.is_repeated:
            at = text.time(request.created_at)
            stands = "waiting" if request.state is State.PENDING else "being applied"
            lines[0] = f"You already asked for this {at}, and it's {stands}: {change}."
        elif request.requested.without_approval:
            lines[0] = f"Applying now, without approval: {change}."
        elif rule:
            lines[0] = f"Approved automatically. Applying now: {change}."
            lines.insert(1, f"{phrases.rule_named(rule)}.")
    return Message.of(*lines, *_left_out(asked), *phrases.also_open(asked.related))


def _left_out(asked: Asked) -> list[str]:
    additions, removals = asked.dropped.additions, asked.dropped.removals
    return phrases.titled({"Already on the list": additions, "Not on the list": removals})


def told_program(asked: Asked, *more: str) -> str:
    """Return what a program reads about its request, without markup and people's names."""
    request, lines = asked.request, [NOTHING.format(flow_name(asked.flow))]
    if request is not None:
        outcome = phrases.MARKS[request.state]
        if request.state is State.FAILED:
            outcome = f"*Failed*, {phrases.what_failed(request)}"
        lines = [f"{outcome}: {change_of(request, name=phrases.exact)}."]
        if request.attempts.failure:
            lines.append(text.sentence(request.attempts.failure, 500))
        lines += more
    lines += [*_left_out(asked), *phrases.also_open(asked.related, is_named=False)]
    return text.without_markup(" ".join(lines))


WAIT = "You'll get a direct message when someone decides."


def time_zone_used(time_zone: str) -> str:
    """Return the sentence that names the requester's time zone."""
    return f"Times are in your Slack time zone, {text.escape(time_zone)}."


def decided(act: Act, request: Request, show: phrases.Show) -> Message:
    """Return the reply to the person who clicked a button on a card."""
    did = {
        Act.APPROVE: "You approved",
        Act.DENY: "You denied",
        Act.CANCEL: "You cancelled",
        Act.RETRY: "Trying again",
    }[act]
    return Message.of(f"{did}: {change_of(request, show)}.")


def outcome(
    request: Request,
    payload: Mapping[str, Any],
    card: str | None = None,
    related: Sequence[Request] = (),
) -> Message:
    """Return the direct message that tells the requester about an event, such as a decision.

    `card` is a link to the request's card, if there is one. `related` are the open requests for
    people whose access has ended.
    """
    asked = f"your request{phrases.through(request)} to {change_of(request)}"
    match payload["event"]:
        case "ended":
            ended = brief(payload["identities"])
            line = f"Access to {flow_name(request.flow)} has ended for {ended}."
            lines = [line, *phrases.also_open(related)]
        case "asked_again":
            news = text.sentence(" ".join(request.round.news), 500)
            lines = [f":arrows_counterclockwise: *Needs approval again*: {asked}.", news]
        case State.FAILED:
            lines = [f"{phrases.outcome_of(request)}. It was {asked}."]
            lines += phrases.titled(phrases.on_the_list(request))
            step = phrases.after_all(request) or " An approver can press Retry on the card."
            lines.append(f"{text.sentence(request.attempts.failure, 500)}{step}")
        case _:
            reason = phrases.quote(request.round.denial_reason, 500)
            lines = [f"{phrases.outcome_of(request)}: {asked}.", *reason]
    return Message.of(*lines).plus(lines=[_link(card)] if card else [])


def _link(card: str) -> str:
    return f"<{card}|View the card>"


def ending(request: Request, identities: list[str], at: datetime) -> Message:
    """Return the notice that access ends soon, with buttons to extend it."""
    line = f"Access to {flow_name(request.flow)} ends {text.time(at)} for {brief(identities)}."
    buttons = form_button("Extend", request.flow, identities, ids.TESTUSERS_EXTEND)
    lines = [line]
    if not buttons:
        lines += [phrases.TOO_MANY, *block_kit.preformatted("\n".join(map(as_line, identities)))]
    return Message.of(*lines).with_buttons(*buttons)


def with_next_steps(message: Message, request: Request, card: str | None) -> Message:
    """Add a `Cancel` button, and a link to the card or a note that it isn't posted yet."""
    step = _link(card) if card else NOT_POSTED
    return message.plus(lines=[step]).with_buttons(*act_buttons(request, Act.CANCEL))


def still_waiting(request: Request, approvers: str, escalate_to: Sequence[str] = ()) -> Message:
    """Return a reminder for a pending request, or an escalation that mentions `escalate_to`.

    `approvers` is the line about who can approve, or an empty string if `escalate_to` can.
    """
    asked = f"{phrases.asker(request)} wants to {change_of(request)}"
    expires = f"The request expires {text.time(request.expires_at)}."
    line = f"Still waiting for approval: {asked}. {expires}"
    return Message.of(f"{phrases.mentions(escalate_to)} {line}".strip(), *filter(None, [approvers]))


def presets(saved: Sequence[Preset], show: phrases.Show) -> Message:
    """Return the list of presets, with the first few people in each preset."""
    if not saved:
        return Message.of(f"There are no presets yet. Save one: {text.code(PRESET_EXAMPLE)}")
    lines, room = [f"*{text.count(len(saved), 'preset')}*"], MESSAGE_CHARACTERS
    for preset in saved:
        people = f"({phrases.how_many(len(preset.identities))}): {brief(preset.identities, show)}"
        by = f"saved by {phrases.who(preset.saved_by)} {text.time(preset.saved_at)}"
        line = f"• {_preset(preset.name)} {people} · {by}"
        room -= len(line)
        if room < 0:
            lines.append(f"And {len(saved) - len(lines) + 1} more.")
            break
        lines.append(line)
    return Message("\n".join(lines), block_kit.sections(lines))


def preset_saved(name: str, identities: Sequence[str]) -> Message:
    """Return the reply after saving a preset, with its people."""
    return Message.of(f"Saved the preset {_preset(name)} with {brief(identities)}.")


def preset_deleted(preset: Preset) -> Message:
    """Return the reply after deleting a preset, with its people."""
    people = brief(preset.identities)
    return Message.of(f"Deleted the preset {_preset(preset.name)}. It contained {people}.")


def _preset(name: str) -> str:
    return text.code(f"@{name}", 60)


OPEN_FORM = "Open the form to pick a flow and people."


def open_form() -> Message:
    """Return a message with a button for the form, because Slack opens forms only after a click."""
    return Message(OPEN_FORM).with_buttons(change_button())
