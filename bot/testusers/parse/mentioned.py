"""The identities that a message mentions: phone numbers, `scheme:value` forms, mail addresses."""

import re
from collections.abc import Iterator

from bot.slack.parse.words import recover
from bot.spelling import LONG_DASHES, UNSEEN
from bot.testusers.parse.identities import is_identity, phone_in

MOST_CHARACTERS = 40_000
_LINK = r"(?:https?|ftp|file|slack)://\S+"
_MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
_SCHEME = r"[A-Za-z][A-Za-z0-9+.-]{1,30}:[^\s,;<>\"'()]+"
_DATE = r"\d{4}-\d{2}-\d{2}"
_PHONE = r"\+?\(?\d(?:[ ().\-/\u00a0]{0,2}\d){6,}"
_CANDIDATE = re.compile(
    # An address begins where nothing before it can belong to it: each character is read once.
    rf"(?P<link>{_LINK})|(?<![\w.+-])(?P<mail>(?:mailto:)?{_MAIL})|(?P<date>{_DATE})"
    rf"|(?<!\w)(?P<scheme>{_SCHEME})|(?<![\w.:+])(?P<phone>{_PHONE})(?!\w)"
)
_ENDS = ".,;:!?)]}*_~`"
# A number without its country may be anything that is numbered; the form asks about it.
DIGITS, DIGITS_WITHOUT_PLUS = range(7, 16), range(9, 16)
_DASHES = re.compile(f"[{LONG_DASHES}]")


def mentioned_identities(text: str) -> tuple[str, ...]:
    """Return the identities in a message's text as Slack sends it, each once, in order.

    >>> mentioned_identities("Call +1 555 0100 or write to ada@example.com")
    ('+15550100', 'ada@example.com')
    """
    plain = _DASHES.sub("-", UNSEEN.sub(" ", recover(text[:MOST_CHARACTERS])))
    return tuple(dict.fromkeys(_identities(plain)))


def _identities(text: str) -> Iterator[str]:
    for match in _CANDIDATE.finditer(text):
        kind, found = match.lastgroup, match.group().rstrip(_ENDS)
        if kind == "mail":
            yield found.removeprefix("mailto:")
        elif kind == "phone":
            yield from _phone(found)
        elif kind == "scheme":
            yield from _of_scheme(found)


def _phone(found: str) -> Iterator[str]:
    if number := phone_in(found):
        if len(number) > DIGITS.start:
            yield number
    elif len(digits := re.sub(r"\D", "", found)) in DIGITS_WITHOUT_PLUS:
        yield digits


def _of_scheme(found: str) -> Iterator[str]:
    """Yield `whatsapp:+1555`, but not `Note:this`."""
    scheme, _, value = found.partition(":")
    if scheme.casefold() == "tel":
        yield from _phone(value)
    elif is_identity(found) and (scheme.islower() or re.search(r"[\d@]", value)):
        yield found
