"""The last success and failure of each service, as this process saw them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

# These say nothing against a service: a rejection answers what one person typed, and a cancelled
# call was not waited for.
ANSWERS = frozenset({"service_refused", "cancelled"})
# `/emailkey check <resource>` asks whether the key may read what the person typed.
HARMLESS = {"email": ANSWERS | {"permission_missing"}}


@dataclass(frozen=True)
class ServiceSeen:
    """The last success and the last failure of a service.

    `is_failing` says whether it needs attention: a call has failed since the last success.
    """

    name: str
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str | None = None
    is_failing: bool = False


class ServiceLog:
    """Remembers how the calls of this process went."""

    def __init__(self, now: Callable[[], datetime], names: Sequence[str]) -> None:
        self._now = now
        self._seen = {name: ServiceSeen(name) for name in names}

    def note(self, name: str, failure: str | None) -> None:
        """Note a call: None for one that went well, else a word for what went wrong."""
        old = self._seen.get(name, ServiceSeen(name))
        if failure is None:
            self._seen[name] = replace(old, succeeded_at=self._now(), is_failing=False)
        # Nobody types what an OAuth provider is asked: its rejections are about the settings.
        elif name.startswith("oauth") or failure not in HARMLESS.get(name, ANSWERS):
            self._seen[name] = replace(old, failed_at=self._now(), failure=failure, is_failing=True)

    def seen(self) -> list[ServiceSeen]:
        """Return every service, in the order of the settings."""
        return list(self._seen.values())
