"""New requests: check a change against the current list, store it, and post its card."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from bot.approvals.rules import (
    RULE_NAME,
    Act,
    ApprovedByRule,
    FlowRules,
    State,
    duration_problem,
    is_automatic,
    rule_id,
)
from bot.errors import Conflict
from bot.flows.rules.flows import Flow
from bot.flows.rules.identities import identities_problem
from bot.flows.store import see_list
from bot.permissions import Permission, Person
from bot.store.audit_entry import BOT
from bot.store.engine import serialise
from bot.testusers import store
from bot.testusers.deciding import STILL_CHECKING, is_in_doubt, look, require_current
from bot.testusers.lists import ReadList, read_list
from bot.testusers.parse.command import ChangeRequest, end_of, misuse
from bot.testusers.parse.form import Prefilled, ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.presets import identities_of
from bot.testusers.rules.people import TAKES_AWAY, Effect, RequestPerson, Wants, inverse
from bot.testusers.rules.requests import Asked, Request, Requested, Who
from bot.testusers.work import Work

MOST_PENDING = 20
REASON_NEEDED = "Changes to this flow need a reason. Add one, e.g. “because …” at the end."
UNDO_ASKED = "Someone has already asked to undo this."


async def require_asking(
    bot: Parts,
    person: Person,
    permission: Permission = Permission.REQUEST,
    flow: Flow | None = None,
) -> None:
    """Check that the flow service is configured and that the person can request changes."""
    await bot.people.require(person, permission, flow_sid=flow.sid if flow else None)
    bot.flows.service()


async def ask(bot: Parts, person: Person, requested: ChangeRequest) -> Asked:
    """Make a request from a command or a form. Skip the approval if `requested.now` is set."""
    permission = Permission.OVERRIDE if requested.now else Permission.REQUEST
    flow = bot.flows.named(requested.flow)
    await require_asking(bot, person, permission, flow)
    if not requested.reason and bot.people.policy.of_flow(flow.sid).reason:
        raise misuse(requested.form, REASON_NEEDED)
    typed = await identities_of(bot, requested)
    if problem := identities_problem(typed):
        raise misuse(requested.kind, problem)
    read = await read_list(bot, flow)
    ends_at = end_of(person.time_zone, requested, read.at)
    wishes = list[RequestPerson]()
    for identity in typed:
        if requested.kind == "add":
            wishes.append(RequestPerson.added(identity, ends_at, requested.duration_seconds))
        else:
            wishes.append(RequestPerson.removed(identity))
    words = Requested(requested.reason, requested.presets, without_approval=requested.now)
    return await _open(bot, person, flow, read, wishes, words)


async def undo(bot: Parts, person: Person, shown: ShownRequest) -> Asked:
    """Make a request that reverses the part of an applied request that's still in effect."""
    undone = await look(bot, person, Act.UNDO, shown.request_id)
    await require_current(bot, undone, shown)
    if undone.undone_by:
        raise Conflict(UNDO_ASKED)
    if not undone.can_be_undone:
        raise Conflict("This change isn't in effect, so there's nothing to undo.")
    read = await read_list(bot, undone.flow)
    wishes = inverse(undone.people, read.current, read.at)
    words = Requested(f"Undoes {undone.requester.name}'s request")
    return await _open(bot, person, undone.flow, read, wishes, words, undo_of=undone.id)


def policy_problems(bot: Parts, requested: ChangeRequest, now: datetime) -> dict[str, str]:
    """Return what the policy doesn't allow of a form's change, keyed by input name."""
    policy = bot.people.policy.of_flow(bot.flows.named(requested.flow).sid)
    problems = dict[str, str]()
    if policy.reason and not requested.reason:
        problems["reason"] = REASON_NEEDED
    if requested.kind == "add":
        at = "until" if requested.until else "duration"
        ends_at = end_of("UTC", requested, now)
        lasts = (ends_at - now).total_seconds() if ends_at else requested.duration_seconds
        if problem := duration_problem(policy, lasts):
            problems[at] = problem
    return problems


async def _open(
    bot: Parts,
    person: Person,
    flow: Flow,
    read: ReadList,
    wishes: Sequence[RequestPerson],
    words: Requested,
    *,
    undo_of: str | None = None,
) -> Asked:
    """Store a request, and approve it if a rule does, unless the flow's policy doesn't allow it.

    If the person has an open request for exactly the same, return that one instead.
    """
    policy = bot.people.policy.of_flow(flow.sid)
    people, dropped = read.current.planned(wishes, read.at)
    spellings = [*(wish.identity for wish in wishes), *(one.spelling for one in people)]
    async with bot.database.transaction() as tx:
        # Otherwise, requests made at the same moment could exceed the limits of a person.
        await serialise(tx, f"asking:{person.slack_user_id}")
        latest = await see_list(tx, flow.key, read.current.identities, read.known_id)
        work = Work(bot, tx, await tx.now())
        related, own_pending = await store.open_near(tx, flow.key, spellings, person.slack_user_id)
        if not people:
            return Asked(flow, dropped, None, related)
        by, expires_at = Who.of(person), work.at + timedelta(hours=bot.settings.request_hours)
        request = Request(
            bot.new_id(),
            flow,
            by,
            people,
            work.at,
            expires_at,
            requested=words,
            list_id=latest.id,
            undo_of=undo_of,
        )
        if not words.without_approval:
            for earlier in related:
                is_own = earlier.requester.slack_user_id == person.slack_user_id
                if is_own and earlier.state is State.PENDING and earlier.is_the_same(request):
                    related.remove(earlier)
                    return Asked(flow, dropped, earlier, related, is_repeated=True)
        _require_allowed(policy, request)
        if undo_of is not None:
            await _require_not_undone(work, undo_of)
        request = await _decided(work, person, request, policy, own_pending)
        await work.write()
    return Asked(flow, dropped, request, related)


