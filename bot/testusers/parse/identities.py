"""The format of an identity, and the identities that a message mentions.

The command and the form ask about every word in another format.
"""

import re
from collections.abc import Iterator

from bot.slack.parse import recover
from bot.spelling import LONG_DASHES, UNSEEN

KEYWORDS = frozenset({"for", "from", "until", "now", "because"})
MOST_DIGITS = 15
_IDENTITY = re.compile(
    rf"\+[0-9]{{1,{MOST_DIGITS}}}"
    rf"|(?!(?:{'|'.join(sorted(KEYWORDS))}):)[a-z][a-z0-9+.-]*:\S+"
    r"|[^\s@:,;]+@[^\s@,;]+\.[^\s@,;]+",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\+|00|\(\+)[0-9()./\s-]+")

MOST_CHARACTERS = 40_000
_LINK = r"(?:https?|ftp|file|slack)://\S+"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s,;<>\"'()]+"
_DATE = r"\d{4}-\d{2}-\d{2}"
_PHONE = r"\+?\(?\d(?:[ ().\-/\u00a0]{0,2}\d){6,}"
_CANDIDATE = re.compile(
    # An address begins where no earlier character can belong to it, so each character is read once.
    rf"(?P<link>{_LINK})|(?<![\w.+-])(?P<mail>(?:mailto:)?{_MAIL})|(?P<date>{_DATE})"
    rf"|(?<!\w)(?P<scheme>{_SCHEME})|(?<![\w.:+])(?P<phone>{_PHONE})(?!\w)"
)
_ENDS = ".,;:!?)]}*_~`"
# A number without a country code may not be a phone number, so the form asks about it.
DIGITS, DIGITS_WITHOUT_PLUS = range(7, 16), range(9, 16)
_DASHES = re.compile(f"[{LONG_DASHES}]")


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
    """Return the question about a word or line that doesn't look like an identity."""
    guess = f" Did you mean “{meant}”?" if meant else ""
    return (
        f"“{typed[:80]}” doesn't look like a phone number (+ and digits), an e-mail address or a"
        f" chat address (whatsapp:+15550100).{guess} To keep it as it is, put it in quotes."
    )


def mentioned_identities(text: str) -> tuple[str, ...]:
    """Return the identities in a message's text as Slack sends it, each once, in order.

    >>> mentioned_identities("Call +1 555 0100 or write to ada@example.com")
    ('+15550100', 'ada@example.com')
    """
    plain = _DASHES.sub("-", UNSEEN.sub(" ", recover(text[:MOST_CHARACTERS])))
    return tuple(dict.fromkeys(_mentioned(plain)))


def _mentioned(text: str) -> Iterator[str]:
    for match in _CANDIDATE.finditer(text):
        kind, found = match.lastgroup, match.group().rstrip(_ENDS)
        scheme, _, value = found.partition(":")
        if kind == "mail":
            yield found.removeprefix("mailto:")
        elif kind == "phone":
            yield from _phone(found)
        elif kind == "scheme" and scheme.casefold() == "tel":
            yield from _phone(value)
        # `whatsapp:+1555`, but not `Note:this`.
        elif kind == "scheme" and (scheme.islower() or re.search(r"[\d@]", value)):
            yield from [found] if is_identity(found) else []


def _phone(found: str) -> Iterator[str]:
    if number := phone_in(found):
        if len(number) > DIGITS.start:
            yield number
    elif len(digits := re.sub(r"\D", "", found)) in DIGITS_WITHOUT_PLUS:
        yield digits
