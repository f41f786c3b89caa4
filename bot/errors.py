"""Everything that is expected to go wrong, each with a sentence that a person can be shown.

    GatehouseError
    ├── UsageError              what was typed is not understood; has the usage and one example
    ├── Refused                 the person lacks the permission
    │   └── UnknownPerson       who it is, or what they belong to, could not be established
    ├── NotConfigured           a service lacks settings, which are named
    ├── NotFound                no such organization, flow, request ...
    ├── Ambiguous               several things have that name; has the candidates
    ├── TooManyCommands         the person's limit per minute; has the seconds to wait
    ├── DatabaseUnavailable     nothing can be looked up or recorded
    │   ├── DatabaseInUse       another process uses the same SQLite file
    │   ├── DatabaseTooNew      the schema is of a newer program
    │   └── CommitUnknown       the connection dropped during the commit: done or not is unknown
    ├── Conflict                somebody else was first: the state has already changed
    ├── Replayed                Slack's request was followed before; nothing is to be done
    ├── RecordEdited            what decides was edited in the database by somebody else
    ├── QuotaError              the bot itself declines to call the inventory service
    │   ├── QuotaExhausted      a limit is used up; has the limit and the time it is free again
    │   └── OrganizationBlocked the service blocks the organization; has the code and the end
    ├── SlackError              Slack did not take what we sent
    │   ├── SlackUnreachable    no answer, or one that is not Slack's
    │   ├── SlackRateLimited    429; has the seconds to wait
    │   ├── SlackMessageGone    the message to edit no longer exists
    │   └── SlackRefused        anything else; has Slack's name for it
    └── ServiceError            a call to a service failed: see `bot.service_errors`

The sentence is plain text: escape it before Slack reads it as markup. It never holds a credential,
nor a body. `outcome` is a short stable word for metrics and logs.
"""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import ClassVar, Self

from bot.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Meant:
    """What somebody may have meant: `words` instead of `typed`; `label` is what to call it."""

    typed: str
    words: str
    label: str = ""


class GatehouseError(Exception):
    """The root: catch it to answer with `sentence`.

    `is_passing` says that the same may work a little later, and that nothing was done; `meant` what
    the person may have meant instead.
    """

    outcome: ClassVar[str] = "error"
    is_passing: ClassVar[bool] = False
    meant: tuple[Meant, ...] = ()

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence

    def or_rather(self, *meant: Meant) -> Self:
        """Return the same error, which offers these instead of what was typed."""
        self.meant = meant
        return self


class UsageError(GatehouseError):
    """What was typed is not understood.

    `usage` is the form of the command (`/orgs show <id or name>`), `example` one that works; `kind`
    names the form, and is None where it may be any of the command. With `has_right_form` only a
    value is wrong, such as too many people, and neither of them helps.
    """

    outcome = "usage"

    def __init__(
        self,
        sentence: str,
        usage: str,
        example: str,
        kind: str | None = None,
        *,
        has_right_form: bool = False,
    ) -> None:
        super().__init__(sentence)
        self.usage = usage
        self.example = example
        self.kind = kind
        self.has_right_form = has_right_form


class Refused(GatehouseError):
    """The person may not do this; the sentence says which permission is missing and who has it."""

    outcome = "refused"


class UnknownPerson(Refused):
    """Who the person is, or what they belong to, could not be established: hence refused."""

    outcome = "unknown_person"


class NotConfigured(GatehouseError):
    """A service lacks settings. `service` is its name in a sentence, as in "the flow service"."""

    outcome = "not_configured"

    def __init__(self, service: str, settings: Sequence[str]) -> None:
        named = ", ".join(settings)
        super().__init__(
            f"{service[:1].upper()}{service[1:]} is not set up yet."
            f" Ask whoever runs Gatehouse to set {named}."
        )
        self.service = service
        self.settings = tuple(settings)


class NotFound(GatehouseError):
    """There is no such thing."""

    outcome = "not_found"


class Ambiguous(GatehouseError):
    """Several things match what was typed; `candidates` are texts to choose from.

    `choices` are the same ones for a menu: a value, and a short text to choose it by.
    `how_to_choose` says what to type where there is no menu.
    """

    outcome = "ambiguous"

    def __init__(
        self,
        sentence: str,
        candidates: Sequence[str],
        choices: Mapping[str, str] | None = None,
        how_to_choose: str = "",
    ) -> None:
        super().__init__(sentence)
        self.how_to_choose = how_to_choose
        self.candidates = tuple(candidates)
        self.choices = dict(choices or {})


