"""Declares the bot's listeners: each handler names its surface and the permission it needs.

The permission is checked before the handler runs; None allows everyone in the workspace. Stored
clicks are checked when they are processed, because the permission may depend on stored data.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

from bot.commands import FORM, Command
from bot.errors import Replayed, UsageError
from bot.permissions import ACTING, Permission
from bot.slack.messages import replies
from bot.slack.messages.message import Message
from handlers.interactions import Context

Surface = Literal["command", "action", "view", "view_closed", "options", "event", "shortcut"]
Answer = Callable[[Context], Awaitable[Message | None]]
Check = Callable[[Context], Mapping[str, str]]
May = Callable[[Permission], bool]
L = TypeVar("L", bound=Callable[[Context], Awaitable[Any]])
# The name for all interactions without another listener.
ANYTHING = "unknown"


class Typed(Protocol):
    """A parsed command."""

    @property
    def form(self) -> str:
        """The kind of the typed `bot.commands.Form`."""
        ...


C = TypeVar("C", bound=Typed)


class Place(Enum):
    """Where an answer appears. A response_url can edit only one message, which limits the choice.

    Attributes:
        NEW: A new message, which replaces "Working on it".
        CLICKED: Replaces the clicked message, as does "Working on it".
        BELOW: A new message below the clicked message, which must stay.
        FORM: A form opens; errors are shown as in BELOW.
        LATER: Like FORM, but the click is stored and answered once it has been processed.
        NOWHERE: Nothing is shown.
    """

    NEW = auto()
    CLICKED = auto()
    BELOW = auto()
    FORM = auto()
    LATER = auto()
    NOWHERE = auto()


@dataclass(frozen=True)
class Listener:
    """A listener for one kind of interaction.

    Attributes:
        surface: Slack's kind of listener, as Bolt names it.
        name: The name that Slack sends, or `ANYTHING`; also the name in metrics and logs.
        permission: The permission that is checked before the handler runs.
        answer: The handler. Type-aheads return options, all others a message or None.
        place: The location of the answer.
        is_prefix: True to listen to all names of the form `<name>.<anything>`.
        requires_itself: True if the permission depends on a request, so that the handler checks it.
        check: For forms: returns problems by input, which keep the form open.
        typed: For forms: returns the equivalent command, because closing a form discards its input.
    """

    surface: Surface
    name: str
    permission: Permission | None
    answer: Callable[[Context], Awaitable[Any]]
    place: Place = Place.BELOW
    is_prefix: bool = False
    requires_itself: bool = False
    check: Check | None = None
    typed: Callable[[Context], str] | None = None

    @property
    def is_stored(self) -> bool:
        """True if the handler runs before the acknowledgement and without an identified person."""
        return self.place in {Place.LATER, Place.NOWHERE}


LISTENERS: dict[tuple[Surface, str], Listener] = {}


def find(surface: Surface, name: str) -> Listener | None:
    """Return the listener for this surface and name."""
    found = LISTENERS.get((surface, name))
    by_prefix = LISTENERS.get((surface, name.rpartition(".")[0]))
    if found is None and by_prefix is not None and by_prefix.is_prefix:
        found = by_prefix
    return found or LISTENERS.get((surface, ANYTHING))


def listens(
    surface: Surface,
    name: str,
    permission: Permission | None,
    **options: Any,  # noqa: ANN401 - the other fields of `Listener`
) -> Callable[[L], L]:
    """Register the decorated function as a listener; `options` are fields of `Listener`."""

    def register(answer: L) -> L:
        LISTENERS[surface, name] = Listener(surface, name, permission, answer, **options)
        return answer

    return register


def command(
    described: Command, parse: Callable[[Context], C]
) -> Callable[[Callable[[Context, C], Awaitable[Message | None]]], Answer]:
    """Answer a slash command; only the person who typed it sees the answer.

    The function runs after parsing, and after checking the permission of the typed form.
    """

    def register(answer: Callable[[Context, C], Awaitable[Message | None]]) -> Answer:
        async def parse_and_answer(context: Context) -> Message | None:
            try:
                typed = parse(context)
            except UsageError as error:
                people, person = context.bot.people, context.person
                if error.kind is not None:
                    await people.require(person, described.permission(error.kind))
                    raise
                usable = described.only(partial(people.may, person))
                raise usable.misuse(error.sentence).or_rather(*error.meant) from None
            permission = described.permission(typed.form)
            await require(context, permission, acts=typed.form != FORM)
            return await answer(context, typed)

        return listens("command", described.name, None, place=Place.NEW)(parse_and_answer)

    return register


async def require(context: Context, permission: Permission, *, acts: bool) -> None:
    """Require the permission; an action that does more than open a form runs once per request.

    Raises:
        Refused: The person lacks the permission.
        Replayed: The Slack request was handled before.
    """
    await context.bot.people.require(context.person, permission)
    if acts and permission in ACTING and not await context.bot.received.take():
        raise Replayed


async def helped(context: Context, show: Callable[[May], Message]) -> Message:
    """Return the message that `show` makes for the person, or a sentence if they lack access."""
    people, person = context.bot.people, context.person
    without_access = await people.lacks_access(person)
    if without_access:
        return replies.said(without_access)
    return show(partial(people.may, person))
