"""`/testusers add` and `remove`: the words after the flow."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile

from bot.approvals.rules.durations import MOST_PARTS, parse_duration
from bot.approvals.rules.times import When, parse_when
from bot.errors import Meant, UsageError
from bot.slack.parse.words import Word, rest_of_line
from bot.spelling import DOUBLE_QUOTES, closest, folded, skeleton, tidy_identity
from bot.testusers.parse.identities import is_identity, phone_in, question
from bot.testusers.parse.requests import KEYWORDS, ChangeKind, ChangeRequest, misuse
from bot.testusers.rules.changes import (
    MAX_REASON_CHARS,
    identities_problem,
    is_flow_sid,
    is_sendable,
)

PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
FLOWS_OFFERED = 5
LABEL_CHARACTERS = 50
TIME_EXAMPLES = "18:00, friday, tomorrow 9:00 or 2026-12-01 09:00"
# What people type for a keyword, where it is spelled otherwise.
SYNONYMS = {"bc": "because", "since": "because", "reason": "because", "at": "from", "till": "until"}
# The first and a further part of a number with spaces in it, as phones paste it.
_FIRST_PART = re.compile(r"\+?[0-9(][0-9()./-]*")
_NEXT_PART = re.compile(r"[0-9()./-]*[0-9][0-9()./-]*")


@dataclass(frozen=True)
class Typed:
    """The command around the words that name people.

    Attributes:
        text: The whole command.
        aliases: The short names of flows.
        flow: The word in the place of the flow; None where there is no such place.
        has_presets: Whether a preset names people too.
    """

    text: str
    aliases: Collection[str] = ()
    flow: Word | None = None
    has_presets: bool = False


@dataclass
class _Options:
    """The options read so far from the words after the flow."""

    people: list[Word] = field(default_factory=list)
    presets: list[str] = field(default_factory=list)
    duration_seconds: int | None = None
    start: When | None = None
    until: When | None = None
    now: bool = False
    reason: str = ""


def parse_change(
    kind: ChangeKind, words: Sequence[Word], text: str, aliases: Collection[str]
) -> ChangeRequest:
    """Return the change that the words after `add` or `remove` ask for.

    `text` is the whole command, `aliases` are the short names of flows.

    `text` is the whole command, `aliases` are the short names of flows.

    Raises:
        UsageError: They are not understood, or one of them does not look like an identity.
    """
    if not words:
        raise misuse(kind, "Which flow, and who? Put the flow first, then phone numbers or IDs.")
    if words[0].keyword in KEYWORDS:
        raise misuse(kind, f"Put the flow first, e.g. {kind} welcome …")
    options, left = _Options(), list(words[1:])
    while left:
        _take(kind, left, options, text)
    identities = people(kind, options.people, Typed(text, aliases, words[0], bool(options.presets)))
    if options.now and not options.reason:
        raise misuse("now", "“now” needs a reason. Add “because …” at the end.")
    if options.now and options.start:
        raise misuse(kind, "“now” and “from” don't go together: leave one of them out.")
    if options.duration_seconds and options.until:
        raise misuse(kind, "“for” and “until” don't go together: leave one of them out.")
    return ChangeRequest(
        kind,
        words[0].text,
        identities,
        options.duration_seconds,
        options.now,
        options.reason,
        tuple(dict.fromkeys(options.presets)),
        options.start,
        options.until,
    )


def people(action: str, words: Sequence[Word], typed: Typed) -> tuple[str, ...]:
    """Return the identities that were typed, without the characters that phones add.

    Raises:
        UsageError: An identity is invalid, or a word does not look like an identity.
    """
    tidied = [word if word.is_quoted else replace(word, text=tidied_word(word)) for word in words]
    for word in tidied:
        if word.opens_quote:
            raise misuse(action, f"The quote before “{word.text[1:81]}” isn't closed.")
    named = list(_with_whole_numbers(tidied, typed.text))
    odd = [word for word in named if not (word.is_quoted or is_identity(word.text))]
    if odd:
        raise _doubt(action, odd, typed)
    identities = tuple(word.text for word in named)
    if not identities and typed.has_presets:
        return ()
    if not identities and typed.flow and is_identity(typed.flow.text):
        place = typed.flow
        flows = (
            _Guess(place, place, f"{alias} {place.text}").meant(typed.text, alias)
            for alias in sorted(typed.aliases)[:FLOWS_OFFERED]
        )
        raise misuse(action, "Which flow? Put it first.").or_rather(*flows)
    if problem := identities_problem(identities):
        raise misuse(action, problem, has_right_form=bool(identities))
    return identities


def _with_whole_numbers(words: Sequence[Word], text: str) -> Iterator[Word]:
    """Yield the words, with the parts of a number typed with spaces joined."""
    number: Word | None = None
    for word in words:
        is_next = (
            number is not None
            and not word.is_quoted
            and text[number.end : word.start].isspace()
            and _NEXT_PART.fullmatch(word.text)
            and not _with_unit(word, text)
        )
        if number is not None and is_next:
            number = Word(f"{number.text} {word.text}", False, number.start, word.end)
            continue
        if number is not None:
            yield number
        number = word if not word.is_quoted and _FIRST_PART.fullmatch(word.text) else None
        if number is None:
            yield word
    if number is not None:
        yield number


@dataclass(frozen=True, slots=True)
class _Guess:
    """The likely meaning of the words from `first` to `last`."""

    first: Word
    last: Word
    words: str

    def meant(self, text: str, label: str = "") -> Meant:
        changed = f"{text[: self.first.start]}{self.words}{text[self.last.end :]}"
        return Meant(text.strip(), changed.strip(), label or f"Yes, {self.words}")


def _doubt(action: str, odd: Sequence[Word], typed: Typed) -> UsageError:
    """Return the question about words that do not look like identities."""
    guesses = list(_guesses(odd[0], typed))
    words = "” or “".join(guess.words for guess in guesses)
    sentence = _flow_sentence(odd[0], typed) or question(odd[0].text, words)
    meant = [guess.meant(typed.text) for guess in guesses]
    if typed.flow is None or not is_identity(typed.flow.text):
        meant.append(_as_typed(odd, typed.text))
    return misuse(action, sentence, has_right_form=True).or_rather(*meant)


def _guesses(word: Word, typed: Typed) -> Iterator[_Guess]:
    """Yield the likely meanings of a word that does not look like an identity."""
    if number := phone_in(word.text):
        yield _Guess(word, word, number)
    elif parse_duration(word.text) is not None:
        yield _Guess(word, word, f"for {word.text}")
    elif unit := _with_unit(word, typed.text):
        yield _Guess(word, unit, f"for {unit.text}")
    elif parse_when([word.text]):
        yield _Guess(word, word, f"until {word.text}")
        yield _Guess(word, word, f"from {word.text}")
    elif flows := closest(word.text, typed.aliases):
        if typed.flow and not _has_flow(typed):
            people = typed.text[typed.flow.start : word.start].strip()
            yield _Guess(typed.flow, word, f"{flows[0]} {people}")
    elif keywords := _near_keywords(word.text):
        yield from (_Guess(word, word, keyword) for keyword in keywords)
    elif word.text.isalpha():
        yield _Guess(word, word, f"because {word.text}")


def _with_unit(word: Word, text: str) -> Word | None:
    """Return the word and the unit after it, if they are a duration: `2 h`."""
    unit = re.match(r"\s+([A-Za-z]+)", text[word.end :])
    if unit is None or parse_duration(typed := f"{word.text} {unit[1]}") is None:
        return None
    return replace(word, text=typed, end=word.end + unit.end())


def _near_keywords(typed: str) -> list[str]:
    synonym = SYNONYMS.get(folded(typed))
    return [synonym] if synonym else closest(typed, sorted(KEYWORDS), 2)


def _has_flow(typed: Typed) -> bool:
    seen = skeleton(typed.flow.text) if typed.flow else ""
    is_sid = typed.flow is not None and is_flow_sid(typed.flow.text)
    return is_sid or seen in map(skeleton, typed.aliases)


def _flow_sentence(word: Word, typed: Typed) -> str:
    """Return the error for a flow among the people; "" for any other word."""
    if not is_flow_sid(word.text) and skeleton(word.text) not in map(skeleton, typed.aliases):
        return ""
    if typed.flow is None:
        rule = "A preset only names people."
    else:
        rule = "One request changes one flow." if _has_flow(typed) else "Put the flow first."
    return f"“{word.text[:80]}” is a flow. {rule}"


def _as_typed(odd: Sequence[Word], text: str) -> Meant:
    """Return the command with every odd word in quotes."""
    changed = text
    for word in reversed(odd):
        inside = text[word.start : word.end]
        mark = "'" if any(quote in inside for quote in DOUBLE_QUOTES) else '"'
        changed = f"{changed[: word.start]}{mark}{inside}{mark}{changed[word.end :]}"
    names = ", ".join(f"“{word.text}”" for word in odd)
    label = f"Keep {names} as typed" if len(names) <= LABEL_CHARACTERS else "Keep them as typed"
    return Meant(text.strip(), changed.strip(), label)


def tidied_word(word: Word) -> str:
    """Return an unquoted identity without the characters that phones add; a lone mark stays."""
    return tidy_identity(word.text) or word.text


def _take(kind: ChangeKind, words: list[Word], options: _Options, text: str) -> None:
    """Take the next word, and the words that belong to it."""
    word = words.pop(0)
    if word.keyword == "because":
        options.reason = _reason(kind, rest_of_line(text, word.end))
        words.clear()
    elif word.keyword == "for":
        _refuse(kind, "for", options.duration_seconds)
        options.duration_seconds = _duration(kind, words)
    elif word.keyword == "from":
        _refuse(kind, "from", options.start)
        options.start = _when(kind, "from", words)
    elif word.keyword == "until":
        _refuse(kind, "until", options.until)
        options.until = _when(kind, "until", words)
    elif word.keyword == "now":
        options.now = True
    elif not word.is_quoted and (preset := PRESET.fullmatch(folded(tidied_word(word)))):
        options.presets.append(preset.group(1))
    else:
        options.people.append(word)


def _refuse(kind: ChangeKind, keyword: str, given: object) -> None:
    if kind == "remove":
        raise misuse(
            kind,
            f"“{keyword}” only works with “add”."
            f" If “{keyword}” is really someone's ID, put it in quotes.",
        )
    if given is not None:
        raise misuse(kind, f"You used “{keyword}” twice.")


def _duration(kind: ChangeKind, words: list[Word]) -> int:
    typed = [tidied_word(word) for word in takewhile(_is_plain, words[: 2 * MOST_PARTS])]
    for count in range(len(typed), 0, -1):
        seconds = parse_duration(" ".join(typed[:count]))
        if seconds is not None:
            del words[:count]
            return seconds
    # A number and its unit, or one word.
    unread = " ".join(typed[: 2 if typed and typed[0].isdigit() else 1])
    raise misuse(kind, duration_problem(unread or (words[0].text if words else "")))


def _when(kind: ChangeKind, keyword: str, words: list[Word]) -> When:
    typed = [tidied_word(word) for word in takewhile(_is_plain, words)]
    found = parse_when(typed)
    if found is None:
        raise misuse(kind, time_problem(keyword, " ".join(typed[:2])))
    del words[: found[1]]
    return found[0]


def _is_plain(word: Word) -> bool:
    return not word.is_quoted and word.keyword not in KEYWORDS


def duration_problem(typed: str) -> str:
    """Return the error in a duration."""
    if not typed:
        return "Add a duration after “for”, e.g. 30m, 2h or 3d."
    return f"I can't read “{typed[:80]}” as a duration. Try 30m, 2h or 3d."


def time_problem(keyword: str, typed: str) -> str:
    """Return the error in the time after `from` or `until`."""
    if not typed:
        return f"Add a time after “{keyword}”, e.g. {TIME_EXAMPLES}."
    return f"I can't read “{typed[:80]}” as a time. Try {TIME_EXAMPLES}."


def _reason(kind: ChangeKind, reason: str) -> str:
    if not reason:
        raise misuse(kind, "Add a reason after “because”.")
    if problem := reason_problem(reason):
        raise misuse(kind, problem, has_right_form=True)
    return reason


def reason_problem(reason: str) -> str | None:
    """Return a sentence that explains why the reason is refused; None if it is accepted."""
    if len(reason) > MAX_REASON_CHARS:
        return f"The reason is too long ({len(reason)} of {MAX_REASON_CHARS} characters)."
    if reason and not is_sendable(reason):
        return "The reason contains a character I can't store. Please retype it."
    return None
