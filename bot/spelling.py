"""Text variants made by phones and programs: quotes, dashes, invisible characters."""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches

DOUBLE_QUOTES = '"\u201c\u201d\u201e\u201f\u00ab\u00bb'
SINGLE_QUOTES = "'\u2018\u2019\u201a\u201b"
LONG_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
# Control characters, halves of surrogate pairs, characters that turn the direction of what follows
# them, and those that nobody sees: what Unicode calls Default_Ignorable, other formats, and a
# pattern of Braille without a dot. A test holds this against all of Unicode.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
# What is seen only by what it does to its neighbours, and what the bot itself shows for the unseen.
_SHAPING = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef\ufffd]")
# What is shown as it is where every character counts: no other one can be taken for it. A backtick
# would end the code span; of several blanks in a row only one is seen.
_EXACT = re.compile(r"[^ -_a-~]|^ | $| (?= )|(?<= ) ")
# What stands for a plain mark: accents that are typed for an apostrophe, and what the bot itself
# shows for a backtick and for angle brackets.
_APOSTROPHES = SINGLE_QUOTES + "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02cb\u2032"
_PLAIN = str.maketrans(
    dict.fromkeys(DOUBLE_QUOTES, '"')
    | dict.fromkeys(_APOSTROPHES, "'")
    | dict.fromkeys(LONG_DASHES, "-")
    | {"\u2039": "<", "\u203a": ">"}
)
# Characters of other alphabets, and with strokes, that are drawn like Latin ones.
_LOOK_ALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u043f\u0433\u0456\u0458\u0455\u04bb\u0501\u051b\u051d"
    "\u04cf\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9\u03b7\u0131\u0142\u00f8\u0111",
    "abekmhopctyxnrijshdqwlaeikvoptuxwnilod",
)
# Similarity of two words: twice their common characters over all characters; 0.86 for "lst" and
# "list".
LIKENESS = 0.6
_BEFORE = re.compile(rf"^(?:{UNSEEN.pattern}|\s)+")
_AFTER = re.compile(rf"{UNSEEN.pattern}|[\s;]")
_NUMBER_DASH = re.compile("(?<=[0-9)])[\u2010\u2011\u2012\u2013\u2212](?=[0-9(])")
_DASHES = re.compile("-{2,}")


def exactly(identity: str) -> str:
    """Return an identity so that different identities never look the same.

    ASCII stays as it is. Characters that are invisible or look like another, which includes all of
    other alphabets, become their code points.

    >>> exactly("chat:\u0430da")
    'chat:⟨U+0430⟩da'
    """
    return _EXACT.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", identity)


def folded(text: str) -> str:
    """Return the text for look-ups: equal for texts that look alike or mean the same.

    Compare folded texts only with each other. Case, accents, quotes, dashes (two equal a long one),
    white space and invisible characters don't count.

    >>> folded("O\u2019Brien \u2014\u00a0Sons") == folded("o'brien -- sons")
    True
    """
    plain = text.translate(_PLAIN)
    if not plain.isascii():
        parts = unicodedata.normalize("NFKD", plain)
        bare = "".join(part for part in parts if not unicodedata.combining(part))
        plain = unicodedata.normalize("NFKC", bare).translate(_PLAIN)
    # White space first: line feeds are control characters too.
    seen = _SHAPING.sub("", UNSEEN.sub("", " ".join(plain.split())))
    return _DASHES.sub("-", " ".join(seen.split())).casefold()


def skeleton(text: str) -> str:
    """Return the text at a hasty glance: folded, with lookalikes as Latin letters.

    Only for suggestions: different names may look alike.

    >>> skeleton("B\u0435CA\u00dcSE")
    'because'
    """
    return folded(text).translate(_LOOK_ALIKES)


def tidy_identity(text: str) -> str:
    """Return an identity without additions by phones, in composed form.

    Removes direction marks and other invisible characters at its ends, non-breaking dashes between
    digits, and a semicolon after it.
    """
    composed = unicodedata.normalize("NFC", text)
    bare = _BEFORE.sub("", composed)
    end = len(bare)
    # Character by character: a pattern ending in `$` would be retried at each of them.
    while end and _AFTER.match(bare, end - 1):
        end -= 1
    return _NUMBER_DASH.sub("-", bare[:end])


def closest(typed: str, known: Iterable[str], count: int = 1) -> list[str]:
    """Return the known words nearest to the typed one, in their own spelling; [] if none is."""
    as_seen = {skeleton(word): word for word in known}
    near = get_close_matches(skeleton(typed), as_seen, count, LIKENESS)
    return [as_seen[key] for key in near]
