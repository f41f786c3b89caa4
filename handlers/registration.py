"""What a listener is registered with, and the shapes of what it is made of."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

from bot.dataclass import dataclass
from bot.permissions import Permission
from handlers.interactions import Context, Interaction

Store = Callable[[Interaction], Awaitable[None]]
Check = Callable[[Interaction], Mapping[str, str]]
Retyped = Callable[[Interaction], str]
Suggest = Callable[[Context, str], Awaitable[list[dict[str, Any]]]]
Surface = Literal["command", "action", "view", "options", "event", "shortcut"]
Name = Any  # a name, or a pattern for several


class DeliveryRecord(Protocol):
    """Knows what Slack sent before."""

    async def take(self) -> bool:
        """Return whether to act on the request that is being followed: nobody did before."""
        ...


class Typed(Protocol):
    """What a parser makes of a command's text."""

    @property
    def form(self) -> str:
        """The kind of the `bot.commands.Form` that was typed."""
        ...


C = TypeVar("C", bound=Typed)


@dataclass(frozen=True, slots=True)
class Registration:
    """A listener: Slack's word for it, its name or pattern, and what it requires.

    `counted_as` is its name in metrics and logs where that is another one.
    """

    surface: Surface
    name: Name
    permission: Permission | None
    counted_as: str | None = None
