"""What `make mutate` changes, one place at a time."""

import ast
import importlib.util
from pathlib import Path

import pytest
from cosmic_ray.mutating import mutate_code

from tests.mutation.__main__ import RULES
from tests.mutation.mutants import OWN, mutants_of

TESTS = Path(__file__).parents[1]
SOURCE = '''
@dataclass(frozen=True)
class Rule:
    """Its 3 words are left alone."""

    def allows(self, used: int | str, *, at=None) -> bool | None:
        """Whether one more fits."""
        self.asked += 1
        return used < 5 and not self.is_over
'''


def test_mutants_differ_in_one_place_each():
    changes = {(one.line, one.was, one.became) for one in mutants_of(SOURCE)}
    asked, returned = "self.asked += 1", "return used < 5 and not self.is_over"
    assert changes == {
        (8, asked, "pass"),
        (8, asked, "self.asked += 2"),
        (8, asked, "self.asked += 0"),
        (9, returned, "return None"),
        (9, returned, "return used < 5 or not self.is_over"),
        (9, returned, "return used <= 5 and not self.is_over"),
        (9, returned, "return used < 6 and not self.is_over"),
        (9, returned, "return used < 4 and not self.is_over"),
        (9, returned, "return used < 5 and self.is_over"),
    }
    sources = [one.source for one in mutants_of(SOURCE)]
    assert len(set(sources)) == len(sources) == len(changes)
    assert SOURCE not in sources
    assert all(ast.parse(one) for one in sources)


@pytest.mark.parametrize("operator", OWN)
def test_what_is_changed_besides(operator):
    for example in operator.examples():
        changed = mutate_code(example.pre_mutation_code, operator(), 0)
        assert (changed or example.pre_mutation_code) == example.post_mutation_code


@pytest.mark.parametrize("name", RULES)
def test_each_module_and_its_tests_are_there(name):
    assert importlib.util.find_spec(name)
    assert all((TESTS / path).is_file() for path in RULES[name])
