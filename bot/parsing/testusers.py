"""`/testusers`: what was typed to a typed request, or a usage error that shows a right example."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from typing import Literal

from bot.errors import UsageError
from bot.model.spelling import DOUBLE_QUOTES
from bot.model.testusers import (
    MAX_DURATION_SECONDS,
    MAX_REASON_CHARS,
    identities_problem,
    is_sendable,
    parse_duration,
)
from bot.parsing.words import Word, escaped, read_words, refuse_endless, rest_of_line

ChangeKind = Literal["add", "remove"]

COMMAND = "/testusers"
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "m"), (1, "s"))

USAGE = {
    "add": "/testusers add <flow> <identity>… [for <duration>] [now] [because <reason>]",
    "remove": "/testusers remove <flow> <identity>… [now] [because <reason>]",
    "list": "/testusers list <flow>",
    "history": "/testusers history <flow>",
    "requests": "/testusers requests",
}
_COUNTRY_CODE = re.compile(r"\+[0-9]{1,3}")
_AREA_CODE = re.compile(r"\(?[0-9]{2,5}\)?(?:-[0-9]+)*")
KEYWORDS = frozenset({"for", "now", "because"})
EXAMPLES = {
    "add": "/testusers add welcome +15550100 for 2h because Friday's demo",
    "remove": "/testusers remove welcome +15550100 because the test is over",
    "list": "/testusers list welcome",
    "history": "/testusers history welcome",
    "requests": "/testusers requests",
}


@dataclass(frozen=True, slots=True)
class ChangeRequest:
    """Add people to a flow's test users, or remove them. `flow` is what was typed."""

    kind: ChangeKind
    flow: str
    identities: tuple[str, ...]
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ListRequest:
    """Who may test a flow."""

    flow: str


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    """What was changed on a flow, and who decided it."""

    flow: str


@dataclass(frozen=True, slots=True)
class PendingRequest:
    """Which requests wait for a decision."""


@dataclass(frozen=True, slots=True)
class HelpRequest:
    """What can be typed."""


@dataclass(frozen=True, slots=True)
class FormRequest:
    """Nothing was typed: show the form."""


TestusersRequest = (
    ChangeRequest | ListRequest | HistoryRequest | PendingRequest | HelpRequest | FormRequest
)


def parse_testusers(text: str) -> TestusersRequest:
    """The request in the text of `/testusers`.

    Raises:
        UsageError: it is not understood; says what is wrong and shows an example.
    """
    refuse_endless(text, USAGE["add"], EXAMPLES["add"])
    words = [word for word in read_words(text, commas=True) if not word.is_dash]
    if not words:
        return FormRequest()
    action, rest = words[0].keyword, words[1:]
    if action in ("add", "remove"):
        return _parse_change("add" if action == "add" else "remove", rest, text)
    if action in ("list", "history"):
        flow = _only_flow(action, rest)
        return ListRequest(flow) if action == "list" else HistoryRequest(flow)
    if action == "requests" and not rest:
        return PendingRequest()
    if action in ("help", "h", "?"):
        return HelpRequest()
    raise _unknown(action, words[0])


def as_command(wish: ChangeRequest) -> str:
    """The command that asks for the same, to be typed; "" where nothing typed says just that."""
    for quote in (_quoted_if_need_be, _quoted):
        command = _spelled_out(wish, quote)
        if _is_read_as(command, wish):
            return command
    return ""


def _spelled_out(wish: ChangeRequest, quote: Callable[[str], str]) -> str:
    duration = [f"for {_duration(wish.duration_seconds)}"] if wish.duration_seconds else []
    now = ["now"] if wish.now else []
    reason = [f"because {wish.reason}"] if wish.reason else []
    words = [quote(one) for one in (wish.flow, *wish.identities)]
    return " ".join([COMMAND, wish.kind, *words, *duration, *now, *reason])


def _duration(seconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if seconds % size == 0)
    return f"{seconds // size}{unit}"


def _is_read_as(command: str, wish: ChangeRequest) -> bool:
    try:
        return parse_testusers(escaped(command.removeprefix(COMMAND))) == wish
    except UsageError:
        return False


def _quoted_if_need_be(word: str) -> str:
    """The word as it is, where that is how it is read; no keyword, nor two words."""
    read = read_words(escaped(word), commas=True)
    is_itself = len(read) == 1 and read[0].text == word and not read[0].is_quoted
    is_plain = is_itself and not (read[0].is_dash or read[0].opens_quote)
    return word if is_plain and read[0].keyword not in KEYWORDS else _quoted(word)


