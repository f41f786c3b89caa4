"""Every state that a small model can come to, and what is wrong in any of them."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

S = TypeVar("S", bound=Hashable)
Steps = Callable[[S], Iterable[tuple[str, S]]]


@dataclass(frozen=True)
class Wrong:
    """What is wrong, and the steps that lead there."""

    what: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class Searched(Generic[S]):
    """Every state with the step and the state that it was first reached by."""

    reached: Mapping[S, tuple[str, S] | None]
    wrong: Wrong | None


def search(
    start: S,
    steps: Steps[S],
    wrong_in: Callable[[S], str],
    is_good_end: Callable[[S], bool],
) -> Searched[S]:
    """Search breadth first, so that what is found wrong has the shortest way there.

    Besides what `wrong_in` says of a state, it is wrong when no good end can be reached from one.
    """
    reached: dict[S, tuple[str, S] | None] = {start: None}
    before: dict[S, list[S]] = {}
    ends, waiting = [], deque([start])
    while waiting:
        state = waiting.popleft()
        if what := wrong_in(state):
            return Searched(reached, Wrong(what, _way(reached, state)))
        if is_good_end(state):
            ends.append(state)
        for name, following in steps(state):
            before.setdefault(following, []).append(state)
            if following not in reached:
                reached[following] = (name, state)
                waiting.append(following)
    good = _leading_to(ends, before)
    stuck = next((state for state in reached if state not in good), None)
    wrong = None if stuck is None else Wrong("it never ends", _way(reached, stuck))
    return Searched(reached, wrong)


def _leading_to(ends: list[S], before: Mapping[S, list[S]]) -> set[S]:
    good, waiting = set(ends), list(ends)
    while waiting:
        for earlier in before.get(waiting.pop(), ()):
            if earlier not in good:
                good.add(earlier)
                waiting.append(earlier)
    return good


def _way(reached: Mapping[S, tuple[str, S] | None], state: S) -> tuple[str, ...]:
    names: list[str] = []
    while (came := reached[state]) is not None:
        name, state = came
        names.append(name)
    return tuple(reversed(names))