def _require_allowed(policy: FlowRules, request: Request) -> None:
    for seconds in _lengths(request):
        if problem := duration_problem(policy, seconds):
            raise Conflict(problem)


def _lengths(request: Request) -> list[float | None]:
    """Return how many seconds each addition's access lasts from now, or None if it has no end."""
    at, lengths = request.created_at, list[float | None]()
    for person in request.people:
        if person.wants is Wants.ADD:
            end = person.end_at(at)
            lengths.append((end - at).total_seconds() if end else None)
    return lengths


async def _require_not_undone(work: Work, request_id: str) -> None:
    """Lock a request that's about to be undone, and check that nobody else has asked for that."""
    undone = await work.request(request_id)
    if undone is None or undone.undone_by or not undone.can_be_undone:
        raise Conflict(UNDO_ASKED)
    if undone.state is State.FAILED and await is_in_doubt(work.tx, undone):
        raise Conflict(STILL_CHECKING)


async def _decided(
    work: Work, person: Person, request: Request, policy: FlowRules, own_pending: int
) -> Request:
    """Add a new request to the work, in the state that follows from how it was made.

    Raises:
        Conflict: The request needs approval, and too many of the person's requests do.
    """
    is_now = request.requested.without_approval
    action = "request.created_without_approval" if is_now else "request.created"
    _note_created(work, action, request)
    if is_now:
        request = request.moved(State.APPLYING, request.requester, work.at)
    elif rule := await _rule_for(work, person, request, policy):
        who = Who(rule_id(policy, request.flow.key), RULE_NAME)
        approved = request.moved(State.APPLYING, who, work.at)
        request = replace(approved, round=replace(approved.round, rule=rule))
        work.note(BOT, "request.approved_by_rule", request, **asdict(rule))
    elif own_pending >= MOST_PENDING:
        raise Conflict(
            f"You already have {MOST_PENDING} requests waiting for a decision. Wait for a"
            " decision, or cancel one of your requests: /testusers requests"
        )
    work.put(request)
    return request


def _note_created(work: Work, action: str, request: Request) -> None:
    people = request.people
    work.note(
        request.requester.slack_user_id,
        action,
        request,
        additions=[one.identity for one in people if one.wants is Wants.ADD],
        removals=[one.identity for one in people if one.wants is Wants.REMOVE],
        end_changes=[one.identity for one in people if one.effect in (Effect.KEEP, Effect.LIMIT)],
        duration_seconds=people[0].asked_seconds,
        until=sorted({one.asked_end.isoformat() for one in people if one.asked_end}),
        reason=request.requested.reason,
        undo_of=request.undo_of,
    )


async def _rule_for(
    work: Work, person: Person, request: Request, policy: FlowRules
) -> ApprovedByRule | None:
    """Return the rule that approves a new request, or None if no rule does."""
    if policy.auto is None:
        return None
    counted_as, since = rule_id(policy, request.flow.key), work.at - timedelta(hours=24)
    used = await store.count_by_rule(work.tx, person.slack_user_id, counted_as, since)
    effects = {one.effect for one in request.people}
    if not is_automatic(
        policy,
        used,
        {person.slack_user_id, *person.groups},
        _lengths(request),
        takes_away=not TAKES_AWAY.isdisjoint(effects),
    ):
        return None
    auto = policy.auto
    return ApprovedByRule(policy.sources["auto"], auto.longest_seconds, used + 1, auto.a_day)


async def extension(bot: Parts, filled: Prefilled) -> Prefilled:
    """Return the form's values to extend people's access, for those who still have it.

    The new end is the present end plus the length of the access so far.

    Raises:
        Conflict: Nobody has this access anymore.
    """
    flow_key = bot.flows.named(filled.flow).key
    async with bot.database.read_only(sees_snapshot=False) as tx:
        access = await store.access_for(tx, flow_key, filled.identities)
    people, until = list[str](), None
    for identity in filled.identities:
        held = access.get(identity)
        if held is not None and held.ends_at is not None:
            people.append(identity)
            later = held.ends_at + (held.ends_at - held.since)
            until = max(later, until or later)
    if not people:
        raise Conflict("Nobody has this access anymore, so there's nothing to extend.")
    return replace(filled, identities=tuple(people), until=until)
