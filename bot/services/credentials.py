"""Credentials for requests to services, including OAuth access tokens that renew automatically."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial

from cachetools import TTLCache
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from yarl import URL

from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.services.calls import ServiceCall
from bot.services.errors import (
    CredentialsRefused,
    ProviderThrottled,
    RateLimited,
    RotatingRefreshToken,
    ServiceError,
    ServiceRefused,
    code_and_words,
    model_in,
)
from bot.services.http import ServiceHttp
from bot.settings.model import DATA_CENTERS, OAuthSettings
from bot.tasks import Flights


@dataclass(frozen=True)
class Signed:
    """A token, and the headers or query parameters that contain it. The `repr` shows nothing."""

    token: str = field(repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Credential:
    """A fixed credential for the inventory service. Only an `OAuthCredential` can be renewed."""

    def __init__(self, signed: Signed) -> None:
        self._signed = signed

    async def sign(self) -> Signed:
        """Return the headers or parameters for a request. Raise ServiceError if a renewal fails."""
        return self._signed

    async def renewed(self, refused: Signed) -> Signed | None:  # noqa: ARG002 - see OAuthCredential
        """Return a new credential after a refusal, or None if the credential can't be renewed."""
        return None


def authorization(template: str, token: str, name: str = "Authorization") -> Mapping[str, str]:
    """Return a header that has the template as its value, with the token in place of `{token}`."""
    return {name: template.replace("{token}", token)}


def basic(user: str, password: SecretStr) -> Mapping[str, str]:
    """Return an `Authorization` header for HTTP Basic (RFC 7617), encoded in UTF-8."""
    pair = f"{user}:{password.get_secret_value()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


BEARER = "Bearer {token}"
"""The template of an `Authorization` header with a bearer token (RFC 6750)."""
# Tokens are renewed this long before they expire. A short lifetime is used nearly to its end,
# because providers limit the number of tokens.
MARGIN_SECONDS = 60.0
# The pause after a failed renewal. Without it, people would wait again for a token URL that doesn't
# respond, and retries would prolong a 429. The pause is shorter after a temporary failure.
PAUSE_SECONDS = 10.0
SHORT_PAUSE_SECONDS = 1.0
# The lifetime to assume if the provider doesn't state one.
ASSUMED_LIFE_SECONDS = 660.0
# Longer lifetimes aren't trusted, because some providers state them in milliseconds.
LONGEST_LIFE_SECONDS = 3_600.0
TOKENS_IN_USE = 2
OAUTH_WORDS = ("error", "error_description")
# `invalid_grant` is in the RFC. At least one provider sends `invalid_code` with status 200 instead.
REFUSED = {
    "invalid_grant": "refresh token",
    "invalid_code": "refresh token",
    "invalid_client": "client_id or client_secret",
    "unauthorized_client": "client_id or client_secret",
    "invalid_client_secret": "client_secret",
}
# A throttled provider is asked again after a pause that doubles up to this.
LONGEST_PAUSE_SECONDS = 900.0
# At least one provider says "Access Denied" if too many tokens were requested.
THROTTLED = ("too many", "access denied", "slow_down")
# The renewals after a 401 in ten minutes. A 401 may concern a single resource, which no new token
# changes, and providers limit the number of tokens (one provider to ten in ten minutes).
RENEWALS_AFTER_401 = 2
RENEWALS_WINDOW_SECONDS = 600.0


class Tokens(BaseModel):
    """A token response (RFC 6749, section 5.1). The lifetime is optional."""

    model_config = ConfigDict(strict=True, extra="ignore")

    # Printable ASCII, because the token goes into a header.
    access_token: str = Field(pattern=r"^[!-~]+$", repr=False)
    expires_in: float | None = Field(default=None, strict=False, allow_inf_nan=False, ge=0)
    refresh_token: str | None = Field(default=None, repr=False)


def token_call(data_center: str, grant: OAuthSettings, grant_type: str, key: str) -> ServiceCall:
    """Return the call for tokens (RFC 6749). `key` is the form field for the refresh token."""
    return ServiceCall(
        service="oauth",
        label=f"the OAuth provider ({data_center})",
        method="POST",
        url=URL(grant.token_url),
        form=[
            ("grant_type", grant_type),
            (key, grant.refresh_token.get_secret_value()),
            ("client_id", grant.client_id),
            ("client_secret", grant.client_secret.get_secret_value()),
        ],
        headers={"Accept": "application/json"},
        data_center=data_center,
        words_fields=OAUTH_WORDS,
    )


def tokens_in(call: ServiceCall, redactor: Redactor, body: bytes) -> Tokens:
    """Return the tokens in a response, or raise ServiceError. A refusal can have status 200."""
    _, said = code_and_words(call, body, redactor)
    if said:
        sentence = f"{call.subject} rejected the request: “{said}”."
        raise call.explain(ServiceRefused("oauth", sentence, message=said))
    return model_in(call, body, Tokens)


