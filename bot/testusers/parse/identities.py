"""The shape of an identity. The command and the form question every other word."""

import re

from bot.testusers.parse.requests import KEYWORDS

MOST_DIGITS = 15
_IDENTITY = re.compile(
    rf"\+[0-9]{{1,{MOST_DIGITS}}}"
    rf"|(?!(?:{'|'.join(sorted(KEYWORDS))}):)[a-z][a-z0-9+.-]*:\S+"
    r"|[^\s@:,;]+@[^\s@,;]+\.[^\s@,;]+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\+|00|\(\+)[0-9()./\s-]+")


def is_identity(text: str) -> bool:
    """Return True for `+` and up to 15 digits, `scheme:value`, or an e-mail address.

    >>> [is_identity(typed) for typed in ("+15550142", "+1 555 0142", "ada", "ada@example.com")]
    [True, False, False, True]
    """
    return _IDENTITY.fullmatch(text) is not None


def phone_in(text: str) -> str:
    """Return the number without the separators between its digits; "" if it isn't a number.

    >>> phone_in("+49 (0) 170 555-0142")
    '+491705550142'
    """
    if not _NUMBER.fullmatch(text):
        return ""
    digits = re.sub("[^0-9]", "", text.replace("(0)", ""))
    digits = digits if "+" in text else digits.removeprefix("00")
    return f"+{digits}" if 0 < len(digits) <= MOST_DIGITS else ""


def question(typed: str, meant: str = "") -> str:
    """Return the question about a word or a line that does not look like an identity."""
    guess = f" Did you mean “{meant}”?" if meant else ""
    return (
        f"“{typed[:80]}” doesn't look like a phone number (+ and digits), an e-mail address or a"
        f" chat address (whatsapp:+15550100).{guess} To keep it as it is, put it in quotes."
    )
