"""The limits that a service reports in an answer's headers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

# No limit has more digits; longer texts are ignored.
MOST_DIGITS = 9


@dataclass(frozen=True, slots=True)
class ReportedLimits:
    """The numbers as sent; callers check that they are plausible.

    The specification doesn't mention these headers; deployments were seen to send them for the day
    (`X-Rate-Limit-Limit`, `-Remaining`, `-Reset`), and to send zeros where they mean nothing.
    """

    limit: int
    remaining: int
    reset_seconds: int

    @classmethod
    def from_headers(cls, headers: Mapping[str, str]) -> Self | None:
        """Return None unless all three are present and integers. `headers` ignores case."""
        sent = [headers.get(f"X-Rate-Limit-{name}", "") for name in ("Limit", "Remaining", "Reset")]
        if not all(text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS for text in sent):
            return None
        return cls(*map(int, sent))
