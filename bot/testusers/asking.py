"""New requests: check a change against the current list, store it, and post its card."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
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
from bot.errors import Conflict, Refused
from bot.flows.rules import Flow, find_flow, identities_problem, plain
from bot.flows.store import lock_flow, see_list
from bot.permissions import Permission, Person
from bot.store.audit_entry import BOT
from bot.store.engine import Transaction
from bot.testusers import store
from bot.testusers.deciding import (
    STILL_CHECKING,
    look,
    may_be_automatic,
    require_current,
)
from bot.testusers.parse.command import ChangeRequest, Prefilled, ShownRequest, end_of, misuse
from bot.testusers.parts import Parts, policy_of
from bot.testusers.presets import identities_of
from bot.testusers.reading import ReadList, read_list
from bot.testusers.rules.people import TAKES_AWAY, Effect, RequestPerson, Wants, change_of, inverse
from bot.testusers.rules.requests import Asked, Request, Requested, Who
from bot.testusers.work import Work

MOST_PENDING = 20
# The open requests of one program, and how long the same text stands for the same request.
MOST_OPEN_OF_PROGRAM = 10
REPEAT = timedelta(minutes=10)
REASON_NEEDED = "Changes to this flow need a reason. Add one, e.g. “because …” at the end."
UNDO_ASKED = "Someone has already asked to undo this."
ASK_INSTEAD = " An undo can't have another end, so use /testusers add."


async def require_asking(
    bot: Parts,
    person: Person,
    permission: Permission = Permission.REQUEST,
    flow: Flow | None = None,
) -> None:
    """Check that the flow service is configured and that the person can request changes."""
    await bot.people.require(person, permission, flow_sid=flow.sid if flow else None)
    bot.flows.service()


class TooManyOpen(Conflict):
    """The person or the program must wait for decisions before it asks for more."""


@dataclass(frozen=True)
class Program:
    """A gateway client that asks in the name of its owner. The text that it sent is hashed."""

    client: str
    owner: str
    text_sha256: str = ""

    def has_made(self, request: Request) -> bool:
        """Return True if the program made the request, in the name of its present owner."""
        made_by = request.requested.client, request.requester.slack_user_id
        return made_by == (self.client, self.owner)


async def asked_before(tx: Transaction, program: Program, now: datetime) -> Request | None:
    """Return the request that the program made with the same text, or None if there's none.

    Raises:
        TooManyOpen: There's none, and the program has too many open requests.
    """
    since = now - REPEAT
    made = [*filter(program.has_made, await store.requests_of(tx, program.owner, since))]
    for request in made:
        is_same = request.requested.text_sha256 == program.text_sha256
        if is_same and (request.state in store.OPEN or request.created_at > since):
            return request
    if sum(request.state in store.OPEN for request in made) >= MOST_OPEN_OF_PROGRAM:
        raise TooManyOpen(
            f"This program already has {MOST_OPEN_OF_PROGRAM} open requests. Wait for decisions."
        )
    return None


async def made_by(bot: Parts, program: Program, request_id: str) -> Request | None:
    """Return the request with this ID if the program made it, or None."""
    async with bot.database.read_only(sees_snapshot=False) as tx:
        request = await store.load_request(tx, request_id)
    return request if request and program.has_made(request) else None


async def ask_for(bot: Parts, program: Program, requested: ChangeRequest) -> Asked:
    """Make a request for a program, as its owner.

    Raises:
        UsageError: There's a mistake in what was asked for, which no permission would change.
        NotFound: A preset doesn't exist.
        Refused: The program or its owner can't ask for this.
    """
    people, flow = bot.people, find_flow(requested.flow, bot.flows.sids)
    if flow and not bot.settings.may_ask(program.client, program.owner, flow.sid):
        flow = None
    if flow:
        _require_reason(bot, flow, requested)
    owner = await people.find(program.owner, (people.team_id,), fresh=True)
    now = await bot.database.now()
    wishes = await _wishes(bot, owner, requested, now)
    if flow is None:
        raise Refused(f"The client {program.client} isn't allowed to ask for this flow.")
    await people.require(owner, Permission.REQUEST, flow_sid=flow.sid, is_brief=True)
    _require_allowed(policy_of(bot, flow), wishes, now)
    return await ask(bot, owner, requested, program.client, program.text_sha256)


async def ask(
    bot: Parts,
    person: Person,
    requested: ChangeRequest,
    client: str = "",
    text_sha256: str = "",
) -> Asked:
    """Make a request from a command or a form. Skip the approval if `requested.now` is set."""
    permission = Permission.OVERRIDE if requested.now else Permission.REQUEST
    flow = bot.flows.named(requested.flow)
    await require_asking(bot, person, permission, flow)
    _require_reason(bot, flow, requested)
    read = await read_list(bot, flow)
    wishes = await _wishes(bot, person, requested, read.at)
    words = Requested(
        requested.reason,
        requested.presets,
        without_approval=requested.now,
        client=client,
        text_sha256=text_sha256,
    )
    return await _open(bot, person, flow, read, wishes, words)


def _require_reason(bot: Parts, flow: Flow, requested: ChangeRequest) -> None:
    if not requested.reason and policy_of(bot, flow).reason:
        raise misuse(requested.form, REASON_NEEDED)


async def _wishes(
    bot: Parts, person: Person, requested: ChangeRequest, now: datetime
) -> list[RequestPerson]:
    """Return what is requested for each person, or raise an error if that can't be requested."""
    typed = await identities_of(bot, requested)
    if problem := identities_problem(typed):
        raise misuse(requested.kind, problem)
    ends_at = end_of(person.time_zone, requested, now)
    wishes = list[RequestPerson]()
    for identity in typed:
        if requested.kind == "add":
            wishes.append(RequestPerson.added(identity, ends_at, requested.duration_seconds))
        else:
            wishes.append(RequestPerson.removed(identity))
    return wishes


