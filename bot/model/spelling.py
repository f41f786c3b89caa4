"""What phones and programs make of the same letters: quotes, dashes, and characters nobody sees."""

import re
import unicodedata

DOUBLE_QUOTES = '"\u201c\u201d\u201e\u201f\u00ab\u00bb'
SINGLE_QUOTES = "'\u2018\u2019\u201a\u201b"
LONG_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
# Control characters, halves of surrogate pairs, characters that turn the direction of what follows
# them, and those that nobody sees.
UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff"
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0001]"
)
# What is seen only by what it does to its neighbours, and what the bot itself shows for the unseen.
_SHAPING = re.compile("[\u200c\u200d\ufe00-\ufe0f\ufffd]")
# What stands for a plain mark: accents that are typed for an apostrophe, and what the bot itself
# shows for a backtick and for angle brackets.
_APOSTROPHES = SINGLE_QUOTES + "`\u00b4\u02b9\u02bb\u02bc\u02bd\u02cb\u2032"
_PLAIN = str.maketrans(
    dict.fromkeys(DOUBLE_QUOTES, '"')
    | dict.fromkeys(_APOSTROPHES, "'")
    | dict.fromkeys(LONG_DASHES, "-")
    | {"\u2039": "<", "\u203a": ">"}
)
_DASHES = re.compile("-{2,}")


def folded(text: str) -> str:
    """Return the text as it is looked up: what looks alike, or was meant to be, is the same.

    Of two texts only what is folded may be compared: neither case counts, nor what a phone makes of
    quotes, dashes (two are one long dash) and white space, nor what nobody sees.

    >>> folded("O\u2019Brien \u2014\u00a0Sons") == folded("o'brien -- sons")
    True
    """
    plain = text.translate(_PLAIN)
    if not plain.isascii():
        plain = unicodedata.normalize("NFKC", plain).translate(_PLAIN)
    # White space first: a line feed is a control character too.
    seen = _SHAPING.sub("", UNSEEN.sub("", " ".join(plain.split())))
    return _DASHES.sub("-", " ".join(seen.split())).casefold()
