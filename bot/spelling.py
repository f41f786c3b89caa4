"""Normalizes and compares text that contains typographic or invisible characters."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeVar

from rapidfuzz import fuzz, process

Key = TypeVar("Key")

DOUBLE_QUOTES = '"\u201c\u201d\u201e\u201f\u00ab\u00bb'
SINGLE_QUOTES = "'\u2018\u2019\u201a\u201b"
LONG_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
# Control characters, surrogates, characters that change the text direction, and invisible
# characters (Default_Ignorable in Unicode, other format characters, and the blank Braille
# pattern). A test compares this pattern with all of Unicode.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u2800\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e00ff\U000e01f0-\U000e0fff]"
)
# Characters that only affect how neighboring characters look.
_SHAPING = re.compile("[\u200c\u200d\ufe00-\ufe0f\U000e0100-\U000e01ef]")
# The character that the bot shows for invisible characters.
_REPLACEMENT = "\ufffd"
# Characters that `exactly` replaces: non-ASCII and control characters, backticks (which would end
# the code span), and spaces at either end or next to another space.
_EXACT = re.compile(r"[^ -_a-~]|^ | $| (?= )|(?<= ) ")
# Characters that are treated as plain ASCII characters: accents typed as apostrophes, and the
# characters that the bot shows in place of backticks and angle brackets.
_APOSTROPHES = SINGLE_QUOTES + "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02cb\u2032"
_PLAIN = str.maketrans(
    dict.fromkeys(DOUBLE_QUOTES, '"')
    | dict.fromkeys(_APOSTROPHES, "'")
    | dict.fromkeys(LONG_DASHES, "-")
    | {"\u2039": "<", "\u203a": ">"}
)
# The usual minimum similarity of two words, which is twice the number of common characters divided
# by the total number of characters. For example, the similarity of "lst" and "list" is 0.86.
LIKENESS = 0.6
# At the ends of a text, joiners have nothing to join.
_BEFORE = re.compile(rf"^(?:{UNSEEN.pattern}|[\u200c\u200d\s])+")
_AFTER = re.compile(rf"{UNSEEN.pattern}|[\u200c\u200d\s;]")
_DASHES = re.compile("-{2,}")


def exactly(identity: str) -> str:
    """Return an identity in a form that makes different identities look different.

    Invisible characters and characters that could look like others, including all non-ASCII
    letters, are replaced by their code points.

    >>> exactly("chat:\u0430da")
    'chat:⟨U+0430⟩da'
    """
    return _EXACT.sub(lambda match: f"⟨U+{ord(match.group()):04X}⟩", identity)


def folded(text: str) -> str:
    """Return the text in a form for lookups that ignore differences in spelling.

    Compare folded text only with other folded text. Folding removes differences in case, accents,
    whitespace, invisible characters, and types of quotes and dashes (`--` counts as a dash).

    >>> folded("O\u2019Brien \u2014\u00a0Sons") == folded("o'brien -- sons")
    True
    """
    plain = text.translate(_PLAIN)
    if not plain.isascii():
        parts = unicodedata.normalize("NFKD", plain)
        bare = "".join(part for part in parts if not unicodedata.combining(part))
        plain = unicodedata.normalize("NFKC", bare).translate(_PLAIN)
    # Replace white space first, because line feeds are also control characters.
    seen = visible(" ".join(plain.split())).replace(_REPLACEMENT, "")
    return _DASHES.sub("-", " ".join(seen.split())).casefold()


def visible(text: str) -> str:
    """Return the text without characters that can't be seen."""
    return _SHAPING.sub("", UNSEEN.sub("", text))


def one_line(text: str) -> str:
    """Return the text on one line, or an empty string if nothing in it can be seen."""
    return " ".join(text.split()) if visible(text).strip() else ""


def tidy_identity(text: str) -> str:
    """Return an identity in Unicode NFC, without the characters that phones add.

    Remove whitespace and invisible characters at both ends, and semicolons at the end.
    """
    composed = unicodedata.normalize("NFC", text)
    bare = _BEFORE.sub("", composed)
    end = len(bare)
    # Avoid a pattern that ends in `$`, which would be retried at every character.
    while end and _AFTER.match(bare, end - 1):
        end -= 1
    return bare[:end]


def closest(
    typed: str, known: Iterable[str], count: int = 1, likeness: float = LIKENESS
) -> list[str]:
    """Return up to `count` words from `known` that are similar to `typed`, closest first."""
    return most_alike(folded(typed), {word: folded(word) for word in known}, count, likeness)


def most_alike(
    typed: str, known: Mapping[Key, str], count: int, likeness: float = LIKENESS
) -> list[Key]:
    """Return the keys of up to `count` texts that are similar to `typed`, closest first."""
    near = process.extract(
        typed, known, scorer=fuzz.ratio, score_cutoff=100 * likeness, limit=count
    )
    return [key for _, _, key in near]
