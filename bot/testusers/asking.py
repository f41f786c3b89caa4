"""New requests: check a change against the current list, store it, and post its card."""

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta

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
from bot.approvals.times import zone_of
from bot.errors import Conflict
from bot.flows.rules.flows import Flow
from bot.flows.rules.identities import identities_problem, meant_on
from bot.flows.rules.lists import Change
from bot.permissions import Permission, Person
from bot.store import audit
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction, serialise
from bot.testusers import store
from bot.testusers.deciding import look
from bot.testusers.lists import read_list
from bot.testusers.parse.command import ChangeRequest, end_of, misuse
from bot.testusers.parse.form import Prefilled, ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.presets import identities_of
from bot.testusers.rules.applying import inverse_of
from bot.testusers.rules.requests import (
    TAKES_AWAY,
    Request,
    RequestedChange,
    Who,
    planned_change,
)
from bot.testusers.timers import next_timer
from bot.testusers.transitions import (
    STILL_CHECKING,
    apply_transition,
    is_in_doubt,
    put_apply_job,
    put_timer,
    require_current,
    write_card,
    write_related_cards,
)

MOST_PENDING = 20


@dataclass(frozen=True)
class Asked:
    """The result of asking for a change.

    `dropped` is the part that's left out because the list already shows it. If nothing is left,
    no request is made, and `request` is None.
    """

    flow: Flow
    dropped: Change
    request: Request | None = None


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
    typed = await identities_of(bot, requested)
    read = await read_list(bot, flow)
    ends_at = end_of(person.time_zone, requested, read.at)
    identities = meant_on(read.identities, typed)
    if problem := identities_problem(identities):
        raise misuse(requested.kind, problem)
    is_addition = requested.kind == "add"
    wanted = RequestedChange(
        Change(identities) if is_addition else Change(removals=identities),
        duration_seconds=requested.duration_seconds,
        reason=requested.reason,
        presets=requested.presets,
        without_approval=requested.now,
        ends=dict.fromkeys(identities, ends_at) if ends_at else {},
    )
    planned, dropped = planned_change(read, wanted)
    if planned.change.is_empty:
        return Asked(flow, dropped)
    return Asked(flow, dropped, await _open(bot, person, flow, planned))


async def undo(bot: Parts, person: Person, shown: ShownRequest) -> Asked:
    """Make a request that reverses the part of an applied request that's still in effect."""
    undone = await look(bot, person, Act.UNDO, shown.request_id)
    flow = undone.flow
    done = undone.result.done
    if undone.result.undone_by:
        raise Conflict("Someone has already asked to undo this.")
    if done is None or not undone.can_be_undone:
        raise Conflict("This change isn't in effect, so there's nothing to undo.")
    await require_current(bot, undone, shown)
    read = await read_list(bot, flow)
    inverse, ends = inverse_of(done, undone.gone, read.identities, read.at)
    reason = f"Undoes {undone.requester.name}'s request"
    wanted = RequestedChange(inverse, ends=ends, undo_of=undone.id, reason=reason)
    planned, dropped = planned_change(read, wanted)
    if planned.change.is_empty:
        return Asked(flow, dropped)
    return Asked(flow, dropped, await _open(bot, person, flow, planned, undone=undone))


def limit_problem(bot: Parts, requested: ChangeRequest, now: datetime) -> str | None:
    """Return a sentence that says why the policy doesn't allow a form's change, or None if so."""
    policy = bot.people.policy.of_flow(bot.flows.named(requested.flow).sid)
    if requested.kind == "remove":
        return None
    ends_at = end_of("UTC", requested, now)
    lasts = (ends_at - now).total_seconds() if ends_at else requested.duration_seconds
    return duration_problem(policy, lasts)


