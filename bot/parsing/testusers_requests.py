"""What `/testusers` can be asked for, and how each of it is typed."""

from typing import ClassVar, Literal

from bot.commands import TESTUSERS
from bot.dataclass import dataclass
from bot.errors import UsageError
from bot.model.start_times import StartTime

ChangeKind = Literal["add", "remove"]

SUBCOMMANDS = tuple(TESTUSERS.subcommands)
KEYWORDS = frozenset({"for", "from", "now", "because"})


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Add people to a flow's test users, or remove them. `flow` is what was typed.

    `presets` are names that stand for people; `start` is when an addition begins, in the zone of
    who asks.
    """

    kind: ChangeKind
    flow: str
    identities: tuple[str, ...]
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""
    presets: tuple[str, ...] = ()
    start: StartTime | None = None

    @property
    def form(self) -> str:
        """Applying at once takes another permission than asking."""
        return "now" if self.now else self.kind


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Who may test a flow; only those with the text in them, where there is one."""

    flow: str
    text: str = ""
    form: ClassVar[str] = "list"


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What was changed on a flow, and who decided it."""

    flow: str
    form: ClassVar[str] = "history"


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """Which requests wait for a decision."""

    form: ClassVar[str] = "requests"


@dataclass(frozen=True, slots=True)
class MineRequest:
    """What the asker has requested, and whom they gave access."""

    form: ClassVar[str] = "mine"


@dataclass(frozen=True, slots=True)
class PresetsRequest:
    """Which presets there are."""

    form: ClassVar[str] = "presets"


@dataclass(frozen=True, slots=True)
class SavePreset:
    """Give people a name, in the place of what had it before."""

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
    """What can be typed."""

    form: ClassVar[str] = "help"


@dataclass(frozen=True, slots=True)
class FormRequest:
    """Nothing was typed: show the form."""

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
    """The error of what is typed wrong in a form of the command, with how it is typed."""
    return TESTUSERS.misuse(sentence, action, has_right_form=has_right_form)
