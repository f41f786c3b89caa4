"""Plants a fault in the bot to check that the simulated days detect it.

The option `--plant NAME` selects the fault.
"""

import uuid
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import sqlalchemy

import bot.flows.client
import bot.permissions
import bot.quotas.guard
import bot.slack.sender
import bot.testusers.rules.applying
from bot.approvals.rules import FlowPolicy
from bot.errors import SlackError
from bot.home.publishing import Home
from bot.permissions import Decision, Policy, Reason
from bot.quotas.guard import _Call
from bot.quotas.rules.quota import Blocks
from bot.quotas.store import incidents, ledger
from bot.services.credentials import OAuthCredential
from bot.slack import received_events
from bot.slack.sender import Sender
from bot.store import jobs
from bot.store.job_loop import Lease
from bot.tasks import Flights
from bot.testusers import applying, deciding, store
from bot.testusers.rules.applying import Waiting
from bot.testusers.rules.requests import review
from tests.simulation.days.processes import Server

PLANTS: dict[str, Callable[[], None]] = {}


def _plant(function: Callable[[], None]) -> Callable[[], None]:
    PLANTS[function.__name__.replace("_", "-")] = function
    return function


async def _nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


@_plant
def no_compare_and_set() -> None:
    """A decision overwrites what happened to its request since the person was looked up."""
    looked_at: dict[str, Any] = {}
    real_load, real_lock = store.load_request, store.and_related

    async def load_request(tx: Any, request_id: str) -> Any:
        looked_at[request_id] = await real_load(tx, request_id)
        return looked_at[request_id]

    async def and_related(tx: Any, request_id: str, *, is_locked: bool = False) -> Any:
        request, *more = await real_lock(tx, request_id, is_locked=is_locked)
        return looked_at.get(request_id, request) if is_locked else request, *more

    # Timers and messages still read what is stored.
    planted = {"load_request": load_request, "and_related": and_related}
    deciding.store = SimpleNamespace(**{**vars(store), **planted})  # type: ignore[assignment]


@_plant
def lease_not_checked() -> None:
    """A process keeps working on a job after losing the lease."""
    Lease.confirm = _nothing  # type: ignore[method-assign]
    Lease.hold = _nothing  # type: ignore[method-assign]
    Lease.require = _nothing  # type: ignore[method-assign]
    Lease.check = lambda _: None  # type: ignore[method-assign]


@_plant
def message_named_anew() -> None:
    """When the bot retries a post to Slack, it uses a new `client_msg_id`."""
    bot.slack.sender.uuid = SimpleNamespace(uuid5=lambda *_: uuid.uuid4())  # type: ignore[assignment]


@_plant
def message_lost_with_slack() -> None:
    """The bot marks messages as sent even if Slack is unavailable."""
    real = Sender._post_note

    async def post_note(self: Any, step: Any, message: Any) -> None:
        try:
            await real(self, step, message)
        except SlackError:
            async with self.database.transaction() as tx:
                await self._mark(tx, step)

    Sender._post_note = post_note  # type: ignore[method-assign]


@_plant
def delivery_not_recognised() -> None:
    """If Slack delivers a command twice, the bot creates two requests."""
    received_events.current_digest = lambda: uuid.uuid4().hex  # type: ignore[attr-defined]


@_plant
def job_put_meanwhile_forgotten() -> None:
    """If a job is added again while it is running, the bot forgets the second run."""
    real = jobs.finish

    async def finish(tx: Any, owner: str, job: Any, *arguments: Any) -> None:
        await real(tx, owner, job, *arguments)
        if arguments[0] is None:
            await jobs.drop(tx, job.key)

    jobs.finish = finish


@_plant
def process_clock_trusted() -> None:
    """A process uses its own clock instead of the database server's clock."""
    real = Server.__init__

    def init(self: Any, outside: Any, clock: Any, longest_seconds: int) -> None:
        real(self, outside, clock, longest_seconds)
        self._clock = clock

    Server.__init__ = init  # type: ignore[method-assign]