def _quoted(word: str) -> str:
    """The word in the kind of quotation marks that it does not hold."""
    mark = "'" if any(one in word for one in DOUBLE_QUOTES) else '"'
    return f"{mark}{word}{mark}"


def _unknown(action: str, word: Word) -> UsageError:
    if action == "requests":
        return _misuse("requests", "“requests” stands alone.")
    return UsageError(
        f"“{word.text[:80]}” is none of add, remove, list, history, requests and help.",
        "/testusers add | remove | list | history | requests | help",
        EXAMPLES["add"],
    )


def _misuse(action: str, sentence: str) -> UsageError:
    return UsageError(sentence, USAGE[action], EXAMPLES[action])


def _only_flow(action: str, words: Sequence[Word]) -> str:
    if not words:
        raise _misuse(action, "Which flow? Name its alias or its SID.")
    if len(words) > 1:
        raise _misuse(action, f"“{words[1].text[:80]}” is one word too many.")
    return words[0].text


@dataclass
class _Options:
    """What the words after the flow said so far."""

    identities: list[str] = field(default_factory=list)
    duration_seconds: int | None = None
    now: bool = False
    reason: str = ""


def _parse_change(kind: ChangeKind, words: Sequence[Word], text: str) -> ChangeRequest:
    if not words:
        raise _misuse(kind, "Which flow, and which identities?")
    _refuse_split_numbers(kind, words[1:], text)
    flow, options = words[0], _Options()
    if flow.keyword in KEYWORDS:
        raise _misuse(kind, f"The flow comes first; “{flow.text}” is not one.")
    remaining = list(words[1:])
    while remaining:
        _take(kind, remaining, options, text)
    if problem := identities_problem(options.identities):
        raise _misuse(kind, problem)
    if options.now and not options.reason:
        raise _misuse(kind, "“now” needs a reason: end with “because <reason>”.")
    return ChangeRequest(
        kind,
        flow.text,
        tuple(options.identities),
        options.duration_seconds,
        options.now,
        options.reason,
    )


def _take(kind: ChangeKind, words: list[Word], options: _Options, text: str) -> None:
    """Take the next word, and what belongs to it."""
    word = words.pop(0)
    if word.keyword == "because":
        options.reason = _reason(kind, rest_of_line(text, word.end))
        words.clear()
    elif word.keyword == "for":
        _take_duration(kind, words, options)
    elif word.keyword == "now":
        options.now = True
    else:
        options.identities.append(_identity(kind, word))


def _take_duration(kind: ChangeKind, words: list[Word], options: _Options) -> None:
    if kind == "remove":
        raise _misuse(
            kind, "“for” belongs to “add”; if it is an identity, put it into quotation marks."
        )
    if options.duration_seconds is not None:
        raise _misuse(kind, "“for” stands there twice.")
    typed = words.pop(0).text if words else ""
    options.duration_seconds = parse_duration(typed)
    if options.duration_seconds is None:
        raise _misuse(kind, duration_problem(typed))


def duration_problem(typed: str) -> str:
    """What is wrong with a duration that was typed."""
    days = MAX_DURATION_SECONDS // 86_400
    what = f"“{typed[:80]}” is not a duration" if typed else "“for” needs a duration"
    return f"{what}: 30m, 2h, 3d and 5s are, up to {days}d."


def _reason(kind: ChangeKind, reason: str) -> str:
    if not reason:
        raise _misuse(kind, "“because” needs a reason after it.")
    if problem := reason_problem(reason):
        raise _misuse(kind, problem)
    return reason


def reason_problem(reason: str) -> str | None:
    """Why the reason cannot be taken, as a sentence; None when it can."""
    if len(reason) > MAX_REASON_CHARS:
        return f"The reason has {len(reason)} characters; at most {MAX_REASON_CHARS} fit."
    if reason and not is_sendable(reason):
        return "The reason holds half a character, which cannot be stored."
    return None


def _refuse_split_numbers(kind: ChangeKind, words: Sequence[Word], text: str) -> None:
    """`+1 (555) 0100`, as phones paste it, is one person and not three."""
    for first, second in pairwise(takewhile(lambda word: word.keyword != "because", words)):
        is_split = _COUNTRY_CODE.fullmatch(first.text) and _AREA_CODE.fullmatch(second.text)
        between = text[first.end : second.end]
        if is_split and not (first.is_quoted or second.is_quoted or "," in between):
            raise _misuse(
                kind,
                f"“{first.text} {second.text}” looks like one number with spaces:"
                " leave the spaces out, or quote it; put a comma between two identities.",
            )


def _identity(kind: ChangeKind, word: Word) -> str:
    if word.opens_quote:
        raise _misuse(kind, f"The quotation mark before “{word.text[1:81]}” is never closed.")
    return word.text
