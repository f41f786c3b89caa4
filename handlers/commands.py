"""Slash commands, which people can also send as a direct message or with a button."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from bot.app import Gatehouse
from bot.commands import HELP, Command
from bot.errors import NotFound, UsageError
from bot.permissions import Person
from bot.slack.messages import help as help_ui
from bot.slack.messages import replies
from bot.slack.messages.block_kit import OUTDATED, Message
from bot.slack.people import People
from handlers import payloads
from handlers.listening import COMMAND, Listener, Listening, Work, require
from handlers.payloads import Body

T = TypeVar("T")
AnswerCommand = Callable[[Gatehouse, Person, T, Body], Awaitable[Message | None]]
"""Gets the bot, the person, the parsed command, and Slack's payload."""


class Commands:
    """Every slash command by its name, such as `/orgs`."""

    def __init__(self, bot: Gatehouse, listening: Listening) -> None:
        self._bot = bot
        self._listening = listening
        self._works: dict[str, Work] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._works

    def listener(
        self, described: Command, parse: Callable[[str], T], answer: AnswerCommand[T]
    ) -> Listener:
        """Return a listener that parses the text, checks the permission, and answers.

        What `parse` returns has the `kind` of one of the command's forms, or `help`, as `form`.
        """

        async def work(bot: Gatehouse, person: Person, body: Body) -> Message | None:
            try:
                typed: Any = parse(payloads.text(body, "text"))
            except UsageError as error:
                if error.kind is not None:
                    await bot.slack.people.require(person, described.permission(error.kind))
                raise
            await require(bot.slack, person, described.permission(typed.form))
            if typed.form == HELP:
                show = partial(help_ui.of_command, described)
                return await helped(bot.slack.people, person, show)
            return await answer(bot, person, typed, body)

        self._works[described.name] = work
        return self._listening.listener(work, COMMAND)

    async def run(self, command: str, person: Person, body: Body) -> Message | None:
        """Answer a command such as `/orgs show 7`. Each of its forms requires a permission.

        Raises:
            NotFound: There is no such command.
            UsageError: The text can't be parsed.
            Refused: The person lacks the permission.
        """
        name, _, text = command.partition(" ")
        if name not in self:
            raise NotFound(OUTDATED)
        message: Message | None = await self._works[name](self._bot, person, {**body, "text": text})
        return message


async def helped(people: People, person: Person, show: Callable[[help_ui.May], Message]) -> Message:
    """Return the message from `show` or, if the person has no access, a message that says so."""
    without_access = await people.lacks_access(person)
    if without_access:
        return replies.said(without_access)
    return show(partial(people.may, person))