class TooManyCommands(GatehouseError):
    """The person's commands, or clicks, of this minute are used up.

    `is_told` says that they were told so a moment ago.
    """

    outcome = "too_many_commands"

    def __init__(
        self, retry_after_seconds: float, noun: str = "commands", *, is_told: bool = False
    ) -> None:
        seconds = max(1, math.floor(retry_after_seconds) + 1)
        super().__init__(f"That's a lot of {noun}! Try again in {seconds} s.")
        self.retry_after_seconds = retry_after_seconds
        self.is_told = is_told


class Replayed(GatehouseError):
    """The very same request of Slack's was acted on before; nobody is answered."""

    outcome = "replayed"


class DatabaseUnavailable(GatehouseError):
    """The database did not answer: nothing is guessed, nothing is done."""

    outcome = "database"
    is_passing = True

    def __init__(
        self,
        sentence: str = (
            "Gatehouse can't reach its database. Nothing was changed; please try again."
        ),
    ) -> None:
        super().__init__(sentence)


class DatabaseInUse(DatabaseUnavailable):
    """Another process holds the lock of the same SQLite file."""

    outcome = "database_in_use"

    def __init__(self, lock_path: str) -> None:
        super().__init__(
            f"Another Gatehouse process is using this SQLite database (lock {lock_path}). "
            "Stop it, or use PostgreSQL, which any number of processes can share."
        )


class DatabaseTooNew(DatabaseUnavailable):
    """The schema was made by a newer program than this one."""

    outcome = "database_too_new"

    def __init__(self) -> None:
        super().__init__(
            "This database was created by a newer version of Gatehouse. "
            "Run that version, or restore a backup."
        )


class CommitUnknown(DatabaseUnavailable):
    """The database broke off while it committed; `Nothing was done` would be a guess."""

    outcome = "commit_unknown"
    is_passing = False

    def __init__(self) -> None:
        super().__init__(
            "The database connection dropped at the last moment, so I can't tell whether this went"
            " through. Please check before you try again."
        )


class Conflict(GatehouseError):
    """Somebody else was first; the sentence says who and when."""

    outcome = "conflict"


class RecordEdited(GatehouseError):
    """What is stored was edited by somebody else; `noun` and `name` say which row."""

    outcome = "record_edited"

    def __init__(self, noun: str, name: str) -> None:
        super().__init__(
            f"This {noun} was edited in the database, not by Gatehouse, so nothing is done with it."
            " The alerts channel was told."
        )
        self.noun = noun
        self.name = name


class QuotaError(GatehouseError):
    """The bot itself declines to call the inventory service."""

    outcome = "quota"


class QuotaExhausted(QuotaError):
    """A limit is used up. `limit_kind` is `minute`, `day` or `concurrent`.

    It has room at `free_at`, `seconds` from when that was decided by the database's clock.
    """

    outcome = "quota_exhausted"
    is_passing = True

    def __init__(
        self, sentence: str, *, limit_kind: str, free_at: datetime, seconds: float = 0.0
    ) -> None:
        super().__init__(sentence)
        self.limit_kind = limit_kind
        self.free_at = free_at
        self.seconds = seconds


class OrganizationBlocked(QuotaError):
    """The service blocks the organization: no call before `until`. `code` is 44, 45 or 1070.

    `seconds` is how long that is from when it was decided, by the database's clock.
    """

    outcome = "organization_blocked"

    def __init__(self, sentence: str, *, code: int, until: datetime, seconds: float = 0.0) -> None:
        super().__init__(sentence)
        self.code = code
        self.until = until
        self.seconds = seconds


class SlackError(GatehouseError):
    """Slack did not take what we sent."""

    outcome = "slack"


class SlackUnreachable(SlackError):
    """No answer in time, or one that is not Slack's; what was sent may have arrived."""

    outcome = "slack_unreachable"
    is_passing = True

    def __init__(self) -> None:
        super().__init__("Slack can't be reached right now.")


class SlackRateLimited(SlackError):
    """Slack answered 429."""

    outcome = "slack_rate_limited"

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(f"Slack is limiting Gatehouse. Retrying in {retry_after_seconds:.0f} s.")
        self.retry_after_seconds = retry_after_seconds


class SlackMessageGone(SlackError):
    """The message no longer exists, or can no longer be edited."""

    outcome = "slack_message_gone"

    def __init__(self) -> None:
        super().__init__("That message no longer exists.")


# https://docs.slack.dev/reference/methods/views.open
TRIGGER_GONE = frozenset({"expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id"})


class SlackRefused(SlackError):
    """Slack rejected it; `error` is its name for why, such as `channel_not_found`."""

    outcome = "slack_refused"

    def __init__(self, error: str, detail: str = "") -> None:
        super().__init__(
            "That took too long, so Slack didn't open the form. Please try again."
            if error in TRIGGER_GONE
            else f"Slack rejected this: {error}{f' ({detail})' if detail else ''}."
        )
        self.error = error
