"""`/testusers`: turn text into a typed request, or a usage error with a correct example."""

from collections.abc import Callable, Collection, Sequence
from itertools import pairwise

from bot.approvals.rules.durations import spell_duration
from bot.approvals.rules.times import spell_when
from bot.commands import TESTUSERS
from bot.errors import Meant, UsageError
from bot.slack.parse.words import Word, escaped, read_words, refuse_endless
from bot.spelling import DOUBLE_QUOTES, closest, folded, skeleton
from bot.testusers.parse.change import PRESET, Typed, parse_change, people, reason_problem
from bot.testusers.parse.identities import is_identity
from bot.testusers.parse.requests import (
    KEYWORDS,
    SUBCOMMANDS,
    ChangeRequest,
    DeletePreset,
    FormRequest,
    HelpRequest,
    HistoryRequest,
    ListRequest,
    MineRequest,
    PendingRequest,
    PresetsRequest,
    SavePreset,
    TestusersRequest,
    misuse,
)
from bot.testusers.rules.changes import is_flow_sid

__all__ = [
    "ChangeRequest",
    "DeletePreset",
    "FormRequest",
    "HelpRequest",
    "HistoryRequest",
    "ListRequest",
    "MineRequest",
    "PendingRequest",
    "PresetsRequest",
    "SavePreset",
    "TestusersRequest",
    "as_command",
    "as_typed",
    "parse_testusers",
    "reason_problem",
]

PRESET_ACTIONS = ("save", "delete")
Reader = Callable[[Sequence[Word], Typed], TestusersRequest]
FLOWS_OFFERED = 5


def parse_testusers(text: str, aliases: Collection[str] = ()) -> TestusersRequest:
    """Return the request in the text of `/testusers`; `aliases` are the short names of flows.

    Raises:
        UsageError: The text is not understood; the error explains it, shows an example, and
            offers the likely meaning.
    """
    try:
        return _parse(text, aliases)
    except UsageError as error:
        error.meant = tuple(meant for meant in error.meant if _is_understood(meant.words, aliases))
        raise


def _is_understood(text: str, aliases: Collection[str]) -> bool:
    try:
        _parse(text, aliases)
    except UsageError:
        return False
    return True


def _parse(text: str, aliases: Collection[str]) -> TestusersRequest:
    refuse_endless(text, TESTUSERS, "add")
    words = [word for word in read_words(text, commas=True) if not word.is_dash]
    if not words:
        return FormRequest()
    action, rest = words[0].keyword, words[1:]
    if action in ("add", "remove"):
        return parse_change("add" if action == "add" else "remove", rest, text, aliases)
    if action == "preset" or (action == "presets" and rest and rest[0].keyword in PRESET_ACTIONS):
        return _parse_preset(rest, Typed(text, aliases))
    read = READERS.get(action)
    if read is None:
        raise _unknown(action, words[0].text)
    return read(rest, Typed(text, aliases))


def as_typed(text: str, aliases: Collection[str]) -> str:
    """Return `add +1 to welcome for 2h` as the command has it: `add welcome +1 for 2h`.

    Only the name of a flow or a SID after `to`, `on` or `from` is taken for the flow.
    """
    words = [word for word in read_words(text, commas=True) if not word.is_dash]
    names = set(map(skeleton, aliases))
    for before, word in pairwise(words[1:]):
        is_flow = is_flow_sid(word.text) or skeleton(word.text) in names
        if before.keyword in ("to", "on", "from") and is_flow:
            people, rest = text[words[0].end : before.start], text[word.end :]
            return f"{words[0].text} {word.text}{people}{rest}".strip()
    return text


def _alone(action: str, request: TestusersRequest) -> Reader:
    def read(rest: Sequence[Word], _typed: Typed) -> TestusersRequest:
        if rest:
            raise misuse(action, f"/testusers {action} takes no other words.")
        return request

    return read


def _which_flow(action: str, typed: Typed) -> UsageError:
    flows = sorted(typed.aliases)[:FLOWS_OFFERED]
    meant = (Meant(typed.text.strip(), f"{typed.text.strip()} {flow}", flow) for flow in flows)
    return misuse(action, "Which flow?", has_right_form=bool(flows)).or_rather(*meant)


def _parse_list(words: Sequence[Word], typed: Typed) -> ListRequest:
    if not words:
        raise _which_flow("list", typed)
    return ListRequest(words[0].text, " ".join(word.text for word in words[1:]))


