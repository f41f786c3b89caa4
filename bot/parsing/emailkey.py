"""`/emailkey` text to a wish."""

import re
from dataclasses import dataclass
from typing import Literal

from bot.errors import UsageError
from bot.parsing.words import read_words, refuse_endless

USAGE = "/emailkey check [resource] | templates | help"
EXAMPLE = "/emailkey check templates"
DEFAULT_RESOURCE = "templates"
LONGEST_RESOURCE = 100
# A path below /v3, and nothing that could lead out of it or change the request.
RESOURCE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class EmailKeyRequest:
    """What is wanted; `resource` is what to read with the key, below `/v3/`."""

    kind: Literal["check", "templates", "help"]
    resource: str = DEFAULT_RESOURCE


def parse_emailkey(text: str) -> EmailKeyRequest:
    """Read what was typed after `/emailkey`; nothing is help.

    Raises:
        UsageError: It is none of the three, or the resource is not the name of one.
    """
    refuse_endless(text, USAGE, EXAMPLE)
    words = read_words(text)
    match [word.keyword for word in words]:
        case [] | ["help"]:
            return EmailKeyRequest("help")
        case ["templates"]:
            return EmailKeyRequest("templates")
        case ["check"]:
            return EmailKeyRequest("check")
        case ["check", _]:
            return EmailKeyRequest("check", _resource(words[1].text))
    raise UsageError("I did not understand that.", USAGE, EXAMPLE)


def _resource(typed: str) -> str:
    resource = typed.strip("/").removeprefix("v3/")
    if len(resource) <= LONGEST_RESOURCE and RESOURCE.fullmatch(resource):
        return resource
    sentence = "A resource is a name like templates, or a path like user/profile."
    raise UsageError(sentence, "/emailkey check [resource]", EXAMPLE)
