"""All expected errors, except errors from services, which are in `bot.services.errors`.

Each error has a plain-text `sentence` for people, which must be escaped for Slack. The sentence
never contains a credential or a response body. `outcome` is a stable name for metrics and logs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import ClassVar, Self


@dataclass(frozen=True)
class Unsent:
    """What a person typed that had no effect, so that they don't have to type it again.

    `value` is the value of a button that opens a form with it. `texts` don't fit into the button.
    """

    value: str
    texts: Sequence[str] = ()


class GatehouseError(Exception):
    """The base class of expected errors. Some subclasses have a default `sentence`.

    `is_passing` is True if nothing was done and a retry may soon succeed. `closest` contains known
    words that are similar to the `unknown` word, each with a label for its button (an empty label
    stands for the whole command). `unsent` is the command that a form can correct, if any.
    """

    outcome: ClassVar[str] = "error"
    is_passing: ClassVar[bool] = False
    sentence: str = ""
    unknown: str = ""
    closest: Mapping[str, str] = MappingProxyType({})
    unsent: Unsent | None = None

    def __init__(self, sentence: str = "") -> None:
        self.sentence = sentence or self.sentence

    def __str__(self) -> str:
        return self.sentence

    def suggesting(self, unknown: str, closest: Mapping[str, str]) -> Self:
        """Set the unknown word and the suggestions, and return this error."""
        self.unknown = unknown
        self.closest = closest
        return self


@dataclass(eq=False)
class UsageError(GatehouseError):
    """The command could not be parsed.

    `usage` is the syntax (`/orgs show <id or name>`) and `example` is a valid command. `kind` is
    the form's name, or None if the form is unknown.
    """

    sentence: str = field()
    usage: str
    example: str
    kind: str | None = None
    outcome = "usage"


class Refused(GatehouseError):
    """The person lacks a permission. The sentence names the permission and who has it."""

    outcome = "refused"


class UnknownPerson(Refused):
    """The person's identity or workspace is unknown, so the request is refused."""

    outcome = "unknown_person"


class NotConfigured(GatehouseError):
    """A service isn't configured. `service` is its name, such as "the flow service"."""

    outcome = "not_configured"

    def __init__(self, service: str, settings: Sequence[str]) -> None:
        names = ", ".join(settings)
        super().__init__(
            f"{service[:1].upper()}{service[1:]} is not set up yet."
            f" Ask whoever runs Gatehouse to set {names}."
        )


class NotFound(GatehouseError):
    """The requested item does not exist."""

    outcome = "not_found"


@dataclass(eq=False)
class Ambiguous(GatehouseError):
    """Several items match the text. `choices` maps each match's value to a short label."""

    sentence: str = field()
    choices: Mapping[str, str]
    outcome = "ambiguous"


class TooManyCommands(GatehouseError):
    """The person reached the limit on commands or clicks per minute."""

    outcome = "too_many_commands"
    is_passing = True

    def __init__(self, retry_after_seconds: float, noun: str) -> None:
        seconds = max(1, math.floor(retry_after_seconds) + 1)
        super().__init__(f"That's a lot of {noun}! Try again in {seconds} s.")
        self.retry_after_seconds = retry_after_seconds


class Replayed(GatehouseError):
    """The Slack request was already handled, so the bot ignores the repeat."""

    outcome = "replayed"
    sentence = "This has already been done."


class DatabaseUnavailable(GatehouseError):
    """The database didn't respond, so nothing was done."""

    outcome = "database"
    is_passing = True
    sentence = (
        "Gatehouse can't reach its database. Nothing was changed. Please try again. If this keeps"
        " happening, contact whoever runs Gatehouse."
    )


class DatabaseInUse(DatabaseUnavailable):
    """Another process has locked the same SQLite file."""

    outcome = "database_in_use"

    def __init__(self, lock_path: str) -> None:
        super().__init__(
            f"Another Gatehouse process is using this SQLite database (lock {lock_path}). "
            "Stop that process, or use PostgreSQL, which any number of processes can share."
        )


