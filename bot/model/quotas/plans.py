"""Plans of the inventory service, and what each allows an organization.

The numbers are those of the specification, area B, "Limits".
"""

from enum import StrEnum

from bot.dataclass import dataclass


class Plan(StrEnum):
    """A plan, by the word that settings and commands use."""

    FREE = "free"
    STANDARD = "standard"
    PROFESSIONAL = "professional"
    PREMIUM = "premium"
    ENTERPRISE = "enterprise"


class CallClass(StrEnum):
    """Whose turn it is: a person's, the background's, or the one call at the end of a pause."""

    PERSON = "person"
    BACKGROUND = "background"
    PROBE = "probe"


@dataclass(frozen=True, slots=True)
class Limits:
    """Calls allowed in a minute, in a day, and at the same time."""

    minute: int
    day: int
    concurrent: int

    def left_to(self, call_class: CallClass) -> "Limits":
        """What a class may use: the background leaves a fifth of everything to people."""
        if call_class is not CallClass.BACKGROUND:
            return self
        return Limits(*(_four_fifths(n) for n in (self.minute, self.day, self.concurrent)))


def _four_fifths(limit: int) -> int:
    # Rounded down, so that people are left a fifth of five as well: one.
    return limit * 4 // 5


_MINUTE = 100
# What one person may use of it, where people are limited at all.
MINUTE_OF_ONE_PERSON = _MINUTE // 2
_LIMITS = {
    Plan.FREE: Limits(_MINUTE, 1_000, 5),
    Plan.STANDARD: Limits(_MINUTE, 2_000, 10),
    Plan.PROFESSIONAL: Limits(_MINUTE, 5_000, 10),
    Plan.PREMIUM: Limits(_MINUTE, 10_000, 10),
    Plan.ENTERPRISE: Limits(_MINUTE, 10_000, 10),
}


def limits_of(plan: Plan) -> Limits:
    """The documented limits of a plan."""
    return _LIMITS[plan]
