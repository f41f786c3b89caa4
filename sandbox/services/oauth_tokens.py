"""Issues access tokens for the inventory, as described in RFC 6749, section 6."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count

CLIENT_ID = "demo-client"
CLIENT_SECRET = "demo-client-secret"


def refresh_token(data_center: str) -> str:
    """Return a data center's initial refresh token."""
    return f"demo-refresh-{data_center}"


def self_client_code(data_center: str) -> str:
    """Return a one-time code that can be exchanged for a data center's refresh token."""
    return f"demo-code-{data_center}"


@dataclass(frozen=True)
class Issued:
    """An access token with its lifetime and, in some cases, a refresh token."""

    access_token: str
    expires_in: int
    refresh_token: str | None


class TokenIssuer:
    """Issues access tokens and remembers them. A test can change any field at any time.

    If `rotates` is True, a refresh token works only once, and the response contains a new refresh
    token. If `refuses_with_200` is True, refusals have status 200, as in Zoho's API. If
    `gives_refresh_token` is True, exchanging a code also returns a refresh token. `granted` counts
    issued tokens, and `refused` counts refused requests.
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
        """Return a new access token, or None if the refresh token is not valid."""
        for data_center in data_centers:
            current = self._replaced.get(data_center, refresh_token(data_center))
            if token == current and token not in self._revoked:
                return self._issue(data_center)
        self.refused += 1
        return None

    def exchange(self, data_centers: tuple[str, ...], code: str) -> tuple[str, Issued] | None:
        """Return the data center and tokens for a code, or None if the code is not valid."""
        for data_center in data_centers:
            if code == self_client_code(data_center) and code not in self._used_codes:
                self._used_codes.add(code)
                issued = self._issue(data_center)
                token = refresh_token(data_center) if self.gives_refresh_token else None
                return data_center, Issued(issued.access_token, issued.expires_in, token)
        self.refused += 1
        return None

    def accepts(self, data_center: str, access_token: str) -> bool:
        """Return True if the token was issued for this data center and has not expired."""
        issued_for, expires_at = self._access.get(access_token, ("", 0.0))
        return issued_for == data_center and self._now() < expires_at

    def revoke_access(self) -> None:
        """Revoke all access tokens, so that calls with old tokens get a 401 response."""
        self._access.clear()

    def revoke_refresh(self, token: str) -> None:
        """Revoke a refresh token."""
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
