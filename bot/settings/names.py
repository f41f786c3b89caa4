"""Environment variables that look like misspelled settings."""

import re
from collections.abc import Iterable, Mapping

from rapidfuzz.distance import OSA

DATA_CENTERS = ("com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa")
PREFIXES = re.compile(
    r"^(GATEHOUSE|GATEWAY|INVENTORY|FLOW|EMAIL|SLACK|APPROVALS?|AUDIT|METRICS?|REQUEST|REMIND|ROLES)_"
)
# Short or common names, for which a similar variable is probably not a mistake.
COMMON = frozenset({"HOST", "PORT", "ROLES", "LOG_LEVEL", "LOG_FORMAT"})
LONG_NAME = 12
# Kubernetes sets these in every pod if there is a Service named "gatehouse".
SERVICE_LINK = re.compile(r"\w+_(SERVICE_(HOST|PORT)|PORT_[0-9]+_)\w*=|\w+_PORT=(tcp|udp)://")


def mistyped(environment: Mapping[str, str], known: Iterable[str]) -> dict[str, str]:
    """Return likely misspellings of settings, each with the intended setting."""
    names = frozenset(known)
    found = {}
    for name, value in environment.items():
        if name not in names and value.strip() and (meant := _meant(name, names - COMMON)):
            found[name] = meant
    return found


def unknown(environment: Mapping[str, str], known: Iterable[str]) -> list[str]:
    """Return names that have Gatehouse's prefixes but aren't settings."""
    names = frozenset(known)
    return sorted(
        name
        for name, value in environment.items()
        if name not in names and PREFIXES.match(name) and not SERVICE_LINK.match(f"{name}={value}")
    )


def _meant(name: str, names: Iterable[str]) -> str | None:
    for known in sorted(names):
        most = 2 if len(known) >= LONG_NAME else 1
        if OSA.distance(name.upper(), known, score_cutoff=most) <= most:
            return known
    return None
