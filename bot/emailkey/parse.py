"""Parses `/emailkey` commands."""

import re
from dataclasses import dataclass
from typing import Literal

from bot.commands import EMAILKEY
from bot.slack.parse.words import UNCLEAR, asks_for_help, read_words, refuse_endless

DEFAULT_RESOURCE = "templates"
LONGEST_RESOURCE = 100
MOST_RESOURCES = 10
# A path below /v3 that can't lead out of it or change the request.
RESOURCE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class EmailKeyRequest:
    """A parsed command; `resources` are the paths below `/v3/` to read with the key."""

    form: Literal["check", "templates", "help"]
    resources: tuple[str, ...] = (DEFAULT_RESOURCE,)


def parse_emailkey(text: str) -> EmailKeyRequest:
    """Parse the text after `/emailkey`; empty text means help.

    Raises:
        UsageError: The command is unknown, or a resource's name is invalid.
    """
    refuse_endless(text, EMAILKEY)
    words = read_words(text)
    if not words or asks_for_help(words):
        return EmailKeyRequest("help")
    match [word.keyword for word in words]:
        case ["templates"]:
            return EmailKeyRequest("templates")
        case ["check"]:
            return EmailKeyRequest("check")
        case ["check", *resources] if len(resources) <= MOST_RESOURCES:
            named = dict.fromkeys(_resource(word.text) for word in words[1:])
            return EmailKeyRequest("check", tuple(named))
    raise EMAILKEY.misuse(UNCLEAR)


def _resource(typed: str) -> str:
    resource = typed.strip("/").removeprefix("v3/")
    if len(resource) <= LONGEST_RESOURCE and RESOURCE.fullmatch(resource):
        return resource
    sentence = "A resource is a name like templates or a path like user/profile."
    raise EMAILKEY.misuse(sentence, "check")
