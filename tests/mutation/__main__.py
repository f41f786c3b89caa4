"""`python -m tests.mutation [words]`: each mutant in a process of its own, with its module's tests.

Nothing is written: a child imports the changed module in place of the real one.
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import resource
import sys
import time
from collections.abc import Sequence
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from tests.mutation.mutants import Mutant, mutants_of

TYPED = ("parsing/test_testusers.py", "parsing/test_testusers_typos.py")
# The tests of each module, in the order in which they are run.
RULES = {
    "bot.model.testusers.approval": ("model/test_approval.py",),
    "bot.model.testusers.applying": ("model/test_applying.py",),
    "bot.model.doubt": ("model/test_doubt.py",),
    "bot.model.testusers.missing": ("model/test_missing.py",),
    "bot.model.testusers.changes": ("model/test_testusers.py", "parsing/test_testusers.py"),
    "bot.model.testusers.requests": ("model/test_requests.py",),
    "bot.model.testusers.spellings": ("model/test_spellings.py",),
    "bot.model.durations": ("model/test_durations.py",),
    "bot.model.start_times": ("model/test_start_times.py",),
    "bot.model.policies": ("model/test_policies.py",),
    "bot.permissions": ("bot/test_permissions.py", "model/test_policies.py"),
    "bot.parsing.words": ("parsing/test_words.py",),
    "bot.parsing.testusers": TYPED,
    "bot.parsing.testusers_change": TYPED,
    "bot.parsing.testusers_requests": TYPED,
    "bot.parsing.testusers_doubts": TYPED[::-1],
    "bot.parsing.testusers_form": ("parsing/test_testusers_form.py",),
    "bot.parsing.emailkey": ("parsing/test_emailkey.py",),
    "bot.parsing.gatehouse": ("parsing/test_gatehouse.py",),
    "bot.parsing.orgs": ("parsing/test_orgs.py",),
    "bot.parsing.ratelimits": ("parsing/test_ratelimits.py",),
    "bot.parsing.mentioned": ("parsing/test_mentioned.py",),
    "bot.workflows.testusers.state_text": ("workflows/testusers/test_state_text.py",),
    "bot.model.quotas.quota": ("model/test_quota.py",),
    "bot.model.quotas.blocks": ("model/test_blocks.py",),
    "bot.model.quotas.watching": ("model/test_watching.py",),
    "bot.model.quotas.calls": ("model/test_calls.py",),
    "bot.model.quotas.concurrency": ("model/test_concurrency.py",),
    "bot.model.quotas.days": ("model/test_days.py",),
    "bot.model.quotas.forecast": ("model/test_forecast.py",),
    "bot.model.quotas.plans": ("model/test_plans.py",),
    "bot.model.quotas.reported": ("model/test_reported.py",),
    "bot.model.quotas.standing": ("model/test_standing.py",),
    "bot.model.quotas.use": ("model/test_use.py", "ui/test_ratelimits.py"),
    "bot.model.turns": ("model/test_turns.py",),
    "bot.model.pace": ("model/test_pace.py",),
    "bot.model.clocks": ("model/test_clocks.py",),
    "bot.model.edit_distance": ("model/test_edit_distance.py",),
    "bot.model.emailkey": ("model/test_emailkey.py",),
    "bot.model.gateway": ("model/test_gateway.py",),
    "bot.model.gateway_requests": ("model/test_gateway_requests.py",),
    "bot.model.spelling": ("model/test_spelling.py",),
    "bot.model.organizations.data_centers": ("model/test_data_centers.py",),
    "bot.model.organizations.directory": ("model/test_directory.py",),
    "bot.model.organizations.organization": ("model/test_organization.py",),
}
# Few examples, and no slow test, show most mutants; what survives these has all of the tests, with
# as many examples as they have otherwise.
FEW, MANY = 5, 100
# Of the processor, by examples. A mutant that takes more runs for ever.
MOST_SECONDS = {FEW: 10, MANY: 60}
AT_ONCE = len(os.sched_getaffinity(0))


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and loads its mutant."""

    def __init__(self, name: str, mutant: Mutant) -> None:
        self._name = name
        self._mutant = mutant

    def find_spec(
        self, fullname: str, _path: object, _target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The mutant's, where it is asked for."""
        return spec_from_loader(fullname, self) if fullname == self._name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed source."""
        exec(compile(self._mutant.source, self._name, "exec"), vars(module))  # noqa: S102


def unnoticed(name: str, mutants: Sequence[Mutant], examples: int) -> list[Mutant]:
    """The mutants of a module with which none of its tests fails."""
    left, survivors = list(mutants), []
    running: dict[int, Mutant] = {}
    while left or running:
        while left and len(running) < AT_ONCE:
            one = left.pop()
            running[_start(name, one, examples)] = one
        child, status = os.wait()
        one = running.pop(child)
        survivors += [] if status else [one]
    return survivors


def _start(name: str, mutant: Mutant, examples: int) -> int:
    """A child that runs the module's tests, and ends with 0 where none fails."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS[examples],) * 2)
            sys.meta_path.insert(0, Changed(name, mutant))
            settings.register_profile("few", settings.default, max_examples=examples)
            settings.load_profile("few")
            status = _run_tests(RULES[name], "not slow" if examples == FEW else "")
        finally:
            os._exit(int(status != 0))
    return child


def _run_tests(paths: Sequence[str], marks: str) -> int:
    """Without fixtures: none is needed, and what they import takes longer than the tests."""
    quiet = ["-qx", "--noconftest", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
    quiet += ["-o", "timeout=0", "-m", marks]
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        return pytest.main([*quiet, *(f"tests/{path}" for path in paths)])


def survivors_of(name: str) -> tuple[int, list[Mutant]]:
    """How many mutants a module has, and those that its tests do not notice."""
    source = Path(f"{name.replace('.', '/')}.py").read_text()
    unchanged = Mutant(0, "", "", source)
    if not all(unnoticed(name, [unchanged], examples) for examples in (FEW, MANY)):
        sys.exit(f"The tests of {name} fail without any change.")
    mutants = list(mutants_of(source))
    survivors = unnoticed(name, unnoticed(name, mutants, FEW), MANY)
    return len(mutants), sorted(survivors, key=lambda one: one.line)


def main(words: list[str]) -> int:
    """Print the score of each module, and what survives."""
    settings.register_profile(
        "mutation",
        database=None,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    settings.load_profile("mutation")
    total = survived = 0
    for name in [name for name in RULES if all(word in name for word in words)]:
        began = time.monotonic()
        count, survivors = survivors_of(name)
        total, survived = total + count, survived + len(survivors)
        seconds = time.monotonic() - began
        print(f"{name}: {count - len(survivors)} of {count} noticed, {seconds:.0f} s", flush=True)
        for one in survivors:
            print(f"  line {one.line}: {one.was}  ->  {one.became}")
    print(f"{100 * (total - survived) / max(total, 1):.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
