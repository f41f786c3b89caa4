"""The parser for `/orgs` commands."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from bot.commands import ORGS
from bot.slack.parse import Word, asks_for_help, name_in, words_of

LONGEST_FILTER = 200


@dataclass(frozen=True)
class OrgsRequest:
    """A parsed `/orgs` command. `words` is the search text or an organization's ID or name."""

    form: Literal["list", "show", "refresh", "help"]
    words: str = ""


def parse_orgs(text: str) -> OrgsRequest:
    """Parse the text after `/orgs`, or raise UsageError if the text is invalid."""
    words = words_of(text, ORGS, "search")
    first = words[0].keyword if words else ""
    if asks_for_help(words):
        return OrgsRequest("help")
    if first == "refresh" and len(words) == 1:
        return OrgsRequest("refresh")
    if first != "show":
        return OrgsRequest("list", _filter(text, 0, words))
    if len(words) == 1:
        raise ORGS.misuse("Which organization?", "show")
    return OrgsRequest("show", _filter(text, words[0].end, words[1:]))


def _filter(text: str, start: int, words: Sequence[Word]) -> str:
    filtered = name_in(text, start, words)
    if len(filtered) > LONGEST_FILTER:
        raise ORGS.misuse(f"The search text can have up to {LONGEST_FILTER} characters.", "search")
    return filtered
