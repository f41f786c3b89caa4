"""What `make mutate` changes, one place at a time."""

import ast
import importlib.util
from pathlib import Path

import pytest

from tests.mutation.__main__ import RULES
from tests.mutation.mutants import mutants_of

TESTS = Path(__file__).parents[1]
SOURCE = '''
@dataclass(frozen=True)
class Rule:
    """Its 3 words are left alone."""

    def allows(self, used):
        """Whether one more fits."""
        self.asked += 1
        return used < 5 and not self.is_over
'''


def test_mutants_differ_in_one_place_each():
    changes = {(one.line, one.was, one.became) for one in mutants_of(SOURCE)}
    assert changes == {
        (8, "self.asked += 1", "pass"),
        (8, "1", "2"),
        (9, "return used < 5 and (not self.is_over)", "return None"),
        (9, "used < 5 and (not self.is_over)", "used < 5 or not self.is_over"),
        (9, "used < 5", "used <= 5"),
        (9, "5", "6"),
        (9, "not self.is_over", "self.is_over"),
    }
    trees = [ast.unparse(one.tree) for one in mutants_of(SOURCE)]
    assert len(set(trees)) == len(trees) == len(changes)
    assert ast.unparse(ast.parse(SOURCE)) not in trees


@pytest.mark.parametrize("name", RULES)
def test_each_module_and_its_tests_are_there(name):
    assert importlib.util.find_spec(name)
    assert all((TESTS / path).is_file() for path in RULES[name])