class DatabaseReplaced(DatabaseUnavailable):
    """The SQLite file was removed or replaced while this process had it open."""

    outcome = "database_replaced"
    is_passing = False
    sentence = (
        "The database file was removed or replaced while Gatehouse was running, so nothing was"
        " saved. Ask whoever runs Gatehouse to put the file back and restart the bot."
    )


class DatabaseTooNew(DatabaseUnavailable):
    """The schema was created by a newer version of Gatehouse."""

    outcome = "database_too_new"
    sentence = (
        "This database was created by a newer version of Gatehouse. "
        "Run that version, or restore a backup."
    )


class Superseded(DatabaseUnavailable):
    """A newer version of Gatehouse migrated the database while this process was running."""

    outcome = "superseded"
    sentence = "Gatehouse is being upgraded, so nothing was done. Please try again in a moment."


class DatabaseTooOld(DatabaseUnavailable):
    """The schema was created by a version that is too old to upgrade from, or by no release."""

    outcome = "database_too_old"
    sentence = (
        "This database is from a version of Gatehouse before 0.3.0 or between two releases, so it"
        " can't be upgraded. Set DATABASE_URL to a new database."
    )


class OrganizationWideInstall(GatehouseError):
    """The Slack app is installed in a whole Enterprise organization instead of one workspace."""

    outcome = "organization_wide_install"
    sentence = (
        "The Slack app is installed for an entire Enterprise organization, which Gatehouse doesn't"
        " support. Install the app in one workspace, and set SLACK_BOT_TOKEN to the token for that"
        " workspace."
    )


class CommitUnknown(DatabaseUnavailable):
    """The connection dropped during the commit, so the outcome is unknown."""

    outcome = "commit_unknown"
    is_passing = False
    sentence = (
        "The database connection dropped at the last moment, so I can't tell whether this went"
        " through. Please check the result before you try again."
    )


class Conflict(GatehouseError):
    """Someone else acted first. The sentence says who and when."""

    outcome = "conflict"


class QuotaError(GatehouseError):
    """Gatehouse itself declined to call the inventory service."""

    outcome = "quota"


@dataclass(eq=False)
class QuotaExhausted(QuotaError):
    """A limit was reached. `limit_kind` is `minute`, `day` or `concurrent`.

    Calls are possible again `seconds` after the refusal.
    """

    sentence: str = field()
    limit_kind: str
    seconds: float = 0.0
    outcome = "quota_exhausted"
    is_passing = True


@dataclass(eq=False)
class OrganizationBlocked(QuotaError):
    """The service blocks the organization for these `seconds`. `code` is 44, 45 or 1070."""

    sentence: str = field()
    code: int
    seconds: float
    outcome = "organization_blocked"


class SlackError(GatehouseError):
    """A call to Slack failed. `retry_after_seconds` is the wait that Slack asks for, or 0."""

    outcome = "slack"
    retry_after_seconds: float = 0.0


class SlackUnreachable(SlackError):
    """Slack sent no valid response in time, but may have received the call."""

    outcome = "slack_unreachable"
    is_passing = True
    sentence = "Slack can't be reached right now."


class SlackRateLimited(SlackError):
    """Slack is limiting the bot's requests (429)."""

    outcome = "slack_rate_limited"

    def __init__(self, retry_after_seconds: float) -> None:
        super().__init__(
            "Slack is limiting Gatehouse's requests."
            f" Please try again in {retry_after_seconds:.0f} s."
        )
        self.retry_after_seconds = retry_after_seconds


# https://docs.slack.dev/reference/methods/views.open
TRIGGER_GONE = frozenset({"expired_trigger_id", "exchanged_trigger_id", "invalid_trigger_id"})


class SlackRefused(SlackError):
    """Slack rejected the call. `error` is Slack's error name, such as `channel_not_found`."""

    outcome = "slack_refused"

    def __init__(self, error: str, detail: str = "") -> None:
        super().__init__(
            "That took too long, so Slack didn't open the form. Please try again."
            if error in TRIGGER_GONE
            else f"Slack rejected this: {error}{f' ({detail})' if detail else ''}."
        )
        self.error = error
