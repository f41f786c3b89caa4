"""Parses `/gatehouse` commands."""

from dataclasses import dataclass
from typing import Literal

from bot.commands import GATEHOUSE
from bot.slack.parse import asks_for_help, read_words, refuse_endless, unknown

MOST_ENTRIES = 50
FEW_ENTRIES = 10
COUNTS = {str(count): count for count in range(1, MOST_ENTRIES + 1)}


@dataclass(frozen=True)
class GatehouseRequest:
    """A parsed `/gatehouse` command; `count` is the number of audit entries."""

    form: Literal["help", "whoami", "status", "audit"]
    count: int = FEW_ENTRIES


def parse_gatehouse(text: str) -> GatehouseRequest:
    """Parse the text after `/gatehouse`; empty text means help."""
    refuse_endless(text, GATEHOUSE)
    typed = read_words(text)
    if not typed or asks_for_help(typed):
        return GatehouseRequest("help")
    match [word.keyword for word in typed]:
        case ["whoami" | "status" | "audit" as form]:
            return GatehouseRequest(form)
        # As typed, because a keyword's leading dashes are ignored.
        case ["audit", _] if typed[1].text in COUNTS:
            return GatehouseRequest("audit", COUNTS[typed[1].text])
        case ["audit", *_]:
            sentence = f"How many entries? Choose 1 to {MOST_ENTRIES}."
            raise GATEHOUSE.misuse(sentence, "audit")
    raise unknown(GATEHOUSE, typed)
