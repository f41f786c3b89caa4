"""`/testusers`: what was typed to a typed request, or a usage error that shows a right example."""

from collections.abc import Callable, Collection, Sequence

from bot.commands import TESTUSERS
from bot.errors import Meant, UsageError
from bot.model.durations import spell_duration
from bot.model.spelling import DOUBLE_QUOTES, closest, folded
from bot.parsing.testusers_change import PRESET, parse_change, people, reason_problem
from bot.parsing.testusers_doubts import Known
from bot.parsing.testusers_requests import (
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
from bot.parsing.words import Word, escaped, read_words, refuse_endless

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
    "parse_testusers",
    "reason_problem",
]

PRESET_ACTIONS = ("save", "delete")
Reader = Callable[[Sequence[Word]], TestusersRequest]


def parse_testusers(text: str, aliases: Collection[str] = ()) -> TestusersRequest:
    """The request in the text of `/testusers`; `aliases` are the short names of flows.

    Raises:
        UsageError: it is not understood; says what is wrong, shows an example, and offers what was
            probably meant.
    """
    try:
        return _parse(text, aliases)
    except UsageError as error:
        error.meant = tuple(one for one in error.meant if _is_understood(one.words, aliases))
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
        return _parse_preset(rest, Known(text, aliases))
    read = READERS.get(action)
    if read is None:
        raise _unknown(action, words[0].text)
    return read(rest)


def _alone(action: str, request: TestusersRequest) -> Reader:
    def read(rest: Sequence[Word]) -> TestusersRequest:
        if rest:
            raise misuse(action, f"/testusers {action} takes no other words.")
        return request

    return read


def _parse_list(words: Sequence[Word]) -> ListRequest:
    if not words:
        raise misuse("list", "Which flow? Use its name or its SID.")
    return ListRequest(words[0].text, " ".join(word.text for word in words[1:]))


def _parse_history(words: Sequence[Word]) -> HistoryRequest:
    if not words:
        raise misuse("history", "Which flow? Use its name or its SID.")
    if len(words) > 1:
        raise misuse("history", f"Unexpected word: “{words[1].text[:80]}”.")
    return HistoryRequest(words[0].text)


def _parse_preset(words: Sequence[Word], known: Known) -> SavePreset | DeletePreset:
    action = words[0].keyword if words else ""
    if action not in PRESET_ACTIONS:
        close = closest(action, PRESET_ACTIONS) if words else []
        meant = (Meant(known.text.strip(), _instead(words[0], one, known.text)) for one in close)
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
        return SavePreset(name, people("save_preset", words[2:], known))
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
    **dict.fromkeys(("help", "h", "?"), lambda _words: HelpRequest()),
}


def _unknown(action: str, typed: str) -> UsageError:
    close = closest(action, SUBCOMMANDS)
    guess = f" Did you mean “{close[0]}”?" if close else ""
    return TESTUSERS.misuse(f"Unknown subcommand “{typed[:80]}”.{guess}")


def as_command(change: ChangeRequest, aliases: Collection[str] = ()) -> str:
    """The command that asks for the same, to be typed; "" where nothing typed says just that."""
    for quote in (_quoted_if_need_be, _quoted):
        command = _spelled_out(change, quote)
        if _is_read_as(command, change, aliases):
            return command
    return ""


def _spelled_out(change: ChangeRequest, quote: Callable[[str], str]) -> str:
    duration = [f"for {spell_duration(change.duration_seconds)}"] if change.duration_seconds else []
    start = [f"from {change.start}"] if change.start else []
    now = ["now"] if change.now else []
    reason = [f"because {change.reason}"] if change.reason else []
    who = [*map(quote, change.identities), *(f"@{name}" for name in change.presets)]
    return " ".join(
        [TESTUSERS.name, change.kind, quote(change.flow), *who, *duration, *start, *now, *reason]
    )


def _is_read_as(command: str, change: ChangeRequest, aliases: Collection[str]) -> bool:
    try:
        return _parse(escaped(command.removeprefix(TESTUSERS.name)), aliases) == change
    except UsageError:
        return False


def _quoted_if_need_be(word: str) -> str:
    """The word as it is, where that is how it is read; no keyword, nor two words."""
    read = read_words(escaped(word), commas=True)
    return word if [one.text for one in read if _is_plain(one)] == [word] else _quoted(word)


def _is_plain(word: Word) -> bool:
    return not (word.is_quoted or word.is_dash or word.opens_quote or word.keyword in KEYWORDS)


def _quoted(word: str) -> str:
    """The word in the kind of quotation marks that it does not hold."""
    mark = "'" if any(one in word for one in DOUBLE_QUOTES) else '"'
    return f"{mark}{word}{mark}"
