"""Ways to add a credential to a request, and access tokens that renew themselves."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from yarl import URL

from bot.ops.clock import Clock
from bot.services.calls import Answer, ServiceCall
from bot.services.errors import (
    CredentialsRefused,
    RotatingRefreshToken,
    ServiceError,
    ServiceRefused,
)
from bot.services.failures import json_of, plain_words, wrong_form
from bot.services.http import ServiceHttp
from bot.settings import OAuthSettings
from bot.tasks import SingleFlight


@dataclass(frozen=True, slots=True)
class Signed:
    """A credential's headers or parameters; never printed."""

    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Credential:
    """A credential for the inventory service; this one is a token that can't be renewed."""

    def __init__(self, signed: Signed) -> None:
        self._signed = signed

    async def sign(self) -> Signed:
        """Return the additions to a request. Raises ServiceError if a token can't be renewed."""
        return self._signed

    async def renewed(self, refused: Signed) -> Signed | None:  # noqa: ARG002 - see OAuthCredential
        """Return a new credential to replace `refused`; None if that is impossible."""
        return None


def authorization(template: str, token: str) -> Mapping[str, str]:
    """Return `Authorization` with the token filled in; other braces are kept."""
    return {"Authorization": template.replace("{token}", token)}


def basic(user: str, password: SecretStr) -> Mapping[str, str]:
    """HTTP Basic (RFC 7617), in UTF-8."""
    pair = f"{user}:{password.get_secret_value()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


def bearer(token: SecretStr) -> Mapping[str, str]:
    """Bearer (RFC 6750)."""
    return {"Authorization": f"Bearer {token.get_secret_value()}"}


# Tokens are renewed this long before expiry, or halfway through a short lifetime.
MARGIN_SECONDS = 60.0
# The pause after a failed renewal, because an unresponsive token URL takes long to fail, and
# retries would prolong a 429. Without a valid token, if a retry may help, the pause is shorter.
PAUSE_SECONDS = 10.0
SHORT_PAUSE_SECONDS = 1.0
# The assumed lifetime if the provider doesn't state one.
ASSUMED_LIFE_SECONDS = 600.0
# Longer lifetimes are not trusted, because some providers state them in milliseconds.
LONGEST_LIFE_SECONDS = 3_600.0
TOKENS_IN_USE = 2
# `invalid_grant` is from the RFC; a provider in use sends the other code, with status 200.
REFUSED_TOKEN = frozenset({"invalid_grant", "invalid_code"})
REFUSED_CLIENT = frozenset({"invalid_client", "unauthorized_client"})


class _Renewal(BaseModel):
    """The token response of RFC 6749, section 5.1; the lifetime is optional."""

    model_config = ConfigDict(strict=True, extra="ignore")

    access_token: SecretStr = Field(min_length=1)
    expires_in: float | None = Field(default=None, strict=False, allow_inf_nan=False)
    refresh_token: SecretStr | None = None


