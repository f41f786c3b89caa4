"""Takes configured secrets out of any text, as the last line of defence."""

import base64
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

HIDDEN = "[secret]"
# Shorter ones would take half of every text with them, and guard nothing.
SHORTEST = 4


class Redactor:
    """Knows the secrets of this process; those that come later (access tokens) are added.

    Each is found as it is, in a URL's escapes, and in Base64 after any user name given with it
    (HTTP Basic). Its `repr` shows none.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms_of: dict[str, set[str]] = {}
        self._forms: tuple[str, ...] = ()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str, *, basic_user: str | None = None) -> None:
        """From now on `secret` is hidden; with `basic_user` the pair in Base64 too."""
        if len(secret) < SHORTEST:
            return
        forms = {secret, quote(secret), quote(secret, safe=""), quote_plus(secret)}
        if basic_user is not None:
            pair = f"{basic_user}:{secret}".encode()
            forms.add(base64.b64encode(pair).decode())
        self._forms_of.setdefault(secret, set()).update(forms)
        self._sort()

    def forget(self, secret: str) -> None:
        """A secret that ended need not be looked for any more."""
        self._forms_of.pop(secret, None)
        self._sort()

    def _sort(self) -> None:
        """The longest first: a secret may be a part of another one."""
        known = set[str]().union(*self._forms_of.values())
        self._forms = tuple(sorted(known, key=len, reverse=True))

    def clean(self, text: str) -> str:
        """`text`, with `[secret]` in place of each secret."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        return text
