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
    words = [word.keyword for word in read_words(text)]
    match words:
        case [] | ["help"]:
            return GatehouseRequest("help")
        case ["whoami"]:
            return GatehouseRequest("whoami")
        case ["status"]:
            return GatehouseRequest("status")
        case ["audit"]:
            return GatehouseRequest("audit")
        case ["audit", number] if number in COUNTS:
            return GatehouseRequest("audit", COUNTS[number])
        case ["audit", *_]:
            sentence = f"How many entries? From 1 to {MOST_ENTRIES}."
            raise UsageError(sentence, "/gatehouse audit [n]", "/gatehouse audit 20")
    raise UsageError("I did not understand that.", USAGE, EXAMPLE)
