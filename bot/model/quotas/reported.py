"""What a service tells about its own limit in the headers of an answer."""

from collections.abc import Mapping
from typing import Self

from bot.dataclass import dataclass

# No limit is longer; a longer text is not a number to reckon with.
MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ReportedLimits:
    """The numbers as sent: whoever uses them decides whether they are sane.

    The headers are not in the specification; deployments were seen to send them for the day
    (`X-Rate-Limit-Limit`, `-Remaining`, `-Reset`), and to send zeros where they mean nothing.
    """

    limit: int
    remaining: int
    reset_seconds: int

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self | None:
        """None unless all three are there and whole numbers. `headers` ignores case."""
        sent = [headers.get(f"X-Rate-Limit-{name}", "") for name in ("Limit", "Remaining", "Reset")]
        if not all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in sent):
            return None
        return cls(*map(int, sent))
