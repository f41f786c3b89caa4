"""`/emailkey` text to a command."""

import re
from typing import Literal

from bot.commands import EMAILKEY
from bot.dataclass import dataclass
from bot.parsing.words import UNCLEAR, asks_for_help, read_words, refuse_endless

DEFAULT_RESOURCE = "templates"
LONGEST_RESOURCE = 100
# A path below /v3, and nothing that could lead out of it or change the request.
RESOURCE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class EmailKeyRequest:
    """What is wanted; `resource` is what to read with the key, below `/v3/`."""

    form: Literal["check", "templates", "help"]
    resource: str = DEFAULT_RESOURCE


def parse_emailkey(text: str) -> EmailKeyRequest:
    """Read what was typed after `/emailkey`; nothing is help.

    Raises:
        UsageError: It is none of the three, or the resource is not the name of one.
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
        case ["check", _]:
            return EmailKeyRequest("check", _resource(words[1].text))
    raise EMAILKEY.misuse(UNCLEAR)


def _resource(typed: str) -> str:
    resource = typed.strip("/").removeprefix("v3/")
    if len(resource) <= LONGEST_RESOURCE and RESOURCE.fullmatch(resource):
        return resource
    sentence = "A resource is a name like templates or a path like user/profile."
    raise EMAILKEY.misuse(sentence, "check")
