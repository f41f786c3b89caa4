"""Removes secrets from text and escapes control characters, as a last line of defense."""

import base64
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

HIDDEN = "[secret]"
# Shorter secrets would match ordinary text.
SHORTEST = 4


class Redactor:
    """Removes secrets from text: configured secrets, and access tokens obtained later.

    Each secret is removed in plain text, in URL encoding and, if a username is given, in Base64
    for HTTP Basic. The `repr` of this class doesn't show secrets.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms_of: dict[str, set[str]] = {}
        self._forms: tuple[str, ...] = ()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str, *, basic_user: str | None = None) -> None:
        """Start removing `secret`. With `basic_user`, also remove `basic_user:secret` in Base64."""
        if len(secret) < SHORTEST:
            return
        forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
        if basic_user is not None:
            pair = f"{basic_user}:{secret}".encode()
            forms.add(base64.b64encode(pair).decode())
        self._forms_of.setdefault(secret, set()).update(forms)
        self._sort()

    def forget(self, secret: str) -> None:
        """Stop removing an expired secret."""
        self._forms_of.pop(secret, None)
        self._sort()

    def _sort(self) -> None:
        """Sort all forms by length, longest first, because a secret can contain another secret."""
        known = set[str]().union(*self._forms_of.values())
        self._forms = tuple(sorted(known, key=len, reverse=True))

    def clean(self, text: str) -> str:
        """Return `text` with each secret replaced by `[secret]`."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text


def on_one_line(text: str) -> str:
    r"""Return text for a terminal, with control and invisible characters escaped.

    >>> on_one_line("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
