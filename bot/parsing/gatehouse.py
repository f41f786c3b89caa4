"""`/gatehouse` text to a wish."""

from dataclasses import dataclass
from typing import Literal

from bot.errors import UsageError
from bot.parsing.words import read_words, refuse_endless

USAGE = "/gatehouse help | whoami | status | audit [n]"
EXAMPLE = "/gatehouse status"
MOST_ENTRIES = 50
FEW_ENTRIES = 10
COUNTS = {str(count): count for count in range(1, MOST_ENTRIES + 1)}


@dataclass(frozen=True)
class GatehouseRequest:
    """What is wanted; `count` is how many entries of the audit."""

    kind: Literal["help", "whoami", "status", "audit"]
    count: int = FEW_ENTRIES


def parse_gatehouse(text: str) -> GatehouseRequest:
    """Read what was typed after `/gatehouse`; nothing is help.

    Raises:
        UsageError: It is none of the four.
    """
    refuse_endless(text, USAGE, EXAMPLE)
    typed = read_words(text)
    match [word.keyword for word in typed]:
        case [] | ["help"]:
            return GatehouseRequest("help")
        case ["whoami"]:
            return GatehouseRequest("whoami")
        case ["status"]:
            return GatehouseRequest("status")
        case ["audit"]:
            return GatehouseRequest("audit")
        # As it was typed: of a keyword, leading dashes do not count.
        case ["audit", _] if typed[1].text in COUNTS:
            return GatehouseRequest("audit", COUNTS[typed[1].text])
        case ["audit", *_]:
            sentence = f"How many entries? From 1 to {MOST_ENTRIES}."
            raise UsageError(sentence, "/gatehouse audit [n]", "/gatehouse audit 20")
    raise UsageError("I did not understand that.", USAGE, EXAMPLE)
