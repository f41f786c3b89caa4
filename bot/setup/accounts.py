"""The calls that setup makes to the services, for tokens, organizations, and flows."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory

from pydantic import BaseModel, ConfigDict, SecretStr
from yarl import URL

from bot.app import gatehouse
from bot.checks.database import examine_database, prepare
from bot.ops.clock import SystemClock
from bot.ops.redaction import Redactor
from bot.organizations.rules import Organization
from bot.quotas.rules.limits import DaySource, Plan, limits_of
from bot.services.calls import Answer, CallCause, Observed, ServiceCall
from bot.services.credentials import basic
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ServiceError,
    ServiceRefused,
)
from bot.services.failures import json_of, model_of
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings
from bot.setup.answers import DataCenterAnswer, SetupError
from bot.store.engine import Database

REFUSED_CODE = frozenset({"invalid_code", "invalid_grant"})
REFUSED_CLIENT = frozenset({"invalid_client", "invalid_client_secret", "unauthorized_client"})
API_DOMAIN = re.compile(r"https://www\.zohoapis\.([a-z.]+)")
MOST_FLOWS = 200


@dataclass(frozen=True, slots=True)
class Listed:
    """A data center's organizations, or the `problem` with listing them.

    `day_limit` is the daily limit, if the service reported it.
    """

    organizations: Sequence[Organization] = ()
    day_limit: int | None = None
    problem: str = ""

    @property
    def default(self) -> Organization | None:
        """Return the organization that listings name by default."""
        rows = self.organizations
        return next((row for row in rows if row.is_default_org), rows[0] if rows else None)

    @property
    def plan(self) -> Plan | None:
        """Return the plan whose documented daily limit equals the reported limit."""
        return next((plan for plan in Plan if limits_of(plan).day == self.day_limit), None)


class _Tokens(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    error: str | None = None
    refresh_token: str | None = None
    api_domain: str = ""


class _Flow(BaseModel):
    sid: str
    friendly_name: str = ""


class _Flows(BaseModel):
    flows: list[_Flow]


async def refresh_token_of(data_center: str, answer: DataCenterAnswer, token_url: str) -> str:
    """Exchange a single-use code for a refresh token."""
    form = {
        "grant_type": "authorization_code",
        "client_id": answer.client_id or "",
        "client_secret": answer.client_secret or "",
        "code": answer.code or "",
    }
    call = ServiceCall(
        service="oauth",
        label=f"the OAuth provider ({data_center})",
        method="POST",
        url=URL(token_url),
        form=list(form.items()),
        headers={"Accept": "application/json"},
        data_center=data_center,
        words_field="error",
    )
    try:
        async with _http(form["client_secret"], form["code"]) as http:
            tokens = await http.request(call, partial(_tokens_in, call))
    except (ServiceRefused, CredentialsRefused) as error:
        tokens = _Tokens(error=error.message or "no reason was given")
    except ServiceError as error:
        raise SetupError(f"{error.sentence} Check token_url and the data center.") from None
    return _token(data_center, tokens)


def _token(data_center: str, tokens: _Tokens) -> str:
    domain = API_DOMAIN.fullmatch(tokens.api_domain)
    if tokens.error in REFUSED_CODE:
        problem = (
            f"code was rejected ({tokens.error}). A code works once, with the client and in the"
            " data center it was created for, and for three minutes unless you chose longer. Create"
            " a new code."
        )
    elif tokens.error in REFUSED_CLIENT:
        problem = (
            f"client_id or client_secret was rejected ({tokens.error}). Copy both from the self"
            f" client in the API console of this data center ({data_center})."
        )
    elif tokens.error:
        problem = f"code was not exchanged: the OAuth provider said {tokens.error[:80]}."
    elif domain and domain[1] != data_center:
        problem = f"The code is for the data center {domain[1]}, not {data_center}."
    elif not tokens.refresh_token:
        problem = (
            "no refresh token was returned for code, so access would end within an hour. Create"
            " the code in a self client or with offline access."
        )
    else:
        return tokens.refresh_token
    raise SetupError(f"{data_center}: {problem}")


async def listings(settings: Settings) -> dict[str, Listed]:
    """List each data center's organizations; return an empty result without a database.

    A database file is not created, because setup writes nothing before the last question.
    """
    with TemporaryDirectory() as folder:
        if Database(settings.database_url.get_secret_value(), SystemClock()).is_absent:
            scratch = SecretStr(f"sqlite:///{folder}/gatehouse.db")
            settings = settings.model_copy(update={"database_url": scratch})
        return await _listings(settings)


async def _listings(settings: Settings) -> dict[str, Listed]:
    async with gatehouse(settings) as bot:
        await prepare(bot.database)
        if not (await examine_database(bot.database)).is_well:
            return {}
        directory = await bot.directory.directory(CallCause("check"), fresh=True)
        limits = {
            standing.key.data_center: standing.day.limit
            for standing in await bot.ratelimits.standings()
            if standing.day.source is DaySource.REPORTED
        }
    found = {}
    for report in directory.reports:
        name, rows = report.data_center, report.listing.organizations if report.listing else ()
        found[name] = Listed(rows, limits.get(name), report.failure or "")
    return found


async def flows_of(base_url: str, account_sid: str, auth_token: str) -> dict[str, str]:
    """Return each flow's name by SID; empty if the account may not list flows."""
    token = SecretStr(auth_token)
    call = ServiceCall(
        service="flow",
        label="the flow service",
        method="GET",
        url=(URL(base_url) / "v2" / "Flows").with_query(PageSize=MOST_FLOWS),
        headers=basic(account_sid, token),
        advice={401: "Copy the account SID and the auth token from the console again."},
    )
    try:
        async with _http(auth_token) as http:
            listed = await http.request(call, partial(_flows_in, call))
    except PermissionMissing:
        return {}
    except ServiceError as error:
        raise SetupError(error.sentence) from None
    return {flow.sid: flow.friendly_name for flow in listed.flows}


def _tokens_in(call: ServiceCall, answer: Answer) -> _Tokens:
    return model_of(call, json_of(call, answer), _Tokens)


def _flows_in(call: ServiceCall, answer: Answer) -> _Flows:
    return model_of(call, json_of(call, answer), _Flows)


@asynccontextmanager
async def _http(*secrets: str) -> AsyncIterator[ServiceHttp]:
    async with open_session() as session:
        yield ServiceHttp(session, Redactor(secrets), _unobserved, SystemClock())


def _unobserved(observed: Observed) -> None:
    """Ignore the call. Setup doesn't collect metrics."""
