"""The requests that `/testusers` takes, and their syntax."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from bot.approvals.rules.times import When
from bot.commands import TESTUSERS
from bot.errors import UsageError

ChangeKind = Literal["add", "remove"]

SUBCOMMANDS = tuple(TESTUSERS.subcommands)
KEYWORDS = frozenset({"for", "from", "until", "now", "because"})


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Add people to a flow's test users, or remove them. `flow` is what was typed.

    `presets` are names that stand for people. An addition begins at `start`, and ends at `until` or
    after `duration_seconds`.
    """

    kind: ChangeKind
    flow: str
    identities: tuple[str, ...]
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""
    presets: tuple[str, ...] = ()
    start: When | None = None
    until: When | None = None

    @property
    def form(self) -> str:
        """The permission that the change needs: applying at once takes another than asking."""
        return "now" if self.now else self.kind


@dataclass(frozen=True, slots=True)
class ListRequest:
    """List a flow's test users, optionally only those that contain a text."""

    flow: str
    text: str = ""
    form: ClassVar[str] = "list"


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """List a flow's changes, and who decided on them."""

    flow: str
    form: ClassVar[str] = "history"


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """List the requests that wait for a decision."""

    form: ClassVar[str] = "requests"


@dataclass(frozen=True, slots=True)
class MineRequest:
    """List the person's own requests, and the people they gave access."""

    form: ClassVar[str] = "mine"


@dataclass(frozen=True, slots=True)
class PresetsRequest:
    """List the presets."""

    form: ClassVar[str] = "presets"


@dataclass(frozen=True, slots=True)
class SavePreset:
    """Save people under a name, replacing a preset of that name."""

    name: str
    identities: tuple[str, ...]
    form: ClassVar[str] = "save_preset"


@dataclass(frozen=True, slots=True)
class DeletePreset:
    """Remove a preset."""

    name: str
    form: ClassVar[str] = "delete_preset"


@dataclass(frozen=True, slots=True)
class HelpRequest:
    """Show the help."""

    form: ClassVar[str] = "help"


@dataclass(frozen=True, slots=True)
class FormRequest:
    """Show the form, because nothing was typed."""

    form: ClassVar[str] = "form"


TestusersRequest = (
    ChangeRequest
    | ListRequest
    | HistoryRequest
    | PendingRequest
    | MineRequest
    | PresetsRequest
    | SavePreset
    | DeletePreset
    | HelpRequest
    | FormRequest
)


def misuse(action: str, sentence: str, *, has_right_form: bool = False) -> UsageError:
    """Return the error for a mistake in a form of the command, with its syntax."""
    return TESTUSERS.misuse(sentence, action, has_right_form=has_right_form)
