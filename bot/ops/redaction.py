"""Removes configured secrets from any text, as the last line of defence."""

import base64
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

HIDDEN = "[secret]"
# Shorter ones would match everywhere and protect nothing.
SHORTEST = 4


class Redactor:
    """Knows this process's secrets, including access tokens obtained later.

    Each is found literally, URL-escaped, and in Base64 after any user name given with it (HTTP
    Basic). Its `repr` shows none.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms_of: dict[str, set[str]] = {}
        self._forms: tuple[str, ...] = ()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str, *, basic_user: str | None = None) -> None:
        """Hide `secret` from now on; with `basic_user`, also the pair in Base64."""
        if len(secret) < SHORTEST:
            return
        forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
        if basic_user is not None:
            pair = f"{basic_user}:{secret}".encode()
            forms.add(base64.b64encode(pair).decode())
        self._forms_of.setdefault(secret, set()).update(forms)
        self._sort()

    def forget(self, secret: str) -> None:
        """Stop looking for an expired secret."""
        self._forms_of.pop(secret, None)
        self._sort()

    def _sort(self) -> None:
        """Put the longest first: a secret may be part of another."""
        known = set[str]().union(*self._forms_of.values())
        self._forms = tuple(sorted(known, key=len, reverse=True))

    def clean(self, text: str) -> str:
        """Return `text` with `[secret]` in place of each secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text
