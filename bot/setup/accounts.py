"""The calls that setup makes to get refresh tokens, organizations and flows."""

from typing import TypeVar

from pydantic import BaseModel, SecretStr
from yarl import URL

from bot.app import gatehouse
from bot.checks.database import database, prepare, usable_database
from bot.ops.clock import SystemClock
from bot.ops.redaction import Redactor
from bot.organizations.rules import DataCenterReport
from bot.services.calls import CallCause, ServiceCall
from bot.services.credentials import basic
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ServiceError,
    ServiceRefused,
    model_in,
)
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings
from bot.setup.answers import DataCenterAnswer, SetupError

REFUSED_CLIENT = frozenset({"invalid_client", "invalid_client_secret", "unauthorized_client"})
MOST_FLOWS = 200


class _Tokens(BaseModel):
    error: str | None = None
    refresh_token: str | None = None


class _Flow(BaseModel):
    sid: str
    friendly_name: str = ""


class _Flows(BaseModel):
    flows: list[_Flow]


Model = TypeVar("Model", bound=BaseModel)


async def _call(call: ServiceCall, model: type[Model], *secrets: str) -> Model:
    async with open_session() as session:
        http = ServiceHttp(session, Redactor(secrets), lambda _: None, SystemClock())
        return await http.request(call, lambda body: model_in(call, body, model))


async def refresh_token_of(data_center: str, answer: DataCenterAnswer, token_url: str) -> str:
    """Exchange a single-use code for a refresh token."""
    client_secret, code = answer.client_secret or "", answer.code or ""
    call = ServiceCall(
        service="oauth",
        label=f"the OAuth provider ({data_center})",
        method="POST",
        url=URL(token_url),
        form=[
            ("grant_type", "authorization_code"),
            ("client_id", answer.client_id or ""),
            ("client_secret", client_secret),
            ("code", code),
        ],
        headers={"Accept": "application/json"},
        data_center=data_center,
        words_fields=("error",),
    )
    try:
        tokens = await _call(call, _Tokens, client_secret, code)
    except (ServiceRefused, CredentialsRefused) as error:
        tokens = _Tokens(error=error.message or "no reason was given")
    except ServiceError as error:
        raise SetupError(f"{error.sentence} Check token_url and the data center.") from None
    if tokens.refresh_token:
        return tokens.refresh_token
    problem = (
        "no refresh token was returned for the code, so access would end within an hour. Create"
        " the code in a self client, or request offline access for it."
    )
    if tokens.error:
        refused = "client_id or client_secret" if tokens.error in REFUSED_CLIENT else "code"
        problem = (
            f"{refused} was rejected ({tokens.error[:80]}). The client ID, client secret and code"
            " must come from this data center's self client. A code works only once, and expires"
            " after three minutes unless you chose a longer time."
        )
    raise SetupError(f"{data_center}: {problem}")


async def listings(settings: Settings) -> list[DataCenterReport]:
    """Return a report per data center, or an empty list if the database can't be used.

    Setup creates no database file before the last question.
    """
    with usable_database(settings) as (usable, problems):
        async with gatehouse(usable) as bot:
            found = problems or await prepare(bot.database) or await database(bot.health.parts)
            if not found[0].is_well:
                return []
            directory = await bot.inventory.directory.directory(CallCause("check"))
            return list(directory.reports)


async def flows_of(base_url: str, account_sid: str, auth_token: str) -> dict[str, str]:
    """Return flow names keyed by SID, or {} if the account isn't allowed to list flows."""
    call = ServiceCall(
        service="flow",
        label="the flow service",
        method="GET",
        url=(URL(base_url) / "v2" / "Flows").with_query(PageSize=MOST_FLOWS),
        headers=basic(account_sid, SecretStr(auth_token)),
        advice={401: "Copy the account SID and the auth token from the console again."},
    )
    try:
        listed = await _call(call, _Flows, auth_token)
    except PermissionMissing:
        return {}
    except ServiceError as error:
        raise SetupError(error.sentence) from None
    return {flow.sid: flow.friendly_name for flow in listed.flows}
