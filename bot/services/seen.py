"""Each service's last success and failure in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

# These outcomes don't indicate a problem with a service: a rejection is caused by a person's input,
# and for a cancelled call no answer was awaited.
ANSWERS = frozenset({"service_refused", "cancelled"})
# `/emailkey check <resource>` tests whether the key can read the resource that the person typed.
HARMLESS = {"email": ANSWERS | {"permission_missing"}}


@dataclass(frozen=True)
class ServiceSeen:
    """A service's last success and last failure.

    `is_failing` is True if the service needs attention: a call has failed since the last success.
    """

    name: str
    succeeded_at: datetime | None = None
    failed_at: datetime | None = None
    failure: str | None = None
    is_failing: bool = False


class ServiceLog:
    """Remembers the outcomes of this process's calls."""

    def __init__(self, now: Callable[[], datetime], names: Sequence[str]) -> None:
        self._now = now
        self._seen = {name: ServiceSeen(name) for name in names}

    def note(self, name: str, failure: str | None) -> None:
        """Record a call: None for a success, otherwise a label for the failure."""
        old = self._seen.get(name, ServiceSeen(name))
        if failure is None:
            self._seen[name] = replace(old, succeeded_at=self._now(), is_failing=False)
        # Requests to an OAuth provider don't contain people's input, so its rejections concern the
        # settings.
        elif name.startswith("oauth") or failure not in HARMLESS.get(name, ANSWERS):
            self._seen[name] = replace(old, failed_at=self._now(), failure=failure, is_failing=True)

    def seen(self) -> list[ServiceSeen]:
        """Return all services, in the order of the settings."""
        return list(self._seen.values())
