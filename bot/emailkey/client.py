"""The email service, of which only the authentication is specified: a request tests the key."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Literal

from pydantic import SecretStr
from yarl import URL

from bot.emailkey.rules import EmailTemplates, templates_in
from bot.services.calls import Answer, ServiceCall
from bot.services.credentials import basic, bearer
from bot.services.failures import json_of
from bot.services.http import ServiceHttp

# "username is always the literal apikey" (specification, area A, authentication, 3).
BASIC_USER = "apikey"
# SendGrid lists legacy templates only, unless told otherwise; other services ignore the parameter.
GENERATIONS = {"generations": "legacy,dynamic"}
EmailAuth = Literal["bearer", "basic"]


class EmailClient:
    """Calls the email service with an API key, as Bearer or as Basic with the user `apikey`."""

    def __init__(
        self, http: ServiceHttp, base_url: URL, api_key: SecretStr, auth: EmailAuth = "bearer"
    ) -> None:
        self._http = http
        self._base_url = base_url
        self._auth = auth
        self._headers = bearer(api_key) if auth == "bearer" else basic(BASIC_USER, api_key)

    @property
    def auth(self) -> EmailAuth:
        """Return the form in which the key is sent."""
        return self._auth

    async def check(self, resource: str) -> None:
        """Return normally if the key may read `/v3/<resource>`.

        Raises CredentialsRefused (wrong or deleted), PermissionMissing (lacks this permission), or
        another ServiceError.
        """
        await self._get(resource)

    async def templates(self) -> EmailTemplates:
        """Return the listing of templates, as far as its format is known. Raises a ServiceError."""
        return templates_in(await self._get("templates"))

    async def _get(self, resource: str) -> object:
        call = ServiceCall(
            service="email",
            label="the email service",
            method="GET",
            url=self._base_url.joinpath("v3", *resource.split("/")),
            params=GENERATIONS if resource == "templates" else {},
            headers={**self._headers, "Content-Type": "application/json"},
            advice=self._advice(resource),
        )
        return await self._http.request(call, partial(_body_in, call))

    def _advice(self, resource: str) -> Mapping[int, str]:
        refused = (
            "The key is wrong or was deleted. Create a new one in the settings section of the"
            " account's console (signing in takes a phone: the code comes by SMS) and set"
            " EMAIL_API_KEY."
        )
        lacking = f"Give the key read access to “{resource}”, or use another key."
        if self._auth == "basic":
            limits = (
                " Or Basic auth isn't accepted (e.g. with two-factor authentication). Then set"
                " EMAIL_AUTH=bearer."
            )
            refused, lacking = refused + limits, lacking + limits
        unknown = f"There is probably no resource “{resource}”."
        return {
            HTTPStatus.UNAUTHORIZED: refused,
            HTTPStatus.FORBIDDEN: lacking,
            HTTPStatus.NOT_FOUND: unknown,
        }


def _body_in(call: ServiceCall, answer: Answer) -> object:
    return json_of(call, answer) if answer.body.strip() else None
