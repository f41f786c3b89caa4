"""`/testusers add` and `remove`: what stands after the flow."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile

from bot.errors import Meant
from bot.model.durations import MOST_PARTS, is_like_a_unit, parse_duration
from bot.model.spelling import folded, tidy_identity
from bot.model.start_times import StartTime, is_like_a_start, parse_start
from bot.model.testusers.changes import MAX_REASON_CHARS, identities_problem, is_sendable
from bot.parsing.testusers_doubts import Doubt, Known, doubt
from bot.parsing.testusers_requests import KEYWORDS, ChangeKind, ChangeRequest, misuse
from bot.parsing.words import Word, rest_of_line

PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
# What begins a number that goes on after a space: "+49", "(555)", "0170".
_FIRST_PART = re.compile(r"\+[0-9]{1,3}|\+?[0-9]*\([0-9]+\)|0[0-9]{1,4}")
_SHORT_NUMBER = re.compile(r"[0-9]{1,4}")
# "am" or "pm" with two characters too many.
LONGEST_HALF = 4
_NEXT_PART = re.compile(r"\([0-9]{1,5}\)|[0-9]{2,8}(?:-[0-9]+)*")


@dataclass
class _Options:
    """What the words after the flow said so far."""

    people: list[Word] = field(default_factory=list)
    late: list[int] = field(default_factory=list)
    follows_people: bool = False
    presets: list[str] = field(default_factory=list)
    duration_seconds: int | None = None
    start: StartTime | None = None
    now: bool = False
    reason: str = ""

    def end_people(self) -> None:
        """Note that whoever was named until here are probably all."""
        self.follows_people = self.follows_people or bool(self.people or self.presets)


def parse_change(
    kind: ChangeKind, words: Sequence[Word], text: str, aliases: Collection[str]
) -> ChangeRequest:
    """The change that the words after `add` or `remove` ask for.

    `text` is the whole command, `aliases` are the short names of flows.

    Raises:
        UsageError: They are not understood, or one of them is probably no person.
    """
    if not words:
        raise misuse(kind, "Which flow, and who? Put the flow first, then phone numbers or IDs.")
    if words[0].keyword in KEYWORDS:
        raise misuse(kind, f"Put the flow first, e.g. {kind} welcome …")
    _refuse_split_numbers(kind, words[1:], text)
    options = _options(kind, list(words[1:]), text)
    known = Known(text, aliases, words[0], bool(options.presets), options.late)
    identities = people(kind, options.people, known)
    if options.now and not options.reason:
        raise misuse("now", "“now” needs a reason. Add “because …” at the end.")
    if options.now and options.start:
        raise misuse(kind, "“now” and “from” don't go together: leave one of them out.")
    return ChangeRequest(
        kind,
        words[0].text,
        identities,
        options.duration_seconds,
        options.now,
        options.reason,
        tuple(dict.fromkeys(options.presets)),
        options.start,
    )


def people(action: str, words: Sequence[Word], known: Known) -> tuple[str, ...]:
    """The identities that were typed, without what phones put around them.

    Raises:
        UsageError: Something is wrong with one, or it is probably none.
    """
    tidied = [word if word.is_quoted else replace(word, text=tidied_word(word)) for word in words]
    for word in tidied:
        if word.opens_quote:
            raise misuse(action, f"The quote before “{word.text[1:81]}” isn't closed.")
    if found := doubt(tidied, known):
        raise misuse(action, found.question).or_rather(*_meant(found, known.text))
    identities = tuple(word.text for word in tidied)
    if not identities and known.has_presets:
        return ()
    if problem := identities_problem(identities):
        raise misuse(action, problem, has_right_form=bool(identities))
    return identities


def _meant(found: Doubt, text: str) -> Iterator[Meant]:
    if found.instead:
        yield Meant(text.strip(), found.mended(text).strip(), f"Yes, {found.instead}")


def tidied_word(word: Word) -> str:
    """An unquoted identity; a mark alone stays what it is."""
    return tidy_identity(word.text) or word.text


def _options(kind: ChangeKind, words: list[Word], text: str) -> _Options:
    options = _Options()
    while words:
        _take(kind, words, options, text)
    return options


def _take(kind: ChangeKind, words: list[Word], options: _Options, text: str) -> None:
    """Take the next word, and what belongs to it."""
    word = words.pop(0)
    if word.keyword == "because":
        options.reason = _reason(kind, rest_of_line(text, word.end))
        words.clear()
    elif word.keyword == "for":
        options.end_people()
        _take_duration(kind, words, options)
    elif word.keyword == "from":
        options.end_people()
        _take_start(kind, words, options)
    elif word.keyword == "now":
        options.end_people()
        options.now = True
    elif not word.is_quoted and (preset := PRESET.fullmatch(folded(tidied_word(word)))):
        options.presets.append(preset.group(1))
        options.end_people()
    else:
        if options.follows_people:
            options.late.append(word.start)
        options.people.append(word)


def _take_duration(kind: ChangeKind, words: list[Word], options: _Options) -> None:
    if kind == "remove":
        raise misuse(kind, "“for” only works with add. If it is a test user, put it in quotes.")
    if options.duration_seconds is not None:
        raise misuse(kind, "You used “for” twice.")
    typed = [tidied_word(word) for word in takewhile(_is_plain, words[: 2 * MOST_PARTS])]
    for count in range(len(typed), 0, -1):
        options.duration_seconds = parse_duration(" ".join(typed[:count]))
        if options.duration_seconds is not None:
            del words[:count]
            _refuse_rest(kind, typed[:count], words, duration_problem, _is_of_duration)
            return
    raise misuse(kind, duration_problem(_unread(typed) or (words[0].text if words else "")))


def _unread(typed: Sequence[str]) -> str:
    """What probably was to be a duration: a number and its unit, or one word."""
    return " ".join(typed[: 2 if typed and typed[0].isdigit() else 1])


def _take_start(kind: ChangeKind, words: list[Word], options: _Options) -> None:
    if kind == "remove":
        raise misuse(kind, "“from” only works with add. If it is a test user, put it in quotes.")
    if options.start is not None:
        raise misuse(kind, "You used “from” twice.")
    typed = [tidied_word(word) for word in takewhile(_is_plain, words)]
    found = parse_start(typed)
    if found is None:
        raise misuse(kind, start_problem(" ".join(typed[:2])))
    options.start = found[0]
    del words[: found[1]]
    _refuse_rest(kind, typed[: found[1]], words, start_problem, _is_of_start)


def _refuse_rest(
    kind: ChangeKind,
    taken: Sequence[str],
    words: Sequence[Word],
    problem: Callable[[str], str],
    belongs: Callable[[str], bool],
) -> None:
    """Refuse what comes after an option and probably belongs to it: the `ours` of `2h ours`."""
    rest = tidied_word(words[0]) if words and _is_plain(words[0]) else ""
    if belongs(rest.casefold()):
        question = problem(" ".join((*taken, rest)))
        raise misuse(kind, f"{question} If “{rest[:80]}” is a test user, put it in quotes.")


def _is_of_duration(rest: str) -> bool:
    return _SHORT_NUMBER.fullmatch(rest) is not None or is_like_a_unit(rest)


def _is_of_start(rest: str) -> bool:
    is_half = len(rest) <= LONGEST_HALF and not {*rest}.isdisjoint("apm")
    return is_half or _SHORT_NUMBER.fullmatch(rest) is not None or is_like_a_start(rest)


def _is_plain(word: Word) -> bool:
    return not word.is_quoted and word.keyword not in KEYWORDS


def duration_problem(typed: str) -> str:
    """What is wrong with a duration that was typed."""
    if not typed:
        return "Add a duration after “for”, e.g. 30m, 2h or 3d."
    return f"I can't read “{typed[:80]}” as a duration. Try 30m, 2h or 3d."


def start_problem(typed: str) -> str:
    """What is wrong with a start time that was typed."""
    example = "9:00, tomorrow 9:00 or 2026-12-01 09:00"
    if not typed:
        return f"Add a time after “from”, e.g. {example}."
    return f"I can't read “{typed[:80]}” as a time. Try {example}."


def _reason(kind: ChangeKind, reason: str) -> str:
    if not reason:
        raise misuse(kind, "Add a reason after “because”.")
    if problem := reason_problem(reason):
        raise misuse(kind, problem, has_right_form=True)
    return reason


def reason_problem(reason: str) -> str | None:
    """Why the reason cannot be taken, as a sentence; None when it can."""
    if len(reason) > MAX_REASON_CHARS:
        return f"The reason is too long ({len(reason)} of {MAX_REASON_CHARS} characters)."
    if reason and not is_sendable(reason):
        return "The reason contains a character I can't store. Please retype it."
    return None


def _refuse_split_numbers(kind: ChangeKind, words: Sequence[Word], text: str) -> None:
    """`+1 (555) 0100`, as phones paste it, is one person and not three."""
    for first, second in pairwise(takewhile(lambda word: word.keyword != "because", words)):
        start, rest = tidied_word(first), tidied_word(second)
        is_split = _FIRST_PART.fullmatch(start) and _NEXT_PART.fullmatch(rest)
        between = text[first.end : second.end]
        if is_split and not (first.is_quoted or second.is_quoted or "," in between):
            raise misuse(
                kind,
                f"“{start} {rest}” looks like one number."
                " Type it without spaces, or put a comma between two people.",
            )