@dataclass(eq=False, repr=False)
class OAuthCredential(Credential):
    """An OAuth access token that is renewed before it expires.

    `template` is the value of the header called `header`, with `{token}` in place of the token.
    """

    http: ServiceHttp
    clock: Clock
    data_center: str
    grant: OAuthSettings
    template: str = BEARER
    header: str = "Authorization"

    def __post_init__(self) -> None:
        # The current token, the time to renew it, and the time when it expires.
        self._token: Signed | None = None
        self._renew_at = self._ends_at = 0.0
        self._renewals: Flights[str, Signed] = Flights()
        self._hidden: list[str] = []
        # The error from the last renewal, and the earliest time to try again.
        self._failure: tuple[ServiceError, float] | None = None
        self._throttled_in_a_row = 0
        # The tokens that were renewed after a 401.
        self._refused: TTLCache[str, bool] = TTLCache(
            RENEWALS_AFTER_401, RENEWALS_WINDOW_SECONDS, self.clock.monotonic
        )

    async def sign(self) -> Signed:
        """Return the `Authorization` header. Renew the token first if it's about to expire.

        If the renewal fails, the old token is used until it expires. But if the provider rejects
        the renewal, the error is raised, because the old token may be invalid too.
        """
        token = self._token
        if token is not None and self.clock.monotonic() < self._renew_at:
            return token
        try:
            return await self._renew_once()
        except (CredentialsRefused, RotatingRefreshToken):
            raise
        except ServiceError:
            now = self.clock.monotonic()
            if token is None or now >= self._ends_at:
                raise
            if self._token is token:
                self._renew_at = now + PAUSE_SECONDS
            return token

    async def renewed(self, refused: Signed) -> Signed | None:
        """Return the header with a token newer than `refused`. Renew the token if necessary.

        Return None if tokens were renewed after a 401 several times in the last ten minutes.
        """
        if self._token is not None and self._token is not refused:
            return self._token
        if refused.token not in self._refused:
            if len(self._refused) == RENEWALS_AFTER_401:
                return None
            self._refused[refused.token] = True
        return await self._renew_once()

    async def _renew_once(self) -> Signed:
        if self._failure is not None:
            error, until = self._failure
            if self.clock.monotonic() < until:
                # Otherwise, the error would keep everything alive that each caller was doing.
                raise error.with_traceback(None)
        return await asyncio.shield(self._renewals.start("", self._renew))

    async def _renew(self) -> Signed:
        asked_at = self.clock.monotonic()
        call = token_call(self.data_center, self.grant, "refresh_token", "refresh_token")
        call = replace(call, explain=self._explained)
        try:
            renewal = await self.http.request(call, partial(self._renewal_in, call))
        except ServiceError as error:
            pause = SHORT_PAUSE_SECONDS if error.is_passing else PAUSE_SECONDS
            if isinstance(error, ProviderThrottled):
                pause = min(LONGEST_PAUSE_SECONDS, PAUSE_SECONDS * 2.0**self._throttled_in_a_row)
                pause = max(pause, error.retry_after)
                self._throttled_in_a_row += 1
                when = self.clock.now() + timedelta(seconds=pause)
                error.sentence = (
                    f"The OAuth provider ({self.data_center}) is receiving too many requests for"
                    f" access tokens. Please try again at {when:%H:%M} UTC."
                )
            self._failure = error, self.clock.monotonic() + pause
            raise
        self._failure = None
        self._throttled_in_a_row = 0
        token = renewal.access_token
        # Keep redacting the previous token, because a call may still be using it.
        self.http.redactor.add(token)
        self._hidden = [*(hidden for hidden in self._hidden if hidden != token), token]
        if len(self._hidden) > TOKENS_IN_USE:
            self.http.redactor.forget(self._hidden.pop(0))
        life = min(renewal.expires_in or ASSUMED_LIFE_SECONDS, LONGEST_LIFE_SECONDS)
        self._ends_at = asked_at + life
        self._renew_at = self._ends_at - min(MARGIN_SECONDS, life / 8)
        self._token = Signed(token, headers=authorization(self.template, token, self.header))
        return self._token

    def _explained(self, failure: ServiceError) -> ServiceError:
        """Return the error for a refusal by the provider, whatever its HTTP status is."""
        said = failure.message
        error = said.partition(": ")[0].casefold()
        is_throttled = any(word in said.casefold() for word in THROTTLED)
        if isinstance(failure, RateLimited) or is_throttled:
            return ProviderThrottled("oauth", said, retry_after=failure.retry_after)
        if error not in REFUSED:
            return failure
        setting = "INVENTORY_DATA_CENTERS" if self.data_center in DATA_CENTERS else "APIS"
        sentence = (
            f"The {REFUSED[error]} for {self.data_center} in {setting} was rejected"
            f" ({said}). It was revoked, has expired, or belongs to another client or data center."
            f" Check that token_url is that of {self.data_center}, or create new credentials at the"
            " provider."
        )
        return CredentialsRefused("oauth", sentence, message=said)

    def _renewal_in(self, call: ServiceCall, body: bytes) -> Tokens:
        renewal = tokens_in(call, self.http.redactor, body)
        if renewal.refresh_token not in (None, "", self.grant.refresh_token.get_secret_value()):
            sentence = (
                f"{call.subject} issues a new refresh token at each renewal, which Gatehouse"
                " doesn't support. Turn off token rotation at the provider, or use an authtoken."
            )
            raise RotatingRefreshToken("oauth", sentence)
        return renewal
