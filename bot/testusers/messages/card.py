"""The card of a request, which shows only the stored state."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from bot.approvals.rules import State
from bot.permissions import EVERY_FULL_MEMBER
from bot.slack.messages import block_kit, text
from bot.slack.messages.message import MESSAGE_CHARACTERS, Message, SlackBlock
from bot.testusers.messages.buttons import request_buttons
from bot.testusers.messages.phrases import (
    COMPLETES,
    after_all,
    approvers,
    brief,
    change_of,
    counted,
    current_end_of,
    decider,
    effect_of_change,
    end_changes_of,
    how_many,
    in_full,
    lines_of,
    mention,
    new_end_of,
    quote,
    rule_of,
    size_of,
    term_of,
    what_failed,
    who,
)
from bot.testusers.rules.applying import PAUSES_SECONDS, TRIES
from bot.testusers.rules.changes import NO_CHANGE, Change, apply_change
from bot.testusers.rules.requests import Done, Request
from bot.testusers.rules.review import Effect

LEVELS = 3
ENDED_SHOWN = 5
RELATED_SHOWN = 3
LINE_OF_MENTIONS = 1000
GIVEN_UP = frozenset({State.DENIED, State.CANCELLED, State.EXPIRED})


def card(
    request: Request,
    mentioned: Sequence[str],
    needed: int,
    *,
    allows_self: bool = False,
    approvers: str = "",
    related: Sequence[Request] = (),
) -> Message:
    """Return the request as a card, with its current buttons.

    Args:
        request: The request.
        mentioned: Users and groups to mention while the request is pending.
        needed: The number of approvals that the request needs.
        allows_self: True if requesters may approve their own requests.
        approvers: The names of the people who can approve, if a policy mentions other people.
        related: Other open requests about the same people.
    """
    left_out = set() if allows_self else {request.requester.slack_user_id}
    if not (approvers or request.has_enough_approvals(needed)):
        left_out |= {approval.who.slack_user_id for approval in request.progress.approvals}
    able = [user_id for user_id in mentioned if user_id not in left_out]
    shown = _Card(request, needed, able, approvers, related, allows_self=allows_self)
    for level in range(LEVELS):
        blocks = replace(shown, level=level).blocks()
        if size_of(blocks) <= MESSAGE_CHARACTERS:
            break
    return Message(shown.fallback(), blocks)


@dataclass(frozen=True)
class _Card:
    """A card; each `level` leaves out more details, but never people who are added or removed."""

    request: Request
    needed: int
    mentioned: Sequence[str]
    approvers: str
    related: Sequence[Request]
    allows_self: bool
    level: int = 0

    @property
    def is_short(self) -> bool:
        return self.level > 0

    @property
    def tells_each_end(self) -> bool:
        return self.level < LEVELS - 1

    @property
    def reason_characters(self) -> int:
        return 100 if self.is_short else 500

    def blocks(self) -> tuple[SlackBlock, ...]:
        request = self.request
        small_print = block_kit.context(" · ".join(filter(None, self.facts())))
        if request.state in GIVEN_UP:
            return (*block_kit.sections(self.given_up()), small_print)
        change = request.requested.change
        # The headline of an applied change already names a single identity.
        is_said = request.state is State.APPLIED and len(change.identities) == 1
        top = [
            *self.asks_again(),
            *self.headline(),
            *filter(None, [rule_of(request)]),
            *(() if is_said else self.people()),
            *quote(request.requested.reason, self.reason_characters),
        ]
        return (
            *block_kit.sections(top),
            small_print,
            *block_kit.sections([*self.also_open(), *self.news()]),
            *self.mention(),
            *request_buttons(request),
        )

    def fallback(self) -> str:
        """Return the notification text."""
        request = self.request
        change = change_of(request)
        if request.state is State.PENDING:
            reason = text.escape(request.requested.reason, 150)
            because = f" ({reason})" if reason else ""
            return f"{who(request.requester)} wants to {change}{because}. Approve or deny?"
        if request.state in GIVEN_UP:
            return self.given_up()[0]
        return f"{self.headline()[0]} {who(request.requester)} asked to {change}."

    def headline(self) -> list[str]:
        """Return the requester and the change, or the outcome, and the missing approvals."""
        request = self.request
        verb = "wants" if request.state is State.PENDING else "asked"
        change = change_of(request, name=counted)
        wanted = f"*{who(request.requester)}* {verb} to {change}"
        if request.state is State.APPLIED:
            return [self.applied()]
        if request.state is State.SCHEDULED:
            starts_at = request.requested.starts_at
            starts = f" Starts {text.time(starts_at)}." if starts_at else ""
            return [f":calendar: {self.granted()}{starts}", wanted]
        if request.state is State.APPLYING:
            return [f":gear: {self.granted()} {self.trying()}", wanted]
        if request.state is State.FAILED:
            mark = ":grey_question:" if request.progress.is_unsure else ":x:"
            failure = f"{self.failure()}{after_all(request)}"
            return [
                f"{mark} *Failed: {what_failed(request)}.* {failure} {self.granted()}",
                wanted,
            ]
        return [f":hourglass: {wanted}", *self.count()]

    def asks_again(self) -> list[str]:
        """Return the reason why nothing was applied after an approval."""
        news = self.request.progress.news
        if not news or self.request.state is not State.PENDING:
            return []
        why = text.sentence(" ".join(news), self.reason_characters)
        return [f":arrows_counterclockwise: *Needs approval again*: {why}"]

    def count(self) -> list[str]:
        given, needed = len(self.request.progress.approvals), self.needed
        if not given:
            return [f"{needed} approvals needed."] if needed > 1 else []
        if self.request.has_enough_approvals(needed):
            return [f"*Enough approvals now* ({self.names()}). {COMPLETES}"]
        more = "One more needed." if needed - given == 1 else f"{needed - given} more needed."
        return [f"*{given} of {needed} approvals* ({self.names()}). {more}"]

    def names(self) -> str:
        return approvers(self.request, 3 if self.is_short else 20)

    def granted(self) -> str:
        if self.request.requested.without_approval:
            return f"*Without approval*, by {decider(self.request)}."
        return f"*Approved by {self.names() or decider(self.request)}.*"

    def failure(self) -> str:
        return text.sentence(self.request.progress.failure, self.reason_characters)

    def trying(self) -> str:
        tries = self.request.progress.tries
        if not tries:
            return "Updating the list …"
        if self.request.progress.is_unsure or tries >= TRIES:
            return f"{self.failure()} Checking whether the change went through …"
        pause = PAUSES_SECONDS[tries - 1]
        return f"Attempt {tries} of {TRIES} failed: {self.failure()} Trying again in {pause:g} s."

    def given_up(self) -> list[str]:
        """Return two lines: the outcome, and the reason."""
        request = self.request
        outcome = {
            State.DENIED: f":no_entry: *Denied* by {decider(request)}",
            State.CANCELLED: f":wastebasket: *Cancelled* by {decider(request)}",
            State.EXPIRED: f":alarm_clock: *Expired*: {self.lapse()}",
        }[request.state]
        asked = f"{who(request.requester)} wanted to {change_of(request)}"
        return [
            f"{outcome}. {asked}.",
            *quote(request.progress.denial_reason, self.reason_characters),
        ]

    def lapse(self) -> str:
        request, given = self.request, len(self.request.progress.approvals)
        if request.change_at(request.decided_at or request.expires_at).is_empty:
            return "the requested access would already have ended"
        if not given:
            return "nobody approved it in time"
        if given >= self.needed:
            return f"approved by {approvers(request)}, but not completed in time"
        return f"not enough approvals in time ({given} of {self.needed})"

    def applied(self) -> str:
        request = self.request
        if request.requested.without_approval:
            outcome = f":warning: *Applied without approval* by {who(request.requester)}"
        else:
            by_rule = " by a rule, without a decision" if request.progress.rule else ""
            outcome = f":white_check_mark: *Applied*{by_rule}"
        return f"{outcome}: {effect_of_change(request)}."

    def facts(self) -> Iterator[str]:
        """Yield the small print: sizes, times, and exact ids."""
        request = self.request
        yield self.sizes()
        if request.state is State.PENDING:
            if request.requested.duration_seconds is not None:
                begins = "start" if request.requested.starts_at else "approval"
                yield f"{text.duration(request.requested.duration_seconds)} from {begins}"
            yield f"this request expires {text.time(request.expires_at)}"
            # Without an alias, the headline names the SID.
            yield text.code(request.flow.sid) if request.flow.alias else ""
            yield f"requester {request.requester.slack_user_id}"
        else:
            yield f"asked by {who(request.requester)} {text.time(request.created_at)}"
            yield from self.decision()
        if not self.tells_each_end and request.requested.ends and request.state not in GIVEN_UP:
            ends = request.requested.ends.values()
            span = f"from {text.time(min(ends))} to {text.time(max(ends))}"
            yield f"until their previous end dates ({len(ends)}, {span})"

    def decision(self) -> Iterator[str]:
        request, done = self.request, self.request.progress.done
        if request.decided_at is not None and not request.requested.without_approval:
            verb = request.state.value if request.state in GIVEN_UP else "approved"
            by = f" by {approvers(request, 3) or decider(request)}" if done else ""
            yield f"{verb}{by} {text.time(request.decided_at)}"
        if done is not None:
            yield f"applied {text.time(done.at)}"

    def sizes(self) -> str:
        done, requested = self.request.took_effect, self.request.requested
        if done is not None:
            return f"{done.size_before} → {how_many(done.size_after)}"
        if self.request.state in GIVEN_UP or self.request.state is State.FAILED:
            return ""
        # A person who is on the list now but counts as added will be gone when this change starts.
        new = set(requested.change.additions).difference(requested.end_changes)
        seen = [identity for identity in requested.seen if identity not in new]
        return f"{len(seen)} → {how_many(len(apply_change(seen, requested.change)))}"

    def also_open(self) -> Iterator[str]:
        """Yield a line with the other open requests about the same people."""
        if not self.related or self.request.state not in {State.PENDING, State.SCHEDULED}:
            return
        shown = self.related[: 0 if self.is_short else RELATED_SHOWN]
        listed = [f"{change_of(other)} ({who(other.requester)})" for other in shown]
        more = len(self.related) - len(shown)
        listed += [text.count(more, "more request" if shown else "request")] if more else []
        yield f":warning: *Also open for the same people:* {'; '.join(listed)}"

    def news(self) -> Iterator[str]:
        """Yield news about an approved request, apart from its outcome."""
        progress = self.request.progress
        if progress.done is not None:
            yield from self.surprises(progress.done)
        if progress.respelled:
            yield f"Stored by the service as {self.named([*progress.respelled.values()])}"
        shown = progress.ended[-1 if self.is_short else -ENDED_SHOWN :]
        if len(progress.ended) > len(shown):
            yield f"*Access ended ({len(progress.ended)}), most recent {len(shown)}:*"
        for end in shown:
            gone = " (already removed)" if end.was_gone else ""
            yield f"*Access ended:* {in_full(end.identity)} {text.time(end.at)}{gone}"
        if progress.superseded and not progress.is_undone:
            yield f"*Replaced by a later request:* {self.named(progress.superseded)}"
        if progress.overdue:
            why = text.sentence(progress.overdue, min(300, self.reason_characters))
            yield f"*Expired but not removed yet:* {why} Retrying until it works."
        if progress.undone_by:
            yield "*Undone*" if progress.is_undone else "*Undo requested*"

    def people(self) -> list[str]:
        """Return all people in the request, so that nobody approves people they did not see."""
        groups: dict[str, list[str]] = {}
        for title, identity in self.titled():
            groups.setdefault(title, []).append(identity)
        if len(groups) == 1 and not self.request.has_failed_in_part:
            # The headline says the same as the title.
            return lines_of(next(iter(groups.values())))
        return [
            line
            for title, identities in groups.items()
            for line in (f"*{title} ({len(identities)}):*", *lines_of(identities))
        ]

    def titled(self) -> Iterator[tuple[str, str]]:
        """Yield people under shared titles; for a failure, first the part that took effect."""
        request, requested = self.request, self.request.requested
        settled = request.progress.part.change if request.progress.part else NO_CHANGE
        for identity in settled.additions:
            yield f"Added{self.end(identity)}", identity
        for identity in settled.removals:
            yield "Removed", identity
        is_missing = request.has_failed_in_part
        add, remove = ("Not added", "Not removed") if is_missing else ("Add", "Remove")
        says_end = not is_missing and not self.has_common_end()
        for identity in request.left.additions:
            if identity not in requested.end_changes:
                yield f"{add}{self.end(identity) if says_end else ''}", identity
        for identity in request.left.removals:
            yield remove, identity
        for effect, identities in end_changes_of(request).items():
            for identity in identities:
                becomes = "new end date"
                if self.tells_each_end:
                    becomes = self.end_change(effect, identity)
                title = "end date not changed" if is_missing else becomes
                yield f"Already on the list; {title}", identity

    def has_common_end(self) -> bool:
        """Return True if all additions share an end, which the card shows elsewhere."""
        if self.request.progress.done is None:
            return bool(term_of(self.request))
        return len(set(map(self.known_end, self.request.requested.change.additions))) <= 1

    def known_end(self, identity: str) -> datetime | None:
        done = self.request.took_effect
        stored = self.request.progress.respelled.get(identity, identity)
        return done.ends_at.get(stored) if done else None

    def end(self, identity: str) -> str:
        end = self.known_end(identity) or self.request.requested.ends.get(identity)
        return f" until {text.time(end)}" if end and self.tells_each_end else ""

    def end_change(self, effect: Effect, identity: str) -> str:
        """Return the new and the current end for a person who is already on the list."""
        now = current_end_of(self.request, [identity])
        if effect is Effect.KEEP:
            return f"stays with no end date{now}"
        end = self.known_end(identity) if self.request.progress.done else None
        until = text.time(end) if end else new_end_of(self.request, [identity])
        return f"{'stays until' if effect is Effect.EXTEND else 'access ends'} {until}{now}"

    def surprises(self, done: Done) -> Iterator[str]:
        """Yield the parts that were already true, and the changes by others."""
        already = done.already.without(self.request.requested.end_changes)
        if already.additions:
            yield f"*Already on the list:* {self.named(already.additions)}"
        if already.removals:
            yield f"*Already gone:* {self.named(already.removals)}"
        if not done.outside.is_empty:
            edits = self.edits(done.outside)
            yield f"*Changed by someone else in the meantime (kept):* {edits}"

    def named(self, identities: Sequence[str]) -> str:
        return str(len(identities)) if self.is_short else brief(identities)

    def edits(self, change: Change) -> str:
        if self.is_short:
            return f"{len(change.additions)} added, {len(change.removals)} removed"
        parts = (("added", change.additions), ("removed", change.removals))
        return "; ".join(f"{verb} {brief(people)}" for verb, people in parts if people)

    def mention(self) -> list[SlackBlock]:
        """Mention the people who may approve; the bot mentions nobody else on the card."""
        if self.request.state is not State.PENDING:
            return []
        able = [mention(user_id) for user_id in self.mentioned if user_id != EVERY_FULL_MEMBER]
        most = 1000 if self.tells_each_end else 50
        named = able[:most] + ([f"and {len(able) - most} more"] if len(able) > most else [])
        if EVERY_FULL_MEMBER in self.mentioned:
            anybody = "and any full member" if able else "any full member"
            named.append(anybody if self.allows_self else f"{anybody} except the requester")
        if not named:
            return []
        only = f"Only {text.escape(self.approvers, 500)} can approve. Notified:"
        lines = [only if self.approvers else "Approvers:"]
        for name in named:
            if len(lines[-1]) + len(name) < LINE_OF_MENTIONS:
                lines[-1] += f" {name}"
            else:
                lines.append(name)
        return block_kit.sections(lines)
