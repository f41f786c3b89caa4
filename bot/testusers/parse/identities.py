"""Identities as people type them in commands, forms and direct messages.

An identity is a phone number, an email address, a `scheme:value`, or anything in quotes. Any
other word is refused, however it was sent.
"""

import re
from collections.abc import Sequence

from bot.flows.rules import identities_problem
from bot.slack.parse import Word, escaped, read_words, recover
from bot.spelling import DOUBLE_QUOTES, LONG_DASHES, SINGLE_QUOTES, folded, tidy_identity

KEYWORDS = frozenset({"for", "until", "now", "because"})
PRESET = re.compile(r"@([A-Za-z0-9][A-Za-z0-9._-]{0,39})")
MOST_DIGITS = 15
# Stands for a character that was lost or can't be seen.
REPLACEMENT = "\ufffd"
LOST = f"“{REPLACEMENT}” stands for a character that was lost. Please retype it."
# The number of words, and of characters of each word, that an error names.
WORDS_NAMED = 10
NAME_CHARACTERS = 80
_LETTER = r"[^\W_]"
# The local part is an RFC 5322 dot-atom that begins with a letter or a digit, without the marks
# that Slack uses for formatting (`*`, `~` and backticks). An address can contain non-ASCII letters.
_ATOM = r"[\w!#$%&'+/=?^-]+"
_LABEL = rf"{_LETTER}(?:[\w-]*{_LETTER})?"
_EMAIL = re.compile(rf"{_LETTER}(?:{_ATOM})?(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})+")
_PHONE = re.compile(rf"\+[0-9]{{1,{MOST_DIGITS}}}")
_CHAT = re.compile(rf"[a-z][a-z0-9+.-]*:([^\s;{DOUBLE_QUOTES}]+)", re.IGNORECASE)
# The addresses of web pages, mailboxes and telephones look like chat addresses.
_NO_CHAT = re.compile(
    rf"(?:{'|'.join(sorted(KEYWORDS))}"
    r"|(?:\S*:)?(?:https?|wss?|s?ftps?|file|slack|www|mailto|(?:e-?)?mail|mms|smsto|sms|tel|mob"
    r"|telephone|phone|mobile|cell(?:phone)?|facetime(?:-audio)?|callto|fax)\.?):"
    # An address with a port, such as `example.com:8080/home`.
    r"|(?:localhost|(?=[^\s:]*\.)[^\s:]*):[0-9]",
    re.IGNORECASE,
)
_GAP = rf"(?:[^\S\r\n]|[().{LONG_DASHES}/-])*+"
# A number that may have gaps, on one line.
_NUMBER = re.compile(rf"(?:[a-z][a-z0-9+.-]*:)?{_GAP}\+?(?:{_GAP}\d)+[^\w\s,]*", re.IGNORECASE)
_LIST_NUMBER = re.compile(r"[0-9]{1,3}[.)]")
# Phones replace typewriter apostrophes inside words.
_APOSTROPHE = re.compile(rf"(?<={_LETTER})[{SINGLE_QUOTES}](?={_LETTER})")


def is_identity(text: str) -> bool:
    """Return True for `+` followed by up to 15 digits, a `scheme:value`, or an email address.

    A number behind a scheme also has a `+` and only digits.

    >>> [is_identity(typed) for typed in ("+15550142", "+1 555 0142", "ada", "ada@example.com")]
    [True, False, False, True]
    """
    if _PHONE.fullmatch(text) or _EMAIL.fullmatch(text):
        return True
    chat = _CHAT.fullmatch(text)
    if chat is None or _NO_CHAT.match(text) or "://" in text:
        return False
    value = chat.group(1)
    is_number = value.startswith("+") and "@" not in value
    is_name = not is_number and any(map(str.isalpha, value))
    return is_name or _PHONE.fullmatch(value) is not None


def is_person(word: Word) -> bool:
    """Return True if the word is an identity or the name of a preset."""
    return _identity_in(word) is not None or _preset_in(word) is not None


def _identity_in(word: Word) -> str | None:
    if word.is_quoted:
        return word.text
    typed = tidy_identity(word.text)
    plain = _APOSTROPHE.sub("'", typed)
    return typed if is_identity(typed) else plain if _EMAIL.fullmatch(plain) else None


def _preset_in(word: Word) -> str | None:
    preset = None if word.is_quoted else PRESET.fullmatch(folded(word.text))
    return preset.group(1) if preset else None


def people_in(words: Sequence[Word], text: str) -> list[Word]:
    """Return the words of `text` that stand for people, with each phone number as one word.

    The marks of a list (words without a letter or a digit, and numbers such as `1.` before a word)
    are left out.
    """
    people, at = list[Word](), 0
    while at < len(words):
        word, number = words[at], _NUMBER.match(text, words[at].start)
        is_mark = not (word.is_quoted or any(map(str.isalnum, word.text)))
        first, at = at, at + 1
        if number and ("+" in word.text or not is_mark):
            while at < len(words) and words[at].end <= number.end():
                at += 1
        if at > first + 1:
            end = words[at - 1].end
            people.append(Word(recover(text[word.start : end]), False, word.start, end))
            continue
        is_mark |= at < len(words) and _LIST_NUMBER.fullmatch(word.text) is not None
        if word.is_quoted or not is_mark:
            people.append(word)
    return people


def lines_of(words: Sequence[Word], text: str) -> tuple[str, ...]:
    """Return the people in these words of `text` as the lines of a form, exactly as typed."""
    return tuple(recover(text[one.start : one.end]) for one in people_in(words, text))


def read_lines(lines: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Return the identities and presets on these lines, and a sentence about what is wrong, if any.

    Each line is one identity or preset. This is the one place that decides what an identity is: for
    forms, commands, direct messages, presets and programs. Characters that phones add are removed,
    except in quotation marks.
    """
    identities, presets, odd, problems = list[str](), list[str](), list[str](), list[str]()
    for line in lines:
        typed, strangers = escaped(line), list[str]()
        words = people_in(read_words(typed, commas=True), typed)
        for word in words:
            if preset := _preset_in(word):
                presets.append(preset)
            elif (identity := _identity_in(word)) is not None:
                identities.append(identity)
            else:
                strangers.append(tidy_identity(word.text) or word.text)
        if len(words) > 1 and len(strangers) == len(words):
            strangers = [line]
        elif len(words) > 1 and not problems:
            start = line.strip()[:NAME_CHARACTERS]
            problems.append(f"Each identity needs a line of its own: “{start}”.")
        odd += strangers
    if odd:
        problems.append(_unclear(odd))
    elif REPLACEMENT in "".join(lines):
        problems.append(LOST)
    elif not problems and (identities or not presets):
        problems.append(identities_problem(identities) or "")
    return tuple(identities), tuple(dict.fromkeys(presets)), " ".join(problems)


def _unclear(odd: Sequence[str]) -> str:
    names = [f"“{' '.join(typed.split())[:NAME_CHARACTERS]}”" for typed in odd]
    if len(names) > WORDS_NAMED:
        names[WORDS_NAMED:] = [f"{len(names) - WORDS_NAMED} more words"]
    *first, last = names
    what = f"{', '.join(first)} and {last} don't" if first else f"{last} doesn't"
    return (
        f"{what} look like a phone number (+15550142, without blanks), an email address or a chat"
        " address (whatsapp:+15550142). To use a word as it is, put it in quotes."
    )
