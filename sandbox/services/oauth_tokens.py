"""Access tokens for the inventory, issued with the refresh token grant in RFC 6749, section 6."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

CLIENT_ID = "demo-client"
CLIENT_SECRET = "demo-client-secret"


def refresh_token(data_center: str) -> str:
    """Return a data center's initial refresh token."""
    return f"demo-refresh-{data_center}"


def self_client_code(data_center: str) -> str:
    """Return the code that can be exchanged once for a data center's refresh token."""
    return f"demo-code-{data_center}"


@dataclass(frozen=True)
class Issued:
    """An access token, its lifetime, and the refresh token that comes with it, if any."""

    access_token: str
    expires_in: int
    refresh_token: str | None


class TokenIssuer:
    """Issues access tokens and remembers them. A test can change any field at any time.

    `rotates`: each use of a refresh token replaces the token, and the old token is refused.
    `refuses_with_200`: as Zoho does, only the response body names the error.
    `gives_refresh_token`: an exchanged code also gives a refresh token.
    `granted` and `refused` count the responses.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._numbers = count(1)
        self._access: dict[str, tuple[str, float]] = {}
        self._replaced: dict[str, str] = {}
        self._revoked: set[str] = set()
        self.lifetime_seconds = 3600
        self.rotates = False
        self.refuses_with_200 = False
        self.gives_refresh_token = True
        self._used_codes: set[str] = set()
        self.granted = 0
        self.refused = 0

    def grant(self, data_centers: tuple[str, ...], token: str) -> Issued | None:
        """Return a new access token for a refresh token's data center, or None to refuse."""
        for data_center in data_centers:
            current = self._replaced.get(data_center, refresh_token(data_center))
            if token == current and token not in self._revoked:
                return self._issue(data_center)
        self.refused += 1
        return None

    def exchange(self, data_centers: tuple[str, ...], code: str) -> tuple[str, Issued] | None:
        """Return a code's data center and its tokens, or None if the code is used or unknown."""
        for data_center in data_centers:
            if code == self_client_code(data_center) and code not in self._used_codes:
                self._used_codes.add(code)
                issued = self._issue(data_center)
                token = refresh_token(data_center) if self.gives_refresh_token else None
                return data_center, Issued(issued.access_token, issued.expires_in, token)
        self.refused += 1
        return None

    def accepts(self, data_center: str, access_token: str) -> bool:
        """Return True for a token that was issued for this data center and has not expired."""
        issued_for, expires_at = self._access.get(access_token, ("", 0.0))
        return issued_for == data_center and self._now() < expires_at

    def revoke_access(self) -> None:
        """Forget every access token. The next call with an old token gets a 401."""
        self._access.clear()

    def revoke_refresh(self, token: str) -> None:
        """Refuse a refresh token from now on."""
        self._revoked.add(token)

    def _issue(self, data_center: str) -> Issued:
        number = next(self._numbers)
        access_token = f"access-{data_center}-{number}"
        self._access[access_token] = (data_center, self._now() + self.lifetime_seconds)
        self.granted += 1
        if not self.rotates:
            return Issued(access_token, self.lifetime_seconds, None)
        self._replaced[data_center] = f"rotated-{data_center}-{number}"
        return Issued(access_token, self.lifetime_seconds, self._replaced[data_center])
