"""Small changes to a module's source, each of which a test should notice."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator, operator_names

# What may stand in an operator's place is its nearest: who notices that notices the others. And
# cosmic-ray would put `is` in the place of `==` as well, which is the same for most values.
NEAREST = {
    "Binary": (
        *("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul"),
        *("BitOr_BitAnd", "BitAnd_BitOr", "Pow_Mul"),
    ),
    "Comparison": (
        *("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt"),
        *("Eq_NotEq", "NotEq_Eq", "Is_IsNot", "IsNot_Is"),
    ),
    "Unary": ("Delete_Not", "USub_UAdd"),
}
# A class without its decorator fails at once, and a function without `@cache` is only slower.
LEFT_OUT = "RemoveDecorator"


class _Replacer(Operator):
    """Puts one thing in the place of a node."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        """The node itself, where it is of that kind."""
        if self.replacement(node) is not None:
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        """What stands in its place, with the spaces before it."""
        return parso.parse(node.get_first_leaf().prefix + (self.replacement(node) or ""))

    def replacement(self, node: Any) -> str | None:
        """What stands in its place; None where it is another kind of node."""
        raise NotImplementedError


class ReturnNone(_Replacer):
    """Returns None instead of a value."""

    def replacement(self, node: Any) -> str | None:
        """A return that has a value."""
        is_value = node.type == "return_stmt" and node.children[1].get_code().strip() != "None"
        return "return None" if is_value else None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """As cosmic-ray's own operators show them."""
        return (Example("def f(): return 1", "def f(): return None"),)


class LeaveOutStep(_Replacer):
    """Leaves out a call whose result nobody uses, or an assignment to what is there."""

    def replacement(self, node: Any) -> str | None:
        """A call, or such an assignment, on a line of its own."""
        if node.parent is None or node.parent.type != "simple_stmt":
            return None
        is_call = node.type == "atom_expr" and node.get_last_leaf().value == ")"
        is_augmented = node.type == "expr_stmt" and node.children[1].get_code().strip() != "="
        is_step = is_call or (is_augmented and node.children[1].type == "operator")
        return "pass" if is_step else None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """As cosmic-ray's own operators show them."""
        return (
            Example("self.add(1)\n", "pass\n"),
            Example("x += 1\n", "pass\n"),
            Example("x = f(1)\n", "x = f(1)\n"),
        )


class OtherFunction(_Replacer):
    """Takes the largest for the smallest, and all for any."""

    other = {"min": "max", "max": "min", "any": "all", "all": "any"}  # noqa: RUF012

    def replacement(self, node: Any) -> str | None:
        """The name of one of these, where it is called."""
        is_called = node.type == "name" and node.parent.type == "atom_expr"
        is_called = is_called and node.parent.children[0] is node
        return self.other.get(node.value) if is_called else None

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        """As cosmic-ray's own operators show them."""
        return (Example("x = min(a, b)", "x = max(a, b)"), Example("x = a.min()", "x = a.min()"))


OWN = (ReturnNone, LeaveOutStep, OtherFunction)


@dataclass(frozen=True)
class Mutant:
    """A changed module; `was` and `became` are the line that differs."""

    line: int
    was: str
    became: str
    source: str


def mutants_of(source: str) -> Iterator[Mutant]:
    """Every module that differs from this one in one place, but for its decorators and types."""
    no_rules = _decorators_and_types(source)
    nodes = list(ast_nodes(get_ast(source)))
    for operator in _operators():
        places = [(at, node) for node in nodes for at, _ in operator.mutation_positions(node)]
        for occurrence, (place, node) in enumerate(places):
            # The star before keywords is an operator to cosmic-ray.
            is_rule = node.parent is None or node.parent.type != "parameters"
            if is_rule and not any(start <= place < end for start, end in no_rules):
                changed = mutate_code(source, operator, occurrence)
                yield Mutant(place[0], *_first_difference(source, changed), changed)


def _operators() -> Iterator[Operator]:
    """What is changed, as cosmic-ray has it, and what it does not have."""
    for name in operator_names():
        operator = get_operator(name)
        nearest = next((few for kind, few in NEAREST.items() if f"{kind}Operator_" in name), None)
        is_wanted = nearest is None or name.split("Operator_")[1] in nearest
        if is_wanted and LEFT_OUT not in name and not operator.arguments():
            yield operator()
    for own in OWN:
        yield own()


def _decorators_and_types(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """From where to where: what is changed there is no rule."""
    found: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        found += getattr(node, "decorator_list", [])
        found += [getattr(node, "annotation", None), getattr(node, "returns", None)]
    return [
        ((one.lineno, one.col_offset), (one.end_lineno or 0, one.end_col_offset or 0))
        for one in found
        if one is not None
    ]


def _first_difference(source: str, changed: str) -> tuple[str, str]:
    """The line that differs, before and after."""
    pairs = zip(source.splitlines(), changed.splitlines(), strict=False)
    was, became = next((pair for pair in pairs if pair[0] != pair[1]), ("", ""))
    return " ".join(was.split()), " ".join(became.split())
