"""Names in the environment that look like settings and are none."""

import re
from collections.abc import Iterable, Mapping

from bot.model.edit_distance import edit_distance

PREFIXES = re.compile(
    r"^(GATEHOUSE|GATEWAY|INVENTORY|FLOW|EMAIL|SLACK|APPROVALS?|AUDIT|METRICS?|REQUEST|REMIND|ROLES)_"
)
# Short or everybody's: something else of a similar name is no mistake.
COMMON = frozenset({"HOST", "PORT", "ROLES", "LOG_LEVEL", "LOG_FORMAT"})
LONG_NAME = 12


def mistyped(environment: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """Return the names that are nearly those of settings, each with the setting that is meant."""
    names = frozenset(known)
    found = {}
    for name, value in environment.items():
        if name not in names and value.strip() and (meant := _meant(name, names - COMMON)):
            found[name] = meant
    return found


def unknown(environment: Mapping[str, str], known: Iterable[str]) -> list[str]:
    """Return the names that begin like ours, and mean nothing."""
    names = frozenset(known)
    return sorted(name for name in environment if name not in names and PREFIXES.match(name))


def _meant(name: str, names: Iterable[str]) -> str | None:
    for known in sorted(names):
        most = 2 if len(known) >= LONG_NAME else 1
        if edit_distance(name.upper(), known, most) <= most:
            return known
    return None