async def _open(
    bot: Parts,
    person: Person,
    flow: Flow,
    requested: RequestedChange,
    *,
    undone: Request | None = None,
) -> Request:
    """Store a request, and approve it if a rule does, unless the flow's policy doesn't allow it.

    If the person has an open request for exactly the same, return that one instead.
    """
    policy = bot.people.policy.of_flow(flow.sid)
    async with bot.database.transaction() as tx:
        # Otherwise, requests made at the same moment could exceed the limits of a person.
        await serialise(tx, f"asking:{person.slack_user_id}")
        waiting = await store.pending_near(tx, flow.key, person.slack_user_id)
        at = await tx.now()
        is_now = requested.without_approval
        own = [one for one in waiting if one.requester.slack_user_id == person.slack_user_id]
        for earlier in own:
            is_same = earlier.flow.key == flow.key and earlier.requested.is_the_same(requested)
            if is_same and not is_now:
                # The reply shows the open card.
                return earlier
        _require_allowed(policy, requested, at)
        expires_at = at + timedelta(hours=bot.settings.request_hours)
        by = Who.of(person)
        request = Request(bot.new_id(), flow, by, requested, at, expires_at)
        if is_now:
            request = request.moved(State.APPLYING, by, at)
        await store.add_request(tx, request)
        if undone is not None:
            await _note_undone_by(tx, undone, request.id)
        detail = {
            "flow": flow.sid,
            "additions": requested.change.additions,
            "removals": requested.change.removals,
            "end_changes": requested.end_changes,
            "duration_seconds": requested.duration_seconds,
            "until": sorted({end.isoformat() for end in requested.ends.values()}),
            "reason": requested.reason,
            "undo_of": requested.undo_of,
        }
        action = "request.created_without_approval" if is_now else "request.created"
        await audit.append(tx, AuditEntry(person.slack_user_id, action, request.id, detail))
        await bot.refresh_home(tx, person.slack_user_id)
        if undone is not None:
            await write_card(tx, undone.id)
        if is_now:
            await put_apply_job(tx, flow.key)
            return request
        if approved := await _approved_by_rule(tx, person, request, policy):
            return approved
        if len(own) >= MOST_PENDING:
            raise Conflict(
                f"You already have {MOST_PENDING} requests waiting for a decision. Wait for a"
                " decision, or cancel one of your requests: /testusers requests"
            )
        await write_card(tx, request.id)
        await write_related_cards(tx, request, waiting)
        if timer := next_timer(bot, request):
            await put_timer(tx, request.id, timer[0])
    return request


def _require_allowed(policy: FlowRules, requested: RequestedChange, at: datetime) -> None:
    for seconds in requested.lasting(at):
        if problem := duration_problem(policy, seconds):
            raise Conflict(problem)


async def _note_undone_by(tx: Transaction, undone: Request, request_id: str) -> None:
    if undone.state is State.FAILED and await is_in_doubt(tx, undone):
        raise Conflict(STILL_CHECKING)
    result = replace(undone.result, undone_by=request_id)
    if not await store.save_request(tx, replace(undone, result=result)):
        raise Conflict("Someone else just changed this request. Check its card.")


async def _approved_by_rule(
    tx: Transaction, person: Person, request: Request, policy: FlowRules
) -> Request | None:
    """Approve the new request by rule and return it, or return None if no rule approves it."""
    if policy.auto is None:
        return None
    requested = request.requested
    now = request.created_at
    counted_as = rule_id(policy, request.flow.key)
    zone = zone_of(person.time_zone) or UTC
    midnight = now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
    used = await store.count_by_rule(tx, person.slack_user_id, counted_as, midnight)
    effects = requested.effects(requested.change, now).values()
    if not is_automatic(
        policy,
        used,
        {person.slack_user_id, *person.groups},
        requested.lasting(now),
        takes_away=not TAKES_AWAY.isdisjoint(effects),
    ):
        return None
    rule = ApprovedByRule(
        policy.sources["auto"], policy.auto.longest_seconds, used + 1, policy.auto.a_day
    )
    approved = request.moved(State.APPLYING, Who(counted_as, RULE_NAME), now)
    approved = replace(approved, round=replace(approved.round, rule=rule))
    detail = {"flow": request.flow.sid, **asdict(rule)}
    entry = AuditEntry(BOT, "request.approved_by_rule", request.id, detail)
    await apply_transition(tx, request, approved, entry)
    return approved


async def later_end(bot: Parts, known: Prefilled) -> datetime | None:
    """Return a later end for people's access, or None if there's no end to extend.

    A button adds `known.more_seconds`, counted from now if nobody has access. In the form, the
    access is extended by its duration so far.
    """
    async with bot.database.read_only() as tx:
        granted = await store.grants_of_flow(tx, bot.flows.named(known.flow).key)
    found = [granted[identity] for identity in known.identities if identity in granted]
    ends = [(grant.ends_at, grant.granted_at) for grant in found if grant.ends_at]
    if len(ends) < len(found):
        return None
    now = bot.clock.now()
    ends_at, granted_at = max(ends, default=(now, now))
    more = timedelta(seconds=known.more_seconds) or ends_at - granted_at
    return ends_at + more if more else None