async def undo(bot: Parts, person: Person, shown: ShownRequest) -> Asked:
    """Make a request that reverses the part of an applied request that's still in effect."""
    undone = await look(bot, person, Act.UNDO, shown.request_id)
    await require_current(bot, undone, shown)
    if not undone.can_be_undone:
        raise Conflict("This change isn't in effect, so there's nothing to undo.")
    read = await read_list(bot, undone.flow)
    wishes = inverse(undone.people, read.current, read.at)
    words = Requested(f"Undoes {undone.requester.name}'s request")
    flow = bot.flows.now(undone.flow)
    return await _open(bot, person, flow, read, wishes, words, undo_of=undone.id)


def policy_problems(bot: Parts, requested: ChangeRequest, now: datetime) -> dict[str, str]:
    """Return what the policy doesn't allow of a form's change, keyed by input name."""
    policy = policy_of(bot, bot.flows.named(requested.flow))
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

    If the person has an open request for exactly the same, return that one instead. A program gets
    the request that it has made with the same text.
    """
    policy = policy_of(bot, flow)
    people, dropped = read.current.planned(wishes, read.at)
    spellings = [*(wish.identity for wish in wishes), *(one.spelling for one in people)]
    async with bot.database.transaction() as tx:
        # Otherwise, requests made at the same moment could exceed the limits of a person.
        await lock_flow(tx, flow.key, f"asking:{person.slack_user_id}")
        latest = await see_list(tx, flow.key, read.identities, read.known_id)
        work = Work(bot, tx, await tx.now())
        related, own_pending = await store.open_near(tx, flow.key, spellings, person.slack_user_id)
        program = Program(words.client, person.slack_user_id, words.text_sha256)
        if program.client and (repeated := await asked_before(tx, program, work.at)):
            return Asked(flow, request=repeated, is_repeated=True)
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
                if is_own and earlier.asked == request.asked:
                    related.remove(earlier)
                    return Asked(flow, dropped, earlier, related, is_repeated=True)
        _require_allowed(policy, people, work.at, "" if undo_of is None else ASK_INSTEAD)
        if undo_of is not None:
            await _require_not_undone(work, undo_of)
        request = await _decided(work, person, request, policy, own_pending)
        await work.write(related)
    return Asked(flow, dropped, request, related)


def _require_allowed(
    policy: FlowRules, people: Iterable[RequestPerson], at: datetime, advice: str = ""
) -> None:
    for seconds in _lengths(people, at):
        if problem := duration_problem(policy, seconds):
            raise Conflict(f"{problem}{advice}")


def _lengths(people: Iterable[RequestPerson], at: datetime) -> list[float | None]:
    """Return how many seconds each addition's access lasts from now, or None if it has no end."""
    lengths = list[float | None]()
    for person in people:
        if person.wants is Wants.ADD:
            end = person.end_at(at)
            lengths.append((end - at).total_seconds() if end else None)
    return lengths


