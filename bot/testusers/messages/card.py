"""Request cards, which are rendered from stored state, and buttons for requests."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.approvals.rules import Act, State
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import MESSAGE_CHARACTERS, Message, SlackBlock
from bot.testusers.messages import phrases
from bot.testusers.messages.phrases import brief, change_in_plain, change_of, who
from bot.testusers.parse.form import Prefilled, ShownRequest
from bot.testusers.rules.applying import PAUSES_SECONDS, TRIES
from bot.testusers.rules.changes import Flow, apply_change
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
    Act.UNDO: ("Ask to undo this?", "This makes a request to reverse the change", "Ask to undo"),
}
ENDED_SHOWN = 5
RELATED_SHOWN = 3
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})


def card(request: Request, needed: int, approvers: str, related: Sequence[Request] = ()) -> Message:
    """Return a request's card, with the buttons for its current state.

    Args:
        request: The request, as stored.
        needed: The number of approvals that the request needs.
        approvers: The line that mentions who can approve, while the request is pending.
        related: Other open requests that affect the same people.
    """
    shown = _Card(request, needed, approvers, related)
    blocks = shown.blocks()
    if phrases.size_of(blocks) > MESSAGE_CHARACTERS:
        blocks = replace(shown, is_short=True).blocks()
    return Message(shown.fallback(), blocks)


@dataclass(frozen=True)
class _Card:
    """A request's card. A short card omits details, but never the people added or removed."""

    request: Request
    needed: int
    approvers: str
    related: Sequence[Request]
    is_short: bool = False

    @property
    def reason_characters(self) -> int:
        return 100 if self.is_short else 500

    def blocks(self) -> tuple[SlackBlock, ...]:
        request = self.request
        small_print = block_kit.context(" · ".join(self.facts()))
        if request.state in GIVEN_UP:
            why = phrases.quote(request.round.denial_reason, self.reason_characters)
            return (*block_kit.sections([*self.headline(), *why]), small_print)
        top = [
            *self.headline(),
            *filter(None, [phrases.rule_of(request)]),
            *self.people(),
            *phrases.quote(request.requested.reason, self.reason_characters),
        ]
        return (
            *block_kit.sections(top),
            small_print,
            *block_kit.sections([*self.also_open(), *self.news()]),
            *block_kit.sections(filter(None, [self.approvers])),
            *block_kit.row(act_buttons(request, *Act)),
        )

    def fallback(self) -> str:
        """Return the text that notifications show."""
        request = self.request
        if request.state is State.PENDING:
            reason = text.escape(request.requested.reason, 150)
            because = f" ({reason})" if reason else ""
            wanted = f"{who(request.requester)} wants to {change_of(request)}"
            return f"{wanted}{because}. Approve or deny?"
        return " ".join(self.headline())

    def headline(self) -> Iterator[str]:
        """Yield lines that describe the request and its outcome, or the approvals so far."""
        request = self.request
        wanted = f"to {change_of(request, name=phrases.counted)}"
        if request.state is State.PENDING:
            if request.round.news:
                why = text.sentence(" ".join(request.round.news), self.reason_characters)
                yield f":arrows_counterclockwise: *Needs approval again*: {why}"
            yield f":hourglass: *{who(request.requester)}* wants {wanted}"
            yield from self.count()
            return
        if request.state is State.APPLIED or request.state in GIVEN_UP:
            asked = f"{who(request.requester)} asked to {change_of(request)}"
            yield phrases.outcome_line(request, asked)
        else:
            yield f"{phrases.outcome_of(request)}.{self.trying()}"
            yield f"*{who(request.requester)}* asked {wanted}"

    def count(self) -> Iterator[str]:
        given = len(self.request.round.approvals)
        if given:
            yield f"*{given} of {self.needed} approvals* ({phrases.approvers(self.request)})."
        elif self.needed > 1:
            yield f"{self.needed} approvals needed."

    def trying(self) -> str:
        """Describe the last failure and the next attempt, or return "" if no attempt failed."""
        attempts = self.request.attempts
        tries = attempts.tries
        failure = f" {text.sentence(attempts.failure, self.reason_characters)}"
        if self.request.state is State.FAILED:
            return f"{failure}{phrases.after_all(self.request)}"
        if not tries:
            return ""
        if attempts.is_unsure or tries >= TRIES:
            return f"{failure} Checking whether the change went through…"
        pause = PAUSES_SECONDS[tries - 1]
        return f" Attempt {tries} of {TRIES} failed:{failure} Trying again in {pause:g} s."

    def facts(self) -> Iterator[str]:
        """Yield the small print: the list's size, times, and IDs."""
        request, done = self.request, self.request.result.done
        if sizes := self.sizes():
            yield sizes
        if request.state is State.PENDING:
            yield f"this request expires {text.time(request.expires_at)}"
            # Anyone can give themselves the name of somebody else.
            yield f"requester {request.requester.slack_user_id}"
        else:
            yield f"requested by {who(request.requester)} {text.time(request.created_at)}"
            if request.decided_at is not None and not request.requested.without_approval:
                verb = request.state.value if request.state in GIVEN_UP else "approved"
                yield f"{verb} {text.time(request.decided_at)}"
            if done is not None and request.state is State.APPLIED:
                yield f"applied {text.time(done.at)}"
        if self.is_short and request.requested.ends and request.state not in GIVEN_UP:
            ends = request.requested.ends.values()
            yield f"{len(ends)} end dates between {text.time(min(ends))} and {text.time(max(ends))}"

    def sizes(self) -> str:
        done, requested = self.request.result.done, self.request.requested
        if done is not None:
            return _sizes(done.size_before, done.size_after)
        if self.request.state in GIVEN_UP or self.request.state is State.FAILED:
            return ""
        # Added people who are still on the list won't be on it when this change is applied.
        new = set(requested.change.additions).difference(requested.end_changes)
        seen = [identity for identity in requested.compared.seen if identity not in new]
        return _sizes(len(seen), len(apply_change(seen, requested.change)))

    def also_open(self) -> Iterator[str]:
        """Yield a line with the other open requests that affect the same people."""
        if not self.related or self.request.state is not State.PENDING:
            return
        shown = self.related[: 0 if self.is_short else RELATED_SHOWN]
        listed = [f"{change_of(other)}, by {who(other.requester)}" for other in shown]
        more = len(self.related) - len(shown)
        if more:
            listed.append(f"{more} more")
        yield f":warning: *Other open requests for the same people:* {'; '.join(listed)}"

    def news(self) -> Iterator[str]:
        """Yield lines about other events: outside changes, access that ended, and undos."""
        result = self.request.result
        for title, people in phrases.on_the_list(self.request).items():
            yield f"*{title}:* {self.named(people)}"
        if result.done is not None:
            yield from self.surprises(result.done)
        if result.respelled:
            yield f"The service stores this as {self.named([*result.respelled.values()])}"
        shown = result.ended[-1 if self.is_short else -ENDED_SHOWN :]
        if len(result.ended) > len(shown):
            ended = phrases.how_many(len(result.ended))
            yield f"*Access ended for {ended}. Most recently:*"
        for end in shown:
            gone = " (already removed)" if end.was_gone else ""
            yield f"*Access ended:* {phrases.in_full(end.identity)} {text.time(end.at)}{gone}"
        if result.superseded and not result.is_undone:
            yield f"*Replaced by a later request:* {self.named(result.superseded)}"
        if result.overdue:
            why = text.sentence(result.overdue, min(300, self.reason_characters))
            yield f"*Expired but not removed yet:* {why} I'll keep trying."
        if result.undone_by:
            yield "*Undone*" if result.is_undone else "*Undo requested*"

    def people(self) -> Iterator[str]:
        """Yield lines that name everyone in the request, because approvers must see each person."""
        request = self.request
        if request.state is State.APPLIED and len(request.requested.change.identities) == 1:
            # The headline already names a single person.
            return
        groups = phrases.titled(request, each_end=not self.is_short)
        for title, identities in groups.items():
            # A single title would only repeat the headline.
            if len(groups) > 1:
                yield f"*{title} ({len(identities)}):*"
            yield from phrases.lines_of(identities)

    def surprises(self, done: Done) -> Iterator[str]:
        """Yield lines about requested changes that were already made and about outside changes."""
        already = done.already.without(self.request.requested.end_changes)
        if already.additions:
            yield f"*Already on the list:* {self.named(already.additions)}"
        if already.removals:
            yield f"*Already removed:* {self.named(already.removals)}"
        edits = (("added", done.outside.additions), ("removed", done.outside.removals))
        if kept := "; ".join(f"{verb} {self.named(people)}" for verb, people in edits if people):
            yield f"*Changes made by someone else in the meantime, and kept:* {kept}"

    def named(self, identities: Sequence[str]) -> str:
        return str(len(identities)) if self.is_short else brief(identities)


def _sizes(before: int, after: int) -> str:
    now = phrases.how_many(after)
    return now if before == after else f"{before} → {now}"


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


def person_menu(flow: Flow, identity: str, *, has_end: bool) -> SlackBlock | None:
    """Return a menu to extend or remove a test user, or a single button if the menu doesn't fit."""
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
