"""Inventory calls as the quota guard sees them: the caller and the cause."""

from dataclasses import dataclass

# The kinds of call that the guard and the charts distinguish.
PROBE = "probe"
WATCH = "watch"
CHECK = "check"
GATEWAY = "gateway"
# The prefix of clients in the ledger of calls, which names people by their Slack ids.
_CALLER = "client:"


def caller_of(client: str) -> str:
    """Return a client's name in the ledger."""
    return _CALLER + client


def client_named(caller: str | None) -> str | None:
    """Return the client behind a ledger name; None for a person or the bot itself."""
    if caller is None or not caller.startswith(_CALLER):
        return None
    return caller.removeprefix(_CALLER)


@dataclass(frozen=True, slots=True)
class CallCause:
    """The reason for a call.

    `kind` is a short word for charts (`list`, `refresh`, `check`, `watch`, `probe`, `gateway`).
    Background calls wait until there is room and leave some to people. `client` is the gateway
    client that the call is for.
    """

    kind: str
    slack_user_id: str | None = None
    background: bool = False
    client: str | None = None

    @property
    def caller(self) -> str:
        """The caller's name in the ledger; empty for the bot itself."""
        return caller_of(self.client) if self.client else self.slack_user_id or ""

    @property
    def is_for_people(self) -> bool:
        """True if a person waits for the answer: only then are failed calls retried."""
        return not self.background and self.kind != PROBE
