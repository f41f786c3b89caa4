"""A call to the inventory service, as the quota guard sees it: for whom it is made, and why."""

from bot.dataclass import dataclass

# The kinds of call that the guard and the charts know apart.
PROBE = "probe"
WATCH = "watch"
CHECK = "check"
GATEWAY = "gateway"
# How the ledger of calls names a client, where it names people by their Slack ids.
_CALLER = "client:"


def caller_of(client: str) -> str:
    """How the ledger names a client."""
    return _CALLER + client


def client_named(caller: str | None) -> str | None:
    """The client that the ledger names so; None for a person, or the bot itself."""
    if caller is None or not caller.startswith(_CALLER):
        return None
    return caller.removeprefix(_CALLER)


@dataclass(frozen=True, slots=True)
class CallCause:
    """Why a call is made.

    `kind` is a short word for charts (`list`, `refresh`, `check`, `watch`, `probe`, `gateway`); a
    background call leaves room for people, and its turn waits until there is some. `client` is the
    gateway's client that it is made for.
    """

    kind: str
    slack_user_id: str | None = None
    background: bool = False
    client: str | None = None

    @property
    def caller(self) -> str:
        """How the ledger names who it is made for; empty for the bot itself."""
        return caller_of(self.client) if self.client else self.slack_user_id or ""

    @property
    def is_for_people(self) -> bool:
        """Whether a person waits for the answer: only then is a call that fails made again."""
        return not self.background and self.kind != PROBE