async def _require_not_undone(work: Work, request_id: str) -> None:
    """Check that nobody else has asked for the same undo. The caller has locked the flow."""
    undone = await store.load_request(work.tx, request_id)
    if undone is None or undone.undo or not undone.can_be_undone:
        raise Conflict(UNDO_ASKED)
    if undone.state is State.FAILED and await work.is_in_doubt(undone):
        raise Conflict(STILL_CHECKING)


async def _decided(
    work: Work, person: Person, request: Request, policy: FlowRules, own_pending: int
) -> Request:
    """Add a new request to the work, in the state that follows from how it was made.

    Raises:
        Conflict: The request needs approval, and too many of the person's requests do.
    """
    people = request.people
    words = request.requested
    change = change_of(people)
    work.note(
        person.slack_user_id,
        "request.created_without_approval" if words.without_approval else "request.created",
        request,
        additions=change.additions,
        removals=change.removals,
        end_changes=[one.identity for one in people if one.effect in (Effect.KEEP, Effect.LIMIT)],
        duration_seconds=people[0].asked_seconds,
        until=sorted({one.asked_end.isoformat() for one in people if one.asked_end}),
        reason=words.reason,
        undo_of=request.undo_of,
        **({"client": words.client} if words.client else {}),
    )
    if words.without_approval:
        request = request.moved(State.APPLYING, request.requester, work.at)
    elif rule := await _rule_for(work, person, request, policy):
        who = Who(rule_id(policy, request.flow.key), RULE_NAME)
        approved = request.moved(State.APPLYING, who, work.at)
        request = replace(approved, round=replace(approved.round, rule=rule))
        work.note(BOT, "request.approved_by_rule", request, **asdict(rule))
    elif own_pending >= MOST_PENDING:
        raise TooManyOpen(
            f"You already have {MOST_PENDING} requests waiting for a decision. Wait for a"
            " decision, or cancel one of your requests: /testusers requests"
        )
    work.put(request)
    return request


async def _rule_for(
    work: Work, person: Person, request: Request, policy: FlowRules
) -> ApprovedByRule | None:
    """Return the rule that approves a new request, or None if no rule does."""
    if policy.auto is None or not may_be_automatic(work.bot, request):
        return None
    counted_as, since = rule_id(policy, request.flow.key), work.at - timedelta(hours=24)
    used = await store.count_by_rule(work.tx, person.slack_user_id, counted_as, since)
    effects = {one.effect for one in request.people}
    if not is_automatic(
        policy,
        used,
        {person.slack_user_id, *person.groups},
        _lengths(request.people, work.at),
        takes_away=not TAKES_AWAY.isdisjoint(effects),
    ):
        return None
    auto = policy.auto
    return ApprovedByRule(policy.sources["auto"], auto.longest_seconds, used + 1, auto.a_day)


async def extension(bot: Parts, filled: Prefilled) -> Prefilled:
    """Return the form's values to extend people's access, for those who still have it.

    The new end is the present end plus the length of the access so far, or the latest end that the
    flow's policy allows.

    Raises:
        Conflict: Nobody has this access anymore.
    """
    flow = bot.flows.named(filled.flow)
    async with bot.database.read_only(sees_snapshot=False) as tx:
        access = await store.access_for(tx, flow.key, filled.identities)
        now = await tx.now()
    people, until = dict[str, str](), None
    # The service may spell people differently from the button by now.
    for held in access.values():
        if held.ends_at is not None:
            people.setdefault(plain(held.spelling), held.spelling)
            later = held.ends_at + (held.ends_at - held.since)
            until = max(later, until or later)
    if not people:
        raise Conflict("Nobody has this access anymore, so there's nothing to extend.")
    longest = policy_of(bot, flow).longest_seconds
    if until and longest:
        until = min(until, now + timedelta(seconds=longest))
    return replace(filled, identities=tuple(people.values()), until=until)