class OAuthCredential(Credential):
    """An access token that renews itself. Its `repr` doesn't show secrets.

    `template` is the format of the header, as for a static token.
    """

    def __init__(
        self,
        http: ServiceHttp,
        clock: Clock,
        data_center: str,
        grant: OAuthSettings,
        template: str = "Bearer {token}",
    ) -> None:
        self._http = http
        self._clock = clock
        self._data_center = data_center
        self._grant = grant
        self._template = template
        # The current token, the time to renew it, and the time when it is certain to have expired.
        self._token: Signed | None = None
        self._renew_at = self._ends_at = 0.0
        self._renewals: SingleFlight[str, Signed] = SingleFlight({})
        self._hidden: list[str] = []
        # The last renewal's failure, and the time of the next permitted attempt.
        self._failure: tuple[ServiceError, float] | None = None

    async def sign(self) -> Signed:
        """Return the header; first renew a token that is about to expire.

        If renewal fails, a token that is still valid is used, unless the provider refused to renew
        it: the token itself may then be invalid.
        """
        token = self._token
        if token is not None and self._clock.monotonic() < self._renew_at:
            return token
        try:
            return await self._renew_once()
        except (CredentialsRefused, RotatingRefreshToken):
            raise
        except ServiceError:
            now = self._clock.monotonic()
            if token is None or now >= self._ends_at:
                raise
            if self._token is token:
                self._renew_at = now + PAUSE_SECONDS
            return token

    async def renewed(self, refused: Signed) -> Signed:
        """Return the header with a newer token than `refused`; renew the token if needed."""
        if self._token is None or self._token is refused:
            return await self._renew_once()
        return self._token

    async def _renew_once(self) -> Signed:
        if self._failure is not None and self._clock.monotonic() < self._failure[1]:
            raise self._failure[0]
        return await self._renewals.get("", self._renew, fresh=True)

    async def _renew(self, _: str) -> Signed:
        asked_at = self._clock.monotonic()
        try:
            renewal = await self._ask()
        except ServiceError as error:
            pause = SHORT_PAUSE_SECONDS if error.retryable else PAUSE_SECONDS
            self._failure = error, self._clock.monotonic() + pause
            raise
        self._failure = None
        token = renewal.access_token.get_secret_value()
        # Redact all tokens in use; a replaced token may still be in transit.
        self._http.redactor.add(token)
        self._hidden = [*(hidden for hidden in self._hidden if hidden != token), token]
        if len(self._hidden) > TOKENS_IN_USE:
            self._http.redactor.forget(self._hidden.pop(0))
        stated = renewal.expires_in or 0
        life = min(stated, LONGEST_LIFE_SECONDS)
        self._ends_at = asked_at + life if 0 < stated == life else float("inf")
        usable = life - min(MARGIN_SECONDS, life / 2) if life > 0 else ASSUMED_LIFE_SECONDS
        self._renew_at = asked_at + usable
        self._token = Signed(headers=authorization(self._template, token))
        return self._token

    async def _ask(self) -> _Renewal:
        grant = self._grant
        call = ServiceCall(
            service="oauth",
            label=f"the OAuth provider ({self._data_center})",
            method="POST",
            url=URL(grant.token_url),
            form=[
                ("grant_type", "refresh_token"),
                ("refresh_token", grant.refresh_token.get_secret_value()),
                ("client_id", grant.client_id),
                ("client_secret", grant.client_secret.get_secret_value()),
            ],
            headers={"Accept": "application/json"},
            data_center=self._data_center,
            words_field="error",
        )
        try:
            return await self._http.request(call, partial(self._renewal_in, call))
        except (ServiceRefused, CredentialsRefused) as refusal:
            said, where = refusal.message, f"for {self._data_center} in INVENTORY_DATA_CENTERS"
            if said in REFUSED_TOKEN:
                sentence = (
                    f"The refresh token {where} was rejected ({said}). It was revoked, has expired,"
                    " or belongs to another client. Create a new one."
                )
            elif said in REFUSED_CLIENT:
                sentence = f"The client_id or client_secret {where} was rejected ({said})."
            else:
                raise
            raise CredentialsRefused("oauth", sentence, message=said) from None

    def _renewal_in(self, call: ServiceCall, answer: Answer) -> _Renewal:
        body = json_of(call, answer)
        if isinstance(body, dict) and isinstance(body.get("error"), str):
            said = plain_words(body["error"], self._http.redactor)
            sentence = f"{call.subject} rejected the request: “{said}”."
            raise ServiceRefused("oauth", sentence, status=answer.status, message=said)
        try:
            renewal = _Renewal.model_validate(body)
        except ValidationError:
            raise wrong_form(call, "no usable access token") from None
        token = renewal.access_token.get_secret_value()
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise wrong_form(call, "an access token that can't be sent")
        if renewal.refresh_token not in (None, self._grant.refresh_token):
            sentence = (
                f"{call.subject} issues a new refresh token each time, which is not supported. Turn"
                " rotation off there, or use an authtoken."
            )
            raise RotatingRefreshToken("oauth", sentence)
        return renewal
