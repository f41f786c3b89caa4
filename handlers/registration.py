"""Listener registrations, and the types of their parts."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar

from bot.permissions import Permission
from handlers.interactions import Context, Interaction

Store = Callable[[Interaction], Awaitable[None]]
Check = Callable[[Interaction], Mapping[str, str]]
Retyped = Callable[[Interaction], str]
Suggest = Callable[[Context, str], Awaitable[list[dict[str, Any]]]]
Surface = Literal["command", "action", "view", "options", "event", "shortcut"]
Name = Any  # a name, or a pattern for several


class DeliveryRecord(Protocol):
    """Records handled Slack requests."""

    async def take(self) -> bool:
        """Return True the first time the current Slack request is seen."""
        ...


class Typed(Protocol):
    """A parsed command."""

    @property
    def form(self) -> str:
        """The kind of the typed `bot.commands.Form`."""
        ...


C = TypeVar("C", bound=Typed)


@dataclass(frozen=True, slots=True)
class Registration:
    """A listener: Slack's kind of listener, its name or pattern, and its permission.

    `counted_as` is its name in metrics and logs if different.
    """

    surface: Surface
    name: Name
    permission: Permission | None
    counted_as: str | None = None
