"""Lets tests run the real store and workflows with a fake flow service and fake people."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from secrets import token_hex
from types import SimpleNamespace
from typing import Any

from bot.approvals.rules import Act, State
from bot.errors import SlackUnreachable
from bot.flows.client import Flows
from bot.flows.rules import Change
from bot.permissions import Person, Policy, Role
from bot.services.errors import ServiceError, ServiceRefused, ServiceTimeout, ServiceUnreachable
from bot.slack.people import People
from bot.store import audit, jobs, outbox
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Again
from bot.testusers import store
from bot.testusers.applying import run_changes
from bot.testusers.asking import ask, undo
from bot.testusers.deciding import Click, decide
from bot.testusers.jobs import run_timers
from bot.testusers.parse.command import ChangeRequest, ShownRequest, parse_testusers
from bot.testusers.rules.people import Did, Over, Wants
from bot.testusers.rules.requests import Request
from bot.testusers.work import APPLY, TIMER

TEAM = "T0GATEHOUSE"
WELCOME = "FW00000000000000000000000000000001"
SURVEY = "FW00000000000000000000000000000002"
OTTO, ADA, ABEL, ADAM, VERA, NORA = "U0OTTO", "U0ADA", "U0ABEL", "U0ADAM", "U0VERA", "U0NORA"
NAMES = {
    OTTO: "Otto Operator",
    ADA: "Ada Approver",
    ABEL: "Abel Approver",
    ADAM: "Adam Admin",
    VERA: "Vera Viewer",
    NORA: "Nora Norole",
}


@dataclass(frozen=True)
class FakeUser:
    """A person in Slack."""

    name: str
    team_id: str = TEAM
    is_full_member: bool = True
    is_deleted: bool = False
    is_stranger: bool = False
    time_zone: str = "Europe/Berlin"


@dataclass
class FakeSlackPeople:
    """A fake Slack user directory, which can't be asked about the people in `silent_about`."""

    groups: dict[str, frozenset[str]] = field(default_factory=dict)
    silent_about: set[str] = field(default_factory=set)

    async def user(self, slack_user_id: str) -> FakeUser:
        if slack_user_id in self.silent_about:
            raise SlackUnreachable
        return FakeUser(NAMES.get(slack_user_id, slack_user_id))

    async def members(self, group_id: str) -> frozenset[str]:
        return self.groups[group_id]

    async def group_handles(self) -> dict[str, str]:
        return {}

    async def permalink(self, channel_id: str, message_ts: str) -> str:
        return f"https://slack.example/{channel_id}/p{message_ts}"


@dataclass
class FakeFlowService:
    """A fake flow service that stores a list of test users for each flow.

    The service knows only the flows in `lists`. Each error in `read_faults`, `post_faults` or
    `lost_answers` makes one call fail. `on_call` runs just before a call takes effect, so that a
    test can edit the list or approve a request at that moment. `late` is how many of the next POSTs
    time out and take effect only when the test calls `land`.
    """

    lists: dict[str, list[str]] = field(default_factory=lambda: {WELCOME: [], SURVEY: []})
    reads: int = 0
    posts: list[tuple[str, ...]] = field(default_factory=list)
    read_faults: list[ServiceError] = field(default_factory=list)
    post_faults: list[ServiceError] = field(default_factory=list)
    lost_answers: list[ServiceError] = field(default_factory=list)
    refuses: Callable[[tuple[str, ...]], ServiceError | None] = lambda identities: None
    answers: Callable[[list[str]], list[str]] = list
    on_call: Callable[[str], Awaitable[None]] | None = None
    late: int = 0
    in_the_air: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)

    def land(self) -> None:
        """Let the late POSTs take effect."""
        for flow_sid, identities in self.in_the_air:
            self.posts.append(identities)
            self.lists[flow_sid] = list(identities)
        self.in_the_air.clear()

    def store_without(self, lost: str) -> None:
        """Make the service leave an identity out of every list that it stores."""

        def answer(identities: list[str]) -> list[str]:
            identities[:] = [identity for identity in identities if identity != lost]
            return list(identities)

        self.answers = answer

    def _known(self, flow_sid: str) -> None:
        if flow_sid not in self.lists:
            raise ServiceRefused("flow", "No such flow.", status=404, message="No such flow.")

    async def read(self, flow_sid: str) -> list[str]:
        self.reads += 1
        if self.on_call:
            await self.on_call("read")
        if self.read_faults:
            raise self.read_faults.pop(0)
        self._known(flow_sid)
        return list(self.lists[flow_sid])

    async def replace(self, flow_sid: str, identities, may_send) -> list[str]:
        if self.on_call:
            await self.on_call("replace")
        if not may_send():
            raise ServiceUnreachable("flow", "The call was held up.", sent=False)
        if self.post_faults:
            raise self.post_faults.pop(0)
        self._known(flow_sid)
        if refusal := self.refuses(tuple(identities)):
            raise refusal
        if self.late:
            self.late -= 1
            self.in_the_air.append((flow_sid, tuple(identities)))
            raise ServiceTimeout("flow", "The flow service gave no answer in time.")
        self.posts.append(tuple(identities))
        self.lists[flow_sid] = list(identities)
        if self.lost_answers:
            raise self.lost_answers.pop(0)
        return self.answers(self.lists[flow_sid])


