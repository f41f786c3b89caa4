"""`dataclass` as the standard library has it, and quicker to define where it is frozen.

Before Python 3.13 the standard library compiles each method of each class by itself: with our two
hundred frozen classes a sixth of the work of a start. Here they share all methods but `__init__`.
"""

import dataclasses
from dataclasses import MISSING, FrozenInstanceError
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, **options: bool
    ) -> object:
        """Return the class as a dataclass, or what makes one; see `dataclasses.dataclass`."""
        if cls is not None or not frozen or options:
            return dataclasses.dataclass(cls, frozen=frozen, slots=slots, **options)
        return lambda cls: _frozen(cls, slots=slots)


def _frozen(cls: type, *, slots: bool) -> type:
    own = {name for name, value in vars(cls).items() if value is not None}
    # Without it the standard library looks for the signature, which takes as long as 50 classes.
    cls.__doc__ = cls.__doc__ or cls.__name__
    plain: Any = dataclasses.dataclass(init=False, eq=False, repr=False, slots=slots)(cls)
    plain.__init__ = _init(plain, slots=slots)
    compared = [field.name for field in dataclasses.fields(plain) if field.compare]
    plain._compared = attrgetter(*compared) if compared else type  # noqa: SLF001 - ours
    for name, method in METHODS.items():
        if name not in own:
            setattr(plain, name, method)
    made: type = plain
    return made


def _init(cls: Any, *, slots: bool) -> Any:  # noqa: ANN401
    """Compile the method that sets the fields, past `__setattr__`."""
    names: dict[str, Any] = {"__name__": cls.__module__, "_set": object.__setattr__, "_no": MISSING}
    parameters, lines = ["self"], ["pass"]
    for field in dataclasses.fields(cls):
        name = value = field.name
        if not field.init or field.kw_only:
            raise TypeError(f"{name} must be an argument by position")
        if field.default_factory is not MISSING:
            names[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _no else {name}"
            parameters.append(f"{name}=_no")
        elif field.default is not MISSING:
            names[f"_default_{name}"] = field.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        if slots:
            names[f"_set_{name}"] = getattr(cls, name).__set__
            lines.append(f"_set_{name}(self, {value})")
        else:
            lines.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    # Nothing in the text is from outside: names of fields, and those above.
    exec(f"def __init__({', '.join(parameters)}):\n {'; '.join(lines)}", names)  # noqa: S102
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    return names["__init__"]


def _refuse(_self: object, name: str, *_value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot change {name!r}")


def _equal(self: Any, other: Any) -> Any:  # noqa: ANN401
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:  # noqa: ANN401
    return hash(self._compared(self))


def _show(self: Any) -> str:  # noqa: ANN401
    shown = [field.name for field in dataclasses.fields(self) if field.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{type(self).__qualname__}({values})"


def _reduce(self: Any) -> tuple[type, tuple[object, ...]]:  # noqa: ANN401
    """Be copied and pickled by its fields."""
    return type(self), tuple(getattr(self, field.name) for field in dataclasses.fields(self))


METHODS = {
    "__setattr__": _refuse,
    "__delattr__": _refuse,
    "__eq__": _equal,
    "__hash__": _hash,
    "__repr__": _show,
    "__reduce__": _reduce,
}
