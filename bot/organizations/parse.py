"""The parser for `/orgs` commands."""

from dataclasses import dataclass
from typing import Literal

from bot.commands import ORGS
from bot.slack.parse import asks_for_help, name_in, words_of

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
    form: Literal["list", "show"] = "list"
    start = 0
    if first == "show":
        if len(words) == 1:
            raise ORGS.misuse("Which organization?", "show")
        form = "show"
        start = words[0].end
        words = words[1:]
    name = name_in(text, start, words)
    if len(name) > LONGEST_FILTER:
        raise ORGS.misuse(f"The search text can have up to {LONGEST_FILTER} characters.", "search")
    return OrgsRequest(form, name)