class World:
    """A bot process that runs jobs only when a test tells it to.

    This class provides the parts of `Gatehouse` that the workflows use.
    """

    def __init__(
        self,
        database: Database,
        clock,
        service: FakeFlowService | None = None,
        settings: Any = None,
        *,
        owner: str = "one",
        policy: Policy | None = None,
    ) -> None:
        self.database = database
        self.clock = clock
        self.owner = owner
        self.service = FakeFlowService() if service is None else service
        self.slack = FakeSlackPeople({"S0APPROVERS": frozenset({ABEL})})
        people = People(self.slack, policy or default_policy(), clock, database)
        people.meet(TEAM, "U0BOT")
        self.settings = settings or default_settings()
        self.flows = Flows(self.settings.flow_aliases, self.service, ())
        self.metrics: Any = SimpleNamespace(count_command=lambda *_: None)
        self.replies: Any = None
        self.people = people
        self.runners = {
            APPLY: partial(run_changes, self),
            TIMER: partial(run_timers, self),
        }
        self.messages: list[outbox.OutboxMessage] = []
        self.is_channel_well = True

    def new_id(self) -> str:
        return token_hex(8)

    async def refresh_home(self, tx: Transaction, slack_user_id: str) -> None:
        """Draw nothing: nobody looks at a Home tab here."""

    async def person(self, slack_user_id: str) -> Person:
        return await self.people.find(slack_user_id)

    async def ask(self, text: str, by: str = OTTO) -> Request:
        """Make a request from the text of a valid `/testusers` command."""
        command = parse_testusers(text)
        assert isinstance(command, ChangeRequest)
        asked = await ask(self, await self.person(by), command)
        assert asked.request is not None
        return asked.request

    async def decide(self, act, request: Request, by: str = ADA, reason: str = ""):
        """Click a button on the request's current card."""
        version = (await self.stored(request)).requested.card_version
        shown = ShownRequest(request.id, version)
        return await decide(self, Click(await self.person(by), act, shown, reason))

    async def undo(self, request: Request, by: str = OTTO) -> Request | None:
        """Click `Undo` on the request's current card."""
        version = (await self.stored(request)).requested.card_version
        asked = await undo(self, await self.person(by), ShownRequest(request.id, version))
        return asked.request

    async def approved(self, text: str) -> Request:
        """Request and approve a change."""
        request = await self.ask(text)
        await self.decide(Act.APPROVE, request)
        return request

    async def applied(self, text: str) -> Request:
        """Request and approve a change, and run jobs until the change is applied."""
        request = await self.approved(text)
        await self.work()
        assert (await self.stored(request)).state is State.APPLIED
        return request

    async def look(self, seconds: int = 90) -> None:
        """Let time pass, so that the bot can find out whether a POST took effect."""
        for _ in range(seconds // 5):
            await self.pass_time(5)

    async def stored(self, request: Request) -> Request:
        async with self.database.read_only() as tx:
            found = await store.load_request(tx, request.id)
        assert found is not None
        return found

    async def work(self) -> None:
        """Run jobs until no more jobs are due, and collect the messages in `messages`."""
        while claimed := await self._claim():
            for job in claimed:
                await self.run(job)

    async def _claim(self) -> list[jobs.Job]:
        async with self.database.transaction() as tx:
            return await jobs.claim(tx, self.owner, 10)

    async def run(self, job: jobs.Job) -> None:
        runner = self._deliver if job.kind == outbox.SEND else self.runners[job.kind]
        lease = Lease(self.database, self.owner, job, self.clock.since_boot)
        outcome = await runner(job, lease)
        again = Again(outcome) if isinstance(outcome, datetime) else outcome
        async with self.database.transaction() as tx:
            await jobs.finish(tx, lease.owner, job, again)

    async def _deliver(self, job: jobs.Job, lease: Lease) -> datetime | None:
        async with self.database.transaction() as tx:
            now = await tx.now()
            if job.subject.startswith(store.CARD_PREFIX):
                if not self.is_channel_well:
                    return now + timedelta(seconds=20)
                await outbox.record_card(tx, outbox.SentCard(job.subject, "C", "1", 1, now), None)
            messages = (await outbox.waiting(tx, job.subject)).messages
            await outbox.mark_sent(tx, [message.id for message in messages], now)
        self.messages += messages
        return None

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, and then run all jobs that are due."""
        self.clock.advance(seconds)
        await self.work()

    async def audited(self) -> list[tuple[str, str]]:
        """Return the actor and action of each audit entry, oldest first.

        Fail if someone has tampered with the audit log.
        """
        async with self.database.read_only() as tx:
            assert (await audit.verify(tx)).is_intact
            entries = await audit.latest(tx, 1000)
        return [(entry.actor, entry.action) for entry in reversed(entries)]

    def reported(self) -> list[str]:
        """Return the events that requesters were told about, oldest first."""
        return [
            message.payload["event"]
            for message in self.messages
            if message.kind == "testusers.outcome"
        ]


def wanted(request: Request) -> Change:
    """Return the people whom a request adds and removes."""
    return _change(request.people)


def made(request: Request) -> Change:
    """Return what a request has changed so far."""
    return _change(request.those(Did.MADE))


def _change(people) -> Change:
    names = {wants: [one.identity for one in people if one.wants is wants] for wants in Wants}
    return Change(tuple(names[Wants.ADD]), tuple(names[Wants.REMOVE]))


def replaced(request: Request) -> list[str]:
    """Return the people for whom a later request replaced what this one changed."""
    return [one.spelling for one in request.people if one.over is Over.REPLACED]


def default_policy(**changes) -> Policy:
    roles = {
        Role.VIEWER: (VERA,),
        Role.OPERATOR: (OTTO,),
        Role.APPROVER: (ADA, "S0APPROVERS"),
        Role.ADMIN: (ADAM,),
    }
    return replace(Policy(roles), **changes)


def default_settings(**changes) -> Any:
    defaults = {
        "flow_aliases": {"welcome": WELCOME, "survey": SURVEY},
        "request_hours": 24,
        "remind_hours": 4,
        "approvals_channel": "C0APPROVALS",
        "alerts_channel": "C0ALERTS",
    }
    return SimpleNamespace(**(defaults | changes))
