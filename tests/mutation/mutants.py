"""Small changes to a module's source, each of which a test should notice."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATORS = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """A changed module; `was` and `became` are the line that differs."""

    line: int
    was: str
    became: str
    tree: ast.Module


def mutants_of(source: str) -> Iterator[Mutant]:
    """Every module that differs from this one in one place."""
    tree = ast.parse(source)
    # How a class is made is no rule.
    made_by = {id(one) for node in ast.walk(tree) for one in _decorators(node)}
    for index, node in enumerate(ast.walk(tree)):
        if id(node) in made_by:
            continue
        for number in range(len(list(_changes(node)))):
            changed = copy.deepcopy(tree)
            twin = list(ast.walk(changed))[index]
            was = _first_line(twin)
            replacement = list(_changes(twin))[number]
            _replace(changed, twin, replacement)
            ast.fix_missing_locations(changed)
            yield Mutant(twin.lineno, was, _first_line(replacement), changed)


def _decorators(node: ast.AST) -> Iterator[ast.AST]:
    for decorator in getattr(node, "decorator_list", []):
        yield from ast.walk(decorator)


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).splitlines()[0]


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in a node's place."""
    yield from _other_operators(node)
    yield from _other_values(node)
    yield from _other_steps(node)


def _other_operators(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            twin = copy.deepcopy(node)
            twin.ops[index] = COMPARISONS[type(operator)]()
            yield twin
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.BoolOp(other, node.values)
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand


def _other_values(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(node.value + 1)
    elif isinstance(node, ast.Name) and node.id in FUNCTIONS:
        yield ast.Name(FUNCTIONS[node.id], node.ctx)


def _other_steps(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.If | ast.While | ast.IfExp):
        twin = copy.deepcopy(node)
        twin.test = ast.UnaryOp(ast.Not(), twin.test)
        yield twin
    elif isinstance(node, ast.AugAssign) or _is_call(node):
        yield ast.Pass()


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_call(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _replace(tree: ast.AST, old: ast.AST, new: ast.AST) -> None:
    for parent in ast.walk(tree):
        for name, value in ast.iter_fields(parent):
            if value is old:
                setattr(parent, name, new)
                return
            if isinstance(value, list) and any(one is old for one in value):
                setattr(parent, name, [new if one is old else one for one in value])
                return
