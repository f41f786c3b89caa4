"""Frozen dataclasses of the bot behave as those of the standard library."""

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, field
from functools import cached_property

import pytest

import bot.dataclass
from bot.ui.message import Message

KINDS = {"slots": {"frozen": True, "slots": True}, "no slots": {"frozen": True}}


def _classes(dataclass, **options):
    @dataclass(**options)
    class Point:
        """A point."""

        x: int
        y: int = 2
        tags: list[str] = field(default_factory=list)
        secret: str = field(default="", repr=False)
        note: str = field(default="", compare=False)

    @dataclass(**options)
    class Named(Point):
        """One with a name, which is written down its own way."""

        name: str = "N"

        def __post_init__(self):
            object.__setattr__(self, "name", self.name.upper())

        def __repr__(self):
            return self.name

    @dataclass(**options)
    class Nothing:
        """No fields."""

    return Point, Named, Nothing


@pytest.fixture(params=KINDS)
def classes(request):
    return _classes(bot.dataclass.dataclass, **KINDS[request.param])


@pytest.fixture(params=KINDS)
def both(request):
    options = KINDS[request.param]
    return _classes(bot.dataclass.dataclass, **options), _classes(dataclasses.dataclass, **options)


def test_instances_look_like_those_of_the_standard_library(both):
    shown = [
        [point(1), point(1, y=3, secret="s"), named(1, name="ada"), nothing()]
        for point, named, nothing in both
    ]
    assert str(shown[0]) == str(shown[1])


def test_classes_have_what_those_of_the_standard_library_have(both):
    ours, theirs = both
    for mine, one in zip(ours, theirs, strict=True):
        assert mine.__match_args__ == one.__match_args__
        assert getattr(mine, "__slots__", None) == getattr(one, "__slots__", None)
        names = [[each.name for each in dataclasses.fields(cls)] for cls in (mine, one)]
        assert names[0] == names[1]


@pytest.mark.parametrize("call", [{}, {"x": 1, "z": 2}, {"x": 1, "self": 2}])
def test_wrong_arguments_are_told_in_the_same_words(both, call):
    reasons = []
    for point, *_ in both:
        with pytest.raises(TypeError) as error:
            point(**call)
        reasons.append(str(error.value))
    assert reasons[0] == reasons[1]


def test_equality_is_of_one_class_and_its_compared_fields(classes):
    point, named, nothing = classes
    assert point(1, note="a") == point(1, note="b")
    assert point(1) != point(2)
    assert point(1) != named(1)
    assert point(1) != (1, 2, [], "")
    assert nothing() == nothing()


def test_hash_is_of_the_compared_fields(classes):
    point, _, nothing = classes
    assert hash(point(1, tags=(), note="a")) == hash(point(1, tags=(), note="b"))
    assert len({point(1, tags=()), point(1, tags=()), point(2, tags=())}) == 2
    assert hash(nothing()) == hash(nothing())
    with pytest.raises(TypeError, match="unhashable"):
        hash(point(1))


def test_each_instance_has_a_list_of_its_own(classes):
    point, *_ = classes
    assert point(1).tags is not point(1).tags


@pytest.mark.parametrize("name", ["x", "y", "unknown"])
def test_nothing_can_be_set_or_deleted(classes, name):
    for instance in (classes[0](1), classes[1](1)):
        with pytest.raises(FrozenInstanceError):
            setattr(instance, name, 5)
        with pytest.raises(FrozenInstanceError):
            delattr(instance, name)
        assert (instance.x, instance.y) == (1, 2)


def test_replace_copy_and_asdict_take_every_field(classes):
    point, *_ = classes
    instance = point(1, y=3, tags=["a"], secret="s", note="n")
    assert dataclasses.replace(instance, x=2) == point(2, y=3, tags=["a"], secret="s")
    assert copy.copy(instance).note == "n"
    assert copy.deepcopy(instance) == instance
    assert dataclasses.asdict(instance)["tags"] == ["a"]


def test_pattern_takes_fields_in_order(classes):
    point, *_ = classes
    match point(1, y=3):
        case point(x, y):
            assert (x, y) == (1, 3)


def test_cached_property_is_kept_without_slots():
    @bot.dataclass.dataclass(frozen=True)
    class Counted:
        """Something that is counted once."""

        items: list[int]

        @cached_property
        def total(self) -> int:
            self.items.append(0)
            return len(self.items)

    counted = Counted([1])
    assert (counted.total, counted.total) == (2, 2)


def test_other_dataclasses_are_the_standard_library_s():
    @bot.dataclass.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        """One that sorts."""

        x: int

    @bot.dataclass.dataclass
    class Open:
        """One that changes."""

        x: int

    assert Ordered(1) < Ordered(2)
    changed = Open(1)
    changed.x = 2
    assert changed == Open(2)


def test_class_without_a_docstring_is_called_by_its_name():
    @bot.dataclass.dataclass(frozen=True, slots=True)
    class Point:
        x: int

    assert Point.__doc__ == "Point"


@pytest.mark.parametrize("option", [{"init": False}, {"kw_only": True}])
def test_field_that_it_cannot_take_is_refused(option):
    with pytest.raises(TypeError, match="x must be an argument by position"):

        @bot.dataclass.dataclass(frozen=True)
        class Point:
            """A point."""

            x: int = field(default=1, **option)


def test_pickled_instance_is_equal():
    message = Message("Hello", [{"type": "divider"}])
    assert pickle.loads(pickle.dumps(message)) == message  # noqa: S301 - our own
