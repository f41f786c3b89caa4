"""Applying: requests, the job `apply:<flow>`, its lease, and POSTs in doubt.

Each request adds one person, who is named by its number. A step is one transaction, one call, or
one thing that happens to a process, to a call or to a lease. Steps that nobody else can come
between to any effect are one: to claim the job and to read the list. Processes are alike, so that a
state is the same however they are named.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

PENDING, APPLYING, APPLIED = "pending", "applying", "applied"
IDLE, READY, PLANNED, SENT, ENDING = "idle", "ready", "planned", "sent", "ending"
People = frozenset[int]
NOBODY: People = frozenset()


class Process(NamedTuple):
    """Where a process is.

    `holds` says whether the lease bears its name, `is_newest` whether the job was not put since it
    was claimed, `people` is the list as it was read or as it is to be sent, `old` are the POSTs
    that were too old to arrive when the list was read, and `again` is whether the job has to run
    again.
    """

    at: str = IDLE
    holds: bool = False
    is_newest: bool = False
    people: tuple[int, ...] = ()
    old: tuple[int, ...] = ()
    plan: int = 0
    again: bool = False


class Job(NamedTuple):
    """The job: whether somebody has it, and whether that lease has lapsed."""

    is_owned: bool = False
    is_lapsed: bool = False


class Post(NamedTuple):
    """A POST: the list that it sends, and who was let in after it was sent."""

    plan: int
    after: People
    since: People = NOBODY


class State(NamedTuple):
    """All there is: `stored` are the POSTs in doubt, `air` those under way, `landed` the others."""

    requests: tuple[str, ...]
    processes: tuple[Process, ...]
    crashes: int
    plans: int
    job: Job | None = None
    listed: People = NOBODY
    stored: frozenset[Post] = frozenset()
    air: frozenset[tuple[int, People]] = frozenset()
    landed: frozenset[int] = frozenset()

    def numbers(self, request: str) -> People:
        """The requests in that state."""
        return frozenset(n for n, one in enumerate(self.requests) if one == request)

    def holds(self, process: Process) -> bool:
        """Whether the process has the lease."""
        return bool(process.holds and self.job and not self.job.is_lapsed)

    @property
    def is_anything_left(self) -> bool:
        """Whether the job has to run again."""
        return APPLYING in self.requests or bool(self.stored)


@dataclass(frozen=True)
class Protocol:
    """The rules; each can be taken away, to see that the search finds what then goes wrong."""

    sends_with_lease_only: bool = True
    writes_with_lease_only: bool = True
    stores_plan_first: bool = True
    ends_own_generation_only: bool = True
    puts_right_what_was_undone: bool = True
    keeps_posts_in_doubt: bool = True
    dates_look_before_reading: bool = True

    def start(self, requests: int = 2, processes: int = 3, crashes: int = 2) -> State:
        """Nothing has happened yet; three POSTs are followed, the third to put right the others."""
        return State((PENDING,) * requests, (Process(),) * processes, crashes, plans=3)

    def steps(self, state: State) -> Iterator[tuple[str, State]]:
        """Everything that can happen next."""
        for number in state.numbers(PENDING):
            yield f"{number} is approved", _put(_moved(state, {number}, APPLYING))
        if state.job and state.job.is_owned and not state.job.is_lapsed:
            yield "the lease lapses", state._replace(job=state.job._replace(is_lapsed=True))
        for plan, after in state.air:
            air = state.air - {(plan, after)}
            is_awaited = any(one.at == SENT and one.plan == plan for one in state.processes)
            landed = state.landed | {plan} if is_awaited else state.landed
            yield f"POST {plan} lands", state._replace(air=air, listed=after, landed=landed)
            yield f"POST {plan} is lost", state._replace(air=air)
        for index, process in enumerate(state.processes):
            if index and process == state.processes[index - 1]:
                continue
            if process.at != IDLE and state.crashes:
                died = state._replace(crashes=state.crashes - 1)
                yield f"one that is {process.at} dies", _at(died, index, Process())
            yield from self._of_process(state, index, process)

    def wrong_in(self, state: State) -> str:
        """What must never be, in any state."""
        if state.job is None and state.is_anything_left:
            return "something is left to do, and there is no job"
        is_quiet = state.job is None and not state.air
        if is_quiet and all(one.at == IDLE for one in state.processes):
            applied = state.numbers(APPLIED)
            if applied != state.listed:
                return f"{sorted(applied)} are applied, and {sorted(state.listed)} are listed"
        return ""

    def is_good_end(self, state: State) -> bool:
        """Whether all is done; or as many POSTs were made as are followed."""
        return (state.job is None and set(state.requests) == {APPLIED}) or not state.plans

    def _of_process(
        self, state: State, index: int, process: Process
    ) -> Iterator[tuple[str, State]]:
        if process.at == IDLE:
            yield from self._claim(state, index)
        elif process.at == READY:
            yield from self._look(state, index, process)
        elif process.at == PLANNED:
            yield from self._send(state, index, process)
        elif process.at == SENT:
            yield from self._finish(state, index, process)
        elif process.at == ENDING:
            yield "it ends its run", _at(self._end(state, process), index, Process())

    def _claim(self, state: State, index: int) -> Iterator[tuple[str, State]]:
        job = state.job
        if job is None or (job.is_owned and not job.is_lapsed):
            return
        claimed = state._replace(
            processes=tuple(self._without_lease(one) for one in state.processes),
            job=Job(is_owned=True),
        )
        reader = Process(
            READY,
            holds=True,
            is_newest=True,
            people=tuple(sorted(state.listed)),
            old=self._old(state) if self.dates_look_before_reading else (),
        )
        yield "one claims the job and reads the list", _at(claimed, index, reader)

    def _without_lease(self, process: Process) -> Process:
        """It notices before it does anything more: then it is as if it stopped at once."""
        is_checked = {
            READY: self.writes_with_lease_only,
            PLANNED: self.sends_with_lease_only,
            SENT: self.writes_with_lease_only,
            ENDING: True,
        }
        if is_checked.get(process.at):
            return Process()
        return process._replace(holds=False, is_newest=False)

    def _old(self, state: State) -> tuple[int, ...]:
        """The POSTs that have arrived by now, or never will: a minute has passed."""
        if not self.keeps_posts_in_doubt:
            return tuple(sorted(post.plan for post in state.stored))
        in_the_air = {plan for plan, _ in state.air}
        return tuple(sorted(post.plan for post in state.stored if post.plan not in in_the_air))

    def _look(self, state: State, index: int, process: Process) -> Iterator[tuple[str, State]]:
        """One transaction: what the list tells, and what is to be sent."""
        if self.writes_with_lease_only and not state.holds(process):
            yield "it has lost the job", _at(state, index, Process())
            return
        old = process.old if self.dates_look_before_reading else self._old(state)
        seen = frozenset(process.people)
        found = state.numbers(APPLYING) & seen
        undone = NOBODY.union(*(post.since - post.after - seen for post in state.stored))
        wanted = state.numbers(APPLYING) - seen
        if self.puts_right_what_was_undone:
            wanted |= undone
        stored = frozenset(
            post._replace(since=post.since | found)
            for post in state.stored
            if post.plan not in old or (post.since - post.after - seen)
        )
        state = _moved(state, found, APPLIED)._replace(stored=stored)
        if not wanted or not state.plans:
            yield "it finds nothing to send", _at(state, index, _ending(state, process))
            return
        planned = process._replace(
            at=PLANNED, people=tuple(sorted(seen | wanted)), old=(), plan=4 - state.plans
        )
        if self.stores_plan_first:
            stored |= {Post(planned.plan, seen | wanted)}
        state = state._replace(stored=stored, plans=state.plans - 1)
        yield f"it plans POST {planned.plan}", _at(state, index, planned)

    def _send(self, state: State, index: int, process: Process) -> Iterator[tuple[str, State]]:
        if self.sends_with_lease_only and not state.holds(process):
            yield "it is too late to send", _at(state, index, Process())
            return
        air = state.air | {(process.plan, frozenset(process.people))}
        sent = _at(state._replace(air=air), index, process._replace(at=SENT))
        yield f"it sends POST {process.plan}", sent

    def _finish(self, state: State, index: int, process: Process) -> Iterator[tuple[str, State]]:
        """No answer; or one transaction: what follows from a list that was taken."""
        others = state._replace(landed=state.landed - {process.plan})
        yield "it gets no answer", _at(others, index, _ending(others, process))
        if process.plan not in state.landed:
            return
        if self.writes_with_lease_only and not state.holds(process):
            yield "it is answered, and has lost the job", _at(others, index, Process())
            return
        decided = state.numbers(APPLYING) & frozenset(process.people)
        stored = frozenset(
            post._replace(since=post.since | decided)
            for post in state.stored
            if post.plan != process.plan
        )
        done = _moved(others, decided, APPLIED)._replace(stored=stored)
        yield "it is answered", _at(done, index, _ending(done, process))

    def _end(self, state: State, process: Process) -> State:
        job = state.job
        if job is None or not process.holds:
            return state
        is_newest = process.is_newest or not self.ends_own_generation_only
        return state._replace(job=None if is_newest and not process.again else Job())


def _ending(state: State, process: Process) -> Process:
    if not process.holds:
        return Process()
    return Process(ENDING, process.holds, process.is_newest, again=state.is_anything_left)


def _put(state: State) -> State:
    others = tuple(one._replace(is_newest=False) for one in state.processes)
    return state._replace(job=state.job or Job(), processes=tuple(sorted(others)))


def _moved(state: State, numbers: People | set[int], to: str) -> State:
    moved = (to if n in numbers else request for n, request in enumerate(state.requests))
    return state._replace(requests=tuple(moved))


def _at(state: State, index: int, process: Process) -> State:
    others = (*state.processes[:index], process, *state.processes[index + 1 :])
    return state._replace(processes=tuple(sorted(others)))
