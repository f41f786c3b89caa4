"""No text crashes a command's parser, and the parser accepts the command's examples."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.app import gatehouse
from bot.commands import COMMANDS, Command, Form
from bot.errors import UsageError
from bot.permissions import Permission
from handlers.app import slack_app
from handlers.listening import Listening
from tests.support.settings import LEAST, read_settings


async def parsers() -> dict[str, Callable[[str], Any]]:
    """Return the parser for each of the bot's commands."""
    found: dict[str, Callable[[str], Any]] = {}
    command = Listening.command

    def noting(self, described, parse, answer):
        found[described.name] = parse
        return command(self, described, parse, answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Listening, "command", noting)
        async with gatehouse(read_settings(LEAST)) as bot:
            slack_app(bot)
    return found


PARSERS = asyncio.run(parsers())
PLAIN = """
    add remove list show check plan free refresh history for 2h because now help --help welcome
    " ' , — &amp; &lt;!channel&gt; FW00000000000000000000000000000001
"""
WORDS = [
    *PLAIN.split(),
    *("“a b”", "\u2018x\u2019", "\u00a0", "\x00", "\n", "\U0001d7d9", "\u0663h"),
    *("<@U1|ada>", "<mailto:a@b.c|a@b.c>", "<tel:+15550001111|+1 555>"),
]
typed = st.text(max_size=80) | st.lists(st.sampled_from(WORDS) | st.text(max_size=6)).map(" ".join)


def refusal(command: str, text: str) -> UsageError | None:
    """Return the parser's error, or None if the parser accepts the text."""
    try:
        PARSERS[command](text)
    except UsageError as declined:
        return declined
    return None


def test_every_command_is_answered() -> None:
    assert set(PARSERS) == {command.name for command in COMMANDS}


@pytest.mark.parametrize("command", PARSERS)
@given(text=typed)
def test_any_text_is_understood_or_declined_with_an_example(command: str, text: str) -> None:
    declined = refusal(command, text)
    if declined is not None:
        assert declined.sentence.strip()
        assert declined.usage.startswith(command)
        assert declined.example.startswith(command)
        PARSERS[command](declined.example.removeprefix(command))


@pytest.mark.parametrize("command", PARSERS)
@pytest.mark.parametrize("text", ["x" * 200_000, '"' * 20_000, "<@U1|" * 20_000, " ," * 50_000])
def test_a_very_long_text_is_not_read(command: str, text: str) -> None:
    declined = refusal(command, text)
    assert declined is not None
    assert "too long" in declined.sentence


@pytest.mark.parametrize("command", PARSERS)
def test_help_is_always_understood(command: str) -> None:
    for text in ("help", " HELP ", "—help", "--help"):
        parsed = PARSERS[command](text)
        assert parsed.form == "help"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_example_is_read_as_its_form(command) -> None:
    for form in command.forms:
        if form.example:
            read = PARSERS[command.name](form.example).form
            # A search is a list command with words.
            assert read == ("list" if form.kind == "search" else form.kind)


def test_a_command_without_examples_is_its_own_example() -> None:
    command = Command("/flows", "List flows", (Form("list", "", "list flows", Permission.READ),))
    assert command.misuse("I don't know that.").example == "/flows"
