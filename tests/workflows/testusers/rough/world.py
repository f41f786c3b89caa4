"""One process of the bot on a rough day, with its real outbox, and what watches it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from bot.background.outbox import Sender
from bot.errors import SlackError
from bot.model.testusers.approval import State
from bot.model.testusers.changes import apply_change, difference
from bot.permissions import Role
from bot.store import flows, grants, requests
from bot.store.engine import Database
from bot.workflows.lane import Lane
from bot.workflows.testusers.card_links import CardLinks
from bot.workflows.testusers.parts import testusers_parts
from bot.workflows.testusers.transitions import APPLY
from tests.support.clock import FakeClock
from tests.support.testusers import (
    ABEL,
    ADA,
    ADAM,
    WELCOME,
    World,
    default_policy,
    default_rules,
)
from tests.workflows.testusers.rough.outside import RoughService, RoughSlack

APPROVERS = {
    "everybody": ((ADA, ABEL, ADAM), {}),
    "not Ada": ((ABEL, ADAM), {"roles": {**default_policy().roles, Role.APPROVER: (ABEL,)}}),
    "of the flow": ((ADA, ABEL), {"flow_approvers": {WELCOME: (ADA, "S0APPROVERS")}}),
}
SLACK_AGAIN_SECONDS = 20
# Between two moments.
MOST_ROUNDS = 50


@dataclass(frozen=True)
class Settings:
    """What a start reads: who may approve by `APPROVERS`, how many have to, and the names."""

    approvers: str = "everybody"
    needed: int = 1
    channel: str = "C0APPROVALS"
    alias: str = "welcome"

    @property
    def able(self) -> tuple[str, ...]:
        """Who may approve."""
        return APPROVERS[self.approvers][0]

    @property
    def flow(self) -> str:
        """What people call the flow."""
        return self.alias or WELCOME


class RoughWorld(World):
    """A process; it is started, and holds each run of a job to what may not happen."""

    def __init__(
        self,
        database: Database,
        clock: FakeClock,
        service: RoughService,
        slack: RoughSlack,
        given: Settings,
        *,
        owner: str,
        new_id: Callable[[], str],
    ) -> None:
        policy = default_policy(**APPROVERS[given.approvers][1])
        rules = replace(
            default_rules(approvals_needed=given.needed),
            aliases={given.alias: WELCOME} if given.alias else {},
            approvals_channel=given.channel,
        )
        super().__init__(database, clock, service, rules, owner=owner, policy=policy)
        self.setup = replace(self.setup, lane=Lane(clock), new_id=new_id)
        links = CardLinks(database, slack, clock)
        parts = testusers_parts(self.setup, None, lambda *_: None, links)
        self.asking, self.deciding = parts.workflows.asking, parts.workflows.deciding
        self.runners, self.renderers = parts.runners, parts.renderers
        self.sender = Sender(database, slack, parts.renderers, parts.card_kinds)
        self._plans = parts.plans

    async def start(self) -> None:
        """See to what other settings change."""
        async with self.database.transaction() as tx:
            for plan in self._plans:
                await plan(tx)

    async def work(self) -> None:
        """Run what is due; that comes to an end."""
        for _ in range(MOST_ROUNDS):
            claimed = await self._claim()
            if not claimed:
                return
            for job in claimed:
                await self.run(job)
        raise AssertionError(f"{[job.key for job in claimed]} are due again and again")

    async def run(self, job) -> None:
        """Run a job; nothing fails that is true on the list that it has read."""
        before = await self._failed() if job.kind == APPLY else frozenset()
        self.service.seen = None
        await super().run(job)
        if job.kind == APPLY and self.service.seen is not None:
            self.service.unseen.clear()
            await self._look_at_failures(await self._failed() - before)

    async def _failed(self) -> frozenset[str]:
        async with self.database.read_only() as tx:
            return frozenset(await requests.ids_in(tx, [State.FAILED]))

    async def _look_at_failures(self, ids: frozenset[str]) -> None:
        for one in ids:
            async with self.database.read_only() as tx:
                request = await requests.load(tx, one)
            change, seen = request.change_at(self.clock.now()), self.service.seen
            is_so = {*change.additions} <= {*seen} and not {*change.removals} & {*seen}
            assert not is_so, f"{change} is true, and called failed"

    async def _deliver(self, job, lease):
        try:
            return await self.sender.run(job, lease)
        except SlackError:
            return self.clock.now() + timedelta(seconds=SLACK_AGAIN_SECONDS)

    async def look_at_update(self, standing: list[str], sent: list[str]) -> None:
        """People come and go by an approval, an end or a repair; all others keep their place.

        Nobody is taken off the list whom an approved request wants there.
        """
        now, moved = self.clock.now(), difference(standing, sent)
        async with self.database.read_only() as tx:
            approved = [one.change_at(now) for one in await requests.applying(tx, WELCOME)]
            repaired = [post.since for post in await flows.posts(tx, WELCOME)]
            over = {one.identity for one in await grants.due(tx, WELCOME)}
        come = {who for one in (*approved, *repaired) for who in one.additions}
        go = {who for one in (*approved, *repaired) for who in one.removals} | over
        assert apply_change(standing, moved) == tuple(sent)
        assert come.issuperset(moved.additions), f"{moved} without an approval"
        assert go.issuperset(moved.removals), f"{moved} without an approval or an end"
        wanted = {who for one in approved for who in one.additions}
        wanted -= {who for one in approved for who in one.removals}
        gone = {*moved.removals} & wanted
        assert not gone, f"{gone} removed while an approved request wants them"
