"""Parses typed text into words, undoing the changes that Slack and phones make.

Slack escapes `&`, `<` and `>` in a command's text and turns mentions, links, email addresses and
phone numbers into markup (https://docs.slack.dev/messaging/formatting-message-text). Phones insert
curly quotes, long dashes and non-breaking spaces.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.commands import Command
from bot.errors import UsageError
from bot.spelling import DOUBLE_QUOTES, SINGLE_QUOTES, folded, one_line

MAX_CHARS = 10_000
"""The maximum length of a text to parse, in characters. Slack doesn't document its own limit."""
_HELP = frozenset({"help", "h", "?"})

_MARKUP = r"<(?:[@#!]|[A-Za-z][A-Za-z0-9+.-]*:)[^<>]*>"
_MARKUP_OR_ENTITY = re.compile(rf"{_MARKUP}|&(?:amp|lt|gt);")
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


@dataclass(frozen=True)
class Word:
    """A typed word and its position. A quoted word can contain separators but isn't a keyword."""

    text: str
    is_quoted: bool
    start: int
    end: int

    @property
    def keyword(self) -> str:
        """The folded word without leading dashes, or an empty string if the word is quoted."""
        if self.is_quoted:
            return ""
        plain = folded(self.text)
        return plain.lstrip("-") or plain


def asks_for_help(words: Sequence[Word]) -> bool:
    """Return True if the only word is `help`, `h` or `?`, with or without leading dashes."""
    return len(words) == 1 and words[0].keyword in _HELP


def unknown(command: Command, words: Sequence[Word]) -> UsageError:
    """Return the error for an invalid command, suggesting a similar subcommand if there is one."""
    names = command.subcommands
    first = words[0].keyword
    if first in names:
        return command.misuse(f"Use {command.name} {first} with nothing after it.")
    close = command.meant([word.keyword for word in words])
    guess = f" Did you mean “{close}”?" if close else ""
    return command.misuse(f"Unknown subcommand “{words[0].text[:80]}”.{guess}")


def recover(text: str) -> str:
    """Return the text as the person typed it, without Slack's markup and entities."""
    return _MARKUP_OR_ENTITY.sub(_typed, text)


def escaped(text: str) -> str:
    """Escape the text as Slack does. To undo this, use `recover`."""
    return html.escape(text, quote=False)


def rest_of_line(text: str, start: int) -> str:
    """Return the text from the position `start` as the person typed it, on one line."""
    return one_line(recover(text[start:]))


def name_in(text: str, start: int, words: Sequence["Word"]) -> str:
    """Return a name: one word, which can be quoted, or else the line from the position `start`."""
    return words[0].text if len(words) == 1 else rest_of_line(text, start)


def words_of(
    text: str, command: Command, kind: str | None = None, *, commas: bool = False
) -> tuple[Word, ...]:
    """Return the words after a command, or raise UsageError if the text is too long to parse.

    The error shows the usage of the form `kind`.
    """
    if len(text) > MAX_CHARS:
        sentence = f"That's too long. Send at most {MAX_CHARS:,} characters at once."
        raise command.misuse(sentence, kind)
    return read_words(text, commas=commas)


def read_words(text: str, *, commas: bool = False) -> tuple[Word, ...]:
    """Split a text into words at whitespace, and at commas if `commas` is True."""
    separators = r"\s," if commas else r"\s"
    gap = re.compile(rf"[{separators}]*")
    plain = re.compile(rf"(?:{_MARKUP}|[^{separators}])+")
    words: list[Word] = []
    never_closed: set[str] = set()
    at = _end_of(gap, text, 0)
    while at < len(text):
        word = _quoted_word(text, at, separators, never_closed)
        if word is None:
            end = _end_of(plain, text, at)
            word = Word(recover(text[at:end]), False, at, end)
        words.append(word)
        at = _end_of(gap, text, word.end)
    return tuple(words)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


def _quoted_word(text: str, start: int, separators: str, never_closed: set[str]) -> Word | None:
    """Return the quoted word at `start`, or None if there is none or if it isn't closed.

    A quoted word ends at a quotation mark that no letter or digit follows, so `"a"b c"` is one
    word. In `"a"-b`, more follows before the next separator, so that isn't a quoted word.
    `never_closed` collects sets of quotes that are never closed, to avoid repeated searches.
    """
    # The limit keeps this linear.
    more = re.compile(rf"[^{separators}]{{0,40}}?[^\W_]")
    for marks in (DOUBLE_QUOTES, SINGLE_QUOTES):
        if text[start] in marks and marks not in never_closed:
            closing = re.compile(rf"[{marks}](?!\w)").search(text, start + 1)
            if closing is None:
                never_closed.add(marks)
            elif not more.match(text, closing.end()):
                inside = recover(text[start + 1 : closing.start()])
                return Word(inside, True, start, closing.end())
    return None


def _typed(match: re.Match[str]) -> str:
    markup = match.group()
    if markup in _ENTITIES:
        return _ENTITIES[markup]
    target, _, label = markup[1:-1].partition("|")
    bare = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*:(?://)?", "", target)
    typed = markup
    if target.startswith(("@", "#")):
        typed = target[0] + label.removeprefix(target[0]) if label else markup
    elif target.startswith("!"):
        typed = label if target.startswith("!subteam^") and label else markup
    elif not label:
        typed = re.sub(r"^(?:mailto|tel):", "", target)
    elif target.startswith("tel:"):
        typed = label if re.sub(r"\D", "", bare) == re.sub(r"\D", "", label) else markup
    elif label.rstrip("/").casefold() in {
        address.rstrip("/").casefold() for address in (target, bare)
    }:
        typed = label
    return re.sub(r"&(?:amp|lt|gt);", lambda entity: _ENTITIES[entity.group()], typed)
