"""Follows operations, and knows what has to be true after each of them."""

import itertools
import json
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from bot.errors import Conflict, GatehouseError
from bot.model.audit import RecordedEntry
from bot.model.testusers.approval import Act, State
from bot.model.testusers.requests import Grant, Request
from bot.parsing.testusers import parse_testusers
from bot.service_errors import ServiceTimeout
from bot.store import flows, grants, jobs, outbox
from bot.store.engine import Database
from bot.store.outbox import OutboxMessage
from bot.workflows.testusers.rendering import OPEN_STATES
from bot.workflows.testusers.transitions import CARD, card_key
from tests.support.clock import FakeClock
from tests.support.testusers import OTTO, WELCOME
from tests.workflows.testusers.rough.cards import words, wrong_card
from tests.workflows.testusers.rough.outside import FAULTS, Crash, RoughService, RoughSlack
from tests.workflows.testusers.rough.world import RoughWorld, Settings

PEOPLE = ("+1", "+2", "+3", "+4")
# Whom only others add and remove.
STRANGERS = ("+8", "+9")
# As late as a POST may be carried out and still be put right.
LATEST_SECONDS = 45
# A flow that is missing for less is not deleted.
MISSING_SECONDS = 300


class Rough:
    """One day of one process at a time.

    Who is on the list, and who has a grant, is told from the audit, and from what others did.
    """

    def __init__(self, database: Database, clock: FakeClock) -> None:
        self.database, self.clock = database, clock
        self.service, self.slack = RoughService(now=self.seconds), RoughSlack()
        self.asked: list[Request] = []
        self.lives, self.position, self.ids = 0, 0, itertools.count()
        self.noted = Counter[str]()
        self.expected: set[str] = set()
        self.granted: set[str] = set()
        self.edited: set[str] = set()
        self.missing_since: float | None = None
        self.settings = Settings()
        self.begin()

    def begin(self) -> None:
        """Start a process, with the settings of now."""
        self.lives += 1
        owner, outside = f"life {self.lives}", (self.service, self.slack)
        parts = self.database, self.clock, *outside, self.settings
        self.world = RoughWorld(*parts, owner=owner, new_id=lambda: f"{next(self.ids):04}")
        self.service.before_update = self.world.look_at_update

    def seconds(self) -> float:
        """The time."""
        return self.clock.now().timestamp()

    async def stored(self) -> list[Request]:
        """All requests, as they are stored."""
        return [await self.world.stored(one) for one in self.asked]

    async def grants(self) -> dict[str, Grant]:
        """The grants of the flow, by identity."""
        async with self.database.read_only() as tx:
            return await grants.of_flow(tx, WELCOME)

    async def is_in_doubt(self) -> bool:
        """Whether a POST is, or is in the air."""
        async with self.database.read_only() as tx:
            return bool(self.service.in_the_air or await flows.posts(tx, WELCOME))

    # What happens.

    async def follow(self, operation: tuple) -> None:
        """Do something, and let the bot do what follows from it; everything has to agree then."""
        name, *rest = operation
        await self.advance(1)
        with suppress(*self.may_raise(name)):
            await getattr(self, name)(*rest)
        await self.work()
        await self.agree()

    def may_raise(self, name: str) -> tuple[type[Exception], ...]:
        """What people may be told in an operation; a scene knows what it does."""
        return (GatehouseError,)

    async def work(self) -> None:
        """Run what is due; a process that dies is followed by another."""
        try:
            await self.world.work()
        except Crash:
            await self.advance(jobs.LEASE_SECONDS + 1)
            await self.restart()
        await self.take_note()

    async def advance(self, seconds: float) -> None:
        """Let time pass; no POST is carried out later than it may be."""
        lands_in = min(self.service.sent_at, default=self.seconds()) + LATEST_SECONDS
        first = lands_in - self.seconds()
        if self.service.sent_at and first < seconds:
            self.clock.advance(max(0.0, first))
            await self.land()
            seconds -= max(0.0, first)
        self.clock.advance(seconds)

    async def pass_by(self, seconds: int, step: int = 5) -> None:
        """Let time pass, and the bot work meanwhile."""
        while seconds > 0:
            await self.advance(min(step, seconds))
            await self.work()
            seconds -= step

    async def restart(self, **changes) -> None:
        """Go on with other settings."""
        self.settings = replace(self.settings, **changes)
        self.begin()
        await self.world.start()
        await self.work()

    async def restart_with(self, needed: int, approvers: str) -> None:
        """Go on with other approvers."""
        await self.restart(needed=needed, approvers=approvers)

    async def ask(self, kind: str, who: Collection[str], seconds: int) -> None:
        """Ask for a change."""
        more = f" for {seconds}s" if seconds and kind == "add" else ""
        command = parse_testusers(f"{kind} {self.settings.flow} {' '.join(who)}{more}")
        asked = await self.world.asking.ask(await self.world.person(OTTO), command)
        self.asked += [asked.request] if asked.request else []

    async def approve(self, request: Request, count: int | None = None) -> None:
        """Have as many approve as it takes, or so many."""
        for by in self.settings.able[: self.settings.needed if count is None else count]:
            await self.decide(Act.APPROVE, request, by)

    async def decide(self, act: Act, request: Request, by: str) -> None:
        """Press a button; enough people have approved of whatever waits no more."""
        before = await self.world.stored(request)
        await self.world.decide(act, request, by, "no")
        after = await self.world.stored(request)
        if before.state is State.PENDING and after.state in {State.APPLYING, State.SCHEDULED}:
            approvers = {one.who.slack_user_id for one in after.progress.approvals}
            assert len(approvers) >= self.settings.needed
            assert approvers <= {*self.settings.able}

    async def change(self, kind: str, who: Collection[str], seconds: int) -> None:
        """Ask for a change and have it approved."""
        await self.ask(kind, who, seconds)
        if self.asked and (await self.world.stored(self.asked[-1])).state is State.PENDING:
            await self.approve(self.asked[-1])

    async def approve_all(self, count: int) -> None:
        """Have so many people approve all that waits."""
        for one in await self.stored():
            if one.state is State.PENDING:
                await self.advance(0.1)
                with suppress(GatehouseError):
                    await self.approve(one, count)

    async def click(self, act: Act, number: int) -> None:
        """Press a button of one of the newest requests."""
        if not self.asked:
            return
        request = self.asked[-1 - number % len(self.asked)]
        if act is not Act.UNDO:
            by = OTTO if act is Act.CANCEL else self.settings.able[0]
            await self.decide(act, request, by)
            return
        asked = await self.world.asking.undo(await self.world.person(OTTO), request.id)
        if asked.request is not None and asked.request.id not in {one.id for one in self.asked}:
            self.asked.append(asked.request)

    async def late(self) -> None:
        """The next POST is carried out late."""
        self.service.late += 1

    async def land(self) -> None:
        """What was sent is carried out; what others did just before may be lost by it."""
        self.service.land()
        self.service.sent_at.clear()
        for who in self.service.unseen.intersection(STRANGERS):
            self._put(who, is_there=who in self.service.listed)

    async def read_fails(self, times: int) -> None:
        """The list cannot be read so many times."""
        self.service.read_faults += [FAULTS["502"]() for _ in range(times)]

    async def post_fails(self, kind: str, times: int) -> None:
        """The list cannot be written so many times."""
        self.service.post_faults += [FAULTS[kind]() for _ in range(times)]

    async def lose_answer(self) -> None:
        """The next POST is carried out, and not answered."""
        self.service.lost_answers.append(ServiceTimeout("flow", "No answer."))

    async def forget(self, who: str) -> None:
        """The service drops somebody from whatever it stores."""
        self.service.forgets = who

    async def refuse_removal(self, who: str, refusal: str) -> None:
        """The service does not let somebody go."""
        self.service.keeps, self.service.refusal = who, refusal

    async def crash(self, when: str) -> None:
        """The process dies before or after the next POST."""
        self.service.crash = when

    async def edit(self, who: str) -> None:
        """Somebody else adds or removes a person; while a POST is in doubt, a stranger once."""
        is_in_doubt = await self.is_in_doubt()
        self.edited = self.edited if is_in_doubt else set()
        is_bots_or_again = who not in STRANGERS or who in self.edited
        if self.service.is_missing or (is_in_doubt and is_bots_or_again):
            return
        self.edited.add(who)
        is_there = who not in self.service.listed
        (self.service.listed.append if is_there else self.service.listed.remove)(who)
        self.service.unseen.add(who)
        self._put(who, is_there=is_there)

    async def hide(self, methods: Collection[str]) -> None:
        """The service answers with 404, though the flow is there."""
        if not self.service.is_missing:
            self.service.hidden = frozenset(methods)
            self.missing_since = self.seconds() if "GET" in methods else None

    async def delete(self) -> None:
        """Somebody deletes the flow."""
        if not self.service.is_missing and not await self.is_in_doubt():
            self.service.delete()
            self.expected.clear()
            self.missing_since = self.seconds()

    async def bring_back(self, is_empty: bool) -> None:
        """Somebody makes the flow again, or it was only out of sight."""
        was_deleted = self.service.deleted is not None
        self.service.bring_back(is_empty=is_empty)
        self.missing_since = None
        if was_deleted:
            self.expected = set(self.service.listed)

    async def calm(self) -> None:
        """The service does what it is asked to from now on, and what was sent has arrived."""
        service = self.service
        service.read_faults.clear()
        service.post_faults.clear()
        service.lost_answers.clear()
        service.late, service.crash, service.forgets, service.keeps = 0, "", "", ""
        service.fails_with = ""
        await self.bring_back(is_empty=False)
        await self.land()

    # What has to be true.

    def _put(self, who: str, *, is_there: bool) -> None:
        (self.expected.add if is_there else self.expected.discard)(who)

    async def take_note(self) -> None:
        """Read in the audit what was applied and what ended."""
        async with self.database.read_only() as tx:
            entries = await self.world.audit.after(tx, self.position)
        for entry in entries:
            self.position = entry.position
            self.noted[entry.action] += 1
            await self._note(entry, json.loads(entry.detail))

    async def _note(self, entry: RecordedEntry, detail: dict) -> None:
        if entry.action in {"request.applied", "request.applied_in_part"}:
            come = {*detail["additions"], *detail.get("already_there", ())}
            gone = {*detail["removals"], *detail.get("already_gone", ())}
            self.expected = (self.expected | come) - gone
            self.granted = (self.granted | come) - gone
        elif entry.action == "grant.ended":
            await self._note_end(detail["identity"])

    async def _note_end(self, who: str) -> None:
        """A grant ends when nobody is there any more, or the flow is missing for long."""
        self.granted.discard(who)
        if who not in self.service.listed:
            self.expected.discard(who)
        elif self.missing_since is not None:
            missing = self.seconds() - self.missing_since
            assert missing >= MISSING_SECONDS, f"{who} is let go of after {missing} s"
        else:
            self.expected.discard(who)
            assert await self.is_in_doubt(), f"the grant of {who} is over, and they are there"

    async def agree(self) -> None:
        """Cards say what is stored, and list and grants are what the audit says."""
        stored, granted = await self.stored(), await self.grants()
        assert set(granted) == self.granted
        await self._look_at_cards(stored, list(granted.values()))
        by_id = {one.id: one for one in stored}
        for who, grant in granted.items():
            assert grant.ends_at == by_id[grant.request_id].took_effect.ends_at.get(who)
        is_applying = any(one.state is State.APPLYING for one in stored)
        if is_applying or self.service.is_missing or await self.is_in_doubt():
            return
        async with self.database.read_only() as tx:
            due = {one.identity for one in await grants.due(tx, WELCOME)}
        assert set(self.service.listed) - due == self.expected - due

    async def _look_at_cards(self, stored: list[Request], granted: list[Grant]) -> None:
        async with self.database.read_only() as tx:
            posts = await flows.posts(tx, WELCOME)
            places = {one.id: await outbox.sent_card(tx, card_key(one.id)) for one in stored}
        for one in stored:
            place = places[one.id]
            assert place is not None, f"{one.id} has no card"
            shown = self.slack.messages[place.channel_id, place.message_ts]
            wrong = list(wrong_card(shown, one, granted, posts, self.clock.now()))
            assert not wrong, f"{wrong}: {one.state} {one.progress}: {words(shown)}"
            if one.state in OPEN_STATES:
                render = self.world.renderers[CARD]
                now = await render(OutboxMessage(card_key(one.id), CARD, one.id))
                assert (place.channel_id, shown) == (now.channel_id, now.message)

    async def settle(self) -> None:
        """All is well again: after a while nothing is left to do, and everything agrees."""
        await self.calm()
        # Whatever is tried more and more slowly has had its next turn by then.
        await self.pass_by(720, step=120)
        stored = await self.stored()
        assert State.APPLYING not in {one.state for one in stored}
        assert [one.progress.overdue for one in stored if one.progress.overdue] == []
        assert not await self.is_in_doubt()
        async with self.database.read_only() as tx:
            assert await grants.due(tx, WELCOME) == []
        await self.agree()

    async def nobody_waits_in_vain(self) -> None:
        """Who approved moves a request as soon as one approval is enough."""
        await self.restart(needed=1, approvers="everybody")
        for one in await self.stored():
            if one.state is State.PENDING and self.clock.now() < one.expires_at:
                try:
                    await self.approve(one)
                except Conflict as error:
                    raise AssertionError(error.sentence) from error