@_plant
def own_request_approved() -> None:
    """People can approve their own requests."""
    real = Policy.judge

    def judge(*arguments: Any) -> Decision:
        found = real(*arguments)
        is_own = found.reason is Reason.OWN_REQUEST
        return replace(found, reason=Reason.GRANTED) if is_own else found

    Policy.judge = judge  # type: ignore[method-assign]


@_plant
def quorum_ignored() -> None:
    """A single approval is always enough, whatever the policy says."""
    real = FlowPolicy.__init__

    def init(self: Any, *arguments: Any, **named: Any) -> None:
        real(self, *arguments, **{**named, "approvals_needed": 1})

    FlowPolicy.__init__ = init  # type: ignore[method-assign]


@_plant
def grants_never_end() -> None:
    """Grants never end."""
    Waiting.due = property(lambda _: [])  # type: ignore[assignment,method-assign]


@_plant
def settings_not_read_again() -> None:
    """The bot applies a request even if the policy no longer allows it."""

    def review_now(_: Any, request: Any, *rest: Any) -> Any:
        return review(request, request.flow, FlowPolicy(), *rest)

    for module in (applying, deciding):
        module.review_now = review_now  # type: ignore[attr-defined]


@_plant
def posts_never_in_doubt() -> None:
    """The bot forgets POST requests that got no response."""

    real = store.recent_lists

    async def recent_lists(*arguments: Any) -> Any:
        lists, _ = await real(*arguments)
        return lists, None

    store.recent_lists = recent_lists


@_plant
def old_list_believed() -> None:
    """The bot treats an outdated list as the current list."""
    for module in (bot.flows.client, applying):
        module.is_before = lambda *_: False  # type: ignore[attr-defined]


@_plant
def new_spelling_ignored() -> None:
    """The bot mistakes a different spelling of an identity for a different person."""
    for module in (bot.testusers.rules.applying, applying):
        module.stored_spellings = lambda *_: {}  # type: ignore[attr-defined]


@_plant
def permit_given_back_early() -> None:
    """If a call gets no response, the bot releases the call's permit too early."""
    _Call.is_whole = lambda *_: True  # type: ignore[method-assign]


@_plant
def pause_ended_by_anybody() -> None:
    """After a pause, the bot allows any call, not just a probe."""

    def in_the_way_of(self: Any, _call_class: Any, now: float) -> Any:
        longest = self.longest
        return None if longest is None or now >= longest.until else longest

    Blocks.in_the_way_of = in_the_way_of  # type: ignore[method-assign]


@_plant
def incident_opened_twice() -> None:
    """Each refusal opens a new incident."""
    real = incidents.count_one

    async def count_one(tx: Any, organization: int, code: int, *arguments: Any) -> Any:
        table = incidents.incidents
        elsewhere = sqlalchemy.update(table).where(table.c.organization == organization)
        await tx.connection.execute(elsewhere.values(organization=-organization))
        counted = await real(tx, organization, code, *arguments)
        back = sqlalchemy.update(table).where(table.c.organization == -organization)
        await tx.connection.execute(back.values(organization=organization))
        return counted

    incidents.count_one = count_one


@_plant
def share_ignored() -> None:
    """A gateway client can use more than its share of the calls."""
    ledger.share_of = lambda limits, _: limits  # type: ignore[attr-defined]


@_plant
def tab_published_once() -> None:
    """A person's Home tab is published only the first time."""
    real, published = Home.publish, set()

    async def publish(self: Any, job: Any, lease: Any) -> None:
        if job.subject not in published:
            await real(self, job, lease)
            published.add(job.subject)

    Home.publish = publish  # type: ignore[method-assign]


@_plant
def renewals_overlap() -> None:
    """Two tasks renew the same token at the same time."""
    real = OAuthCredential._renew_once

    async def renew_once(self: Any) -> Any:
        self._renewals = Flights()
        return await real(self)

    OAuthCredential._renew_once = renew_once  # type: ignore[method-assign]
