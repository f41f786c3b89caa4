"""The calls that setup makes to get refresh tokens and flows, and to try answers."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from pydantic import BaseModel, SecretStr
from yarl import URL

from bot.app import gatehouse
from bot.checks.database import prepare, usable_database
from bot.checks.findings import CheckParts
from bot.ops.clock import SystemClock
from bot.ops.redaction import Redactor
from bot.services.calls import ServiceCall
from bot.services.credentials import basic, token_call
from bot.services.errors import (
    CredentialsRefused,
    ServiceError,
    ServiceRefused,
    model_in,
)
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings, SettingsError
from bot.settings.model import OAuthSettings, secrets_in

MOST_FLOWS = 200


class _Tokens(BaseModel):
    error: str | None = None
    refresh_token: str | None = None


class _Flow(BaseModel):
    sid: str
    friendly_name: str = ""


class _Flows(BaseModel):
    flows: list[_Flow]


Result = TypeVar("Result")


async def tried(settings: Settings, check: Callable[[CheckParts], Awaitable[Result]]) -> Result:
    """Return the result of a check. It creates no database file."""
    with usable_database(settings) as (usable, _):
        async with gatehouse(usable) as bot:
            await prepare(bot.database)
            return await check(bot.health.parts)


async def refresh_token_of(data_center: str, oauth: OAuthSettings) -> str:
    """Exchange a single-use code, which stands for the refresh token, for the refresh token."""
    call = token_call(data_center, oauth, "authorization_code", "code")
    try:
        async with open_session() as session:
            http = ServiceHttp(session, Redactor(secrets_in(oauth)), lambda _: None, SystemClock())
            tokens = await http.request(call, lambda body: model_in(call, body, _Tokens))
    except (ServiceRefused, CredentialsRefused) as error:
        tokens = _Tokens(error=error.message.partition(": ")[0] or "no reason was given")
    except ServiceError as error:
        problem = f"{error.sentence} Check token_url and the data center."
        raise SettingsError([problem]) from None
    if tokens.refresh_token:
        return tokens.refresh_token
    problem = (
        "no refresh token was returned for the code, so access would end within an hour. Create"
        " the code in a self client, or request offline access for it."
    )
    if tokens.error:
        refused = "client_id or client_secret" if "client" in tokens.error else "code"
        problem = (
            f"{refused} was rejected ({tokens.error[:80]}). The client ID, client secret and code"
            " must come from this data center's self client. A code works only once, and expires"
            " after three minutes unless you chose a longer time."
        )
    raise SettingsError([f"{data_center}: {problem}"])


async def flows_of(parts: CheckParts) -> dict[str, str]:
    """Return flow names keyed by SID, or {} if the account can't list its flows."""
    settings = parts.settings
    call = ServiceCall(
        service="flow",
        label="the flow service",
        method="GET",
        url=(URL(settings.flow_base_url or "") / "v2" / "Flows").with_query(PageSize=MOST_FLOWS),
        headers=basic(settings.flow_account_sid or "", settings.flow_auth_token or SecretStr("")),
    )
    try:
        listed = await parts.http.request(call, lambda body: model_in(call, body, _Flows))
    except ServiceError:
        return {}
    return {flow.sid: flow.friendly_name for flow in listed.flows}
