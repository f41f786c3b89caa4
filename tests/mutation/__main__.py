"""`python -m tests.mutation [words]`: each mutant in a process of its own, with its module's tests.

Nothing is written: a child imports the changed module in place of the real one.
"""

import contextlib
import importlib.abc
import importlib.machinery
import os
import signal
import sys
import time
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from tests.mutation.mutants import Mutant, mutants_of

RULES = {
    "bot.model.testusers.approval": "test_approval",
    "bot.model.testusers.applying": "test_applying",
    "bot.model.quotas.quota": "test_quota",
    "bot.model.quotas.blocks": "test_blocks",
    "bot.model.turns": "test_turns",
    "bot.model.pace": "test_pace",
}
# A mutant that runs for longer runs for ever.
MOST_SECONDS = 60
# Few examples show most mutants; what survives these has as many as the tests have otherwise.
EXAMPLES = (5, 100)


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
        exec(compile(self._mutant.tree, self._name, "exec"), vars(module))  # noqa: S102


def is_noticed(name: str, mutant: Mutant | None, examples: int) -> bool:
    """Whether a module's tests fail with the mutant; with None, whether they fail at all."""
    child = os.fork()
    if child == 0:
        signal.alarm(MOST_SECONDS)
        status = 1
        try:
            if mutant is not None:
                sys.meta_path.insert(0, Changed(name, mutant))
            settings.register_profile("few", settings.default, max_examples=examples)
            settings.load_profile("few")
            status = _run_tests(f"tests/model/{RULES[name]}.py")
        finally:
            os._exit(int(status != 0))
    _, status = os.waitpid(child, 0)
    return status != 0


def _run_tests(path: str) -> int:
    """Without fixtures: none is needed, and what they import takes longer than the tests."""
    quiet = ["-qx", "--noconftest", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"]
    quiet += ["-o", "timeout=0"]
    with (
        Path(os.devnull).open("w") as nowhere,
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        return pytest.main([*quiet, path])


def survivors_of(name: str) -> tuple[int, list[Mutant]]:
    """How many mutants a module has, and those that its tests do not notice."""
    if is_noticed(name, None, EXAMPLES[-1]):
        sys.exit(f"The tests of {name} fail without any change.")
    source = Path(f"{name.replace('.', '/')}.py").read_text()
    survivors = mutants = list(mutants_of(source))
    for examples in EXAMPLES:
        survivors = [one for one in survivors if not is_noticed(name, one, examples)]
    return len(mutants), survivors


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