def _parse_history(words: Sequence[Word], typed: Typed) -> HistoryRequest:
    if not words:
        raise _which_flow("history", typed)
    if len(words) > 1:
        raise misuse("history", f"Unexpected word: “{words[1].text[:80]}”.")
    return HistoryRequest(words[0].text)


def _parse_preset(words: Sequence[Word], typed: Typed) -> SavePreset | DeletePreset:
    action = words[0].keyword if words else ""
    if action not in PRESET_ACTIONS:
        close = closest(action, PRESET_ACTIONS) if words else []
        meant = (Meant(typed.text.strip(), _instead(words[0], word, typed.text)) for word in close)
        raise misuse("save_preset", "Choose “preset save” or “preset delete”.").or_rather(*meant)
    if len(words) == 1:
        raise misuse("save_preset", "Which preset? Give it a name, e.g. demo-team.")
    name = folded(words[1].text).removeprefix("@")
    if words[1].keyword in KEYWORDS:
        raise misuse("save_preset", f"“{name}” can't name a preset: it has a meaning in add.")
    if not PRESET.fullmatch(f"@{name}"):
        raise misuse(
            "save_preset",
            "Use up to 40 characters: a to z, digits, dots and dashes, e.g. demo-team.",
        )
    if action == "save":
        if taken := next((word for word in words[2:] if word.keyword in KEYWORDS), None):
            raise misuse(
                "save_preset",
                f"“{taken.keyword}” belongs to add: a preset only names people."
                f" If “{taken.text}” is a test user, put it in quotes.",
            )
        return SavePreset(name, people("save_preset", words[2:], typed))
    if len(words) > len(("delete", name)):
        raise misuse("save_preset", f"Unexpected word: “{words[2].text[:80]}”.")
    return DeletePreset(name)


def _instead(word: Word, meant: str, text: str) -> str:
    return f"{text[: word.start]}{meant}{text[word.end :]}".strip()


READERS: dict[str, Reader] = {
    "list": _parse_list,
    "history": _parse_history,
    "requests": _alone("requests", PendingRequest()),
    "mine": _alone("mine", MineRequest()),
    "presets": _alone("presets", PresetsRequest()),
    **dict.fromkeys(("help", "h", "?"), lambda _words, _typed: HelpRequest()),
}


def _unknown(action: str, typed: str) -> UsageError:
    close = closest(action, SUBCOMMANDS)
    guess = f" Did you mean “{close[0]}”?" if close else ""
    return TESTUSERS.misuse(f"Unknown subcommand “{typed[:80]}”.{guess}")


def as_command(change: ChangeRequest, aliases: Collection[str] = ()) -> str:
    """Return the command that makes the same request; "" if no command can."""
    for quote in (_quoted_if_need_be, _quoted):
        command = _spelled_out(change, quote)
        if _is_read_as(command, change, aliases):
            return command
    return ""


def _spelled_out(change: ChangeRequest, quote: Callable[[str], str]) -> str:
    duration = [f"for {spell_duration(change.duration_seconds)}"] if change.duration_seconds else []
    start = [f"from {spell_when(change.start)}"] if change.start else []
    until = [f"until {spell_when(change.until)}"] if change.until else []
    now = ["now"] if change.now else []
    reason = [f"because {change.reason}"] if change.reason else []
    people = [word if is_identity(word) else _quoted(word) for word in change.identities]
    presets = [f"@{name}" for name in change.presets]
    options = (*duration, *start, *until, *now, *reason)
    words = (change.kind, quote(change.flow), *people, *presets, *options)
    return " ".join((TESTUSERS.name, *words))


def _is_read_as(command: str, change: ChangeRequest, aliases: Collection[str]) -> bool:
    try:
        return _parse(escaped(command.removeprefix(TESTUSERS.name)), aliases) == change
    except UsageError:
        return False


def _quoted_if_need_be(word: str) -> str:
    """Return the word, in quotes if it would be read as anything else."""
    read = read_words(escaped(word), commas=True)
    return word if [typed.text for typed in read if _is_plain(typed)] == [word] else _quoted(word)


def _is_plain(word: Word) -> bool:
    return not (word.is_quoted or word.is_dash or word.opens_quote or word.keyword in KEYWORDS)


def _quoted(word: str) -> str:
    """Return the word in quotation marks that it doesn't contain."""
    mark = "'" if any(mark in word for mark in DOUBLE_QUOTES) else '"'
    return f"{mark}{word}{mark}"
