"""Parses `/gatehouse` commands."""

from dataclasses import dataclass
from typing import Literal

from bot.commands import GATEHOUSE
from bot.slack.parse import asks_for_help, read_words, refuse_endless, unknown

COUNTS = {str(count): count for count in range(1, 51)}


@dataclass(frozen=True)
class GatehouseRequest:
    """A parsed `/gatehouse` command. `count` is the number of audit entries to show."""

    form: Literal["help", "whoami", "status", "audit"]
    count: int = 10


def parse_gatehouse(text: str) -> GatehouseRequest:
    """Parse the text after `/gatehouse`. Empty text means help."""
    refuse_endless(text, GATEHOUSE)
    typed = read_words(text)
    if not typed or asks_for_help(typed):
        return GatehouseRequest("help")
    match [word.keyword for word in typed]:
        case ["whoami" | "status" | "audit" as form]:
            return GatehouseRequest(form)
        # Compare the text as typed, because keywords lose their leading dashes.
        case ["audit", _] if typed[1].text in COUNTS:
            return GatehouseRequest("audit", COUNTS[typed[1].text])
        case ["audit", *_]:
            raise GATEHOUSE.misuse("Choose 1 to 50 entries.", "audit")
    raise unknown(GATEHOUSE, typed)
