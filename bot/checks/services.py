"""Checks the services with small calls, and the gateway's settings without any calls."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from http import HTTPStatus

from pydantic import SecretStr

from bot.checks.findings import NOT_CONFIGURED, NOT_TRIED, WELL, CheckParts, Finding, failed, well
from bot.configured import email_client, flow_client
from bot.errors import DatabaseUnavailable, GatehouseError
from bot.organizations.client import InventoryClient
from bot.organizations.rules import Listing, OrganizationKey
from bot.services.calls import CallCause
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    ProxyUnreachable,
    Redirected,
    ResponseUnreadable,
    ServiceError,
    ServiceRefused,
    ServiceUnreachable,
)
from bot.settings.model import SERVICES, ClientSettings, Service, Settings
from bot.slack.messages.text import count
from bot.testusers.client import NO_SUCH_FLOW, FlowClient

CAUSE = CallCause("check")
NO_FLOW_SERVICE = (
    "That address returns 404 for every request, even with an incorrect token, so it is not the"
    " flow service. Check FLOW_BASE_URL, which must not include /v2."
)
BASIC_REFUSED = (
    "The key is valid, but HTTP Basic is rejected: the account uses two-factor authentication, or"
    " the service doesn't support HTTP Basic. Set EMAIL_AUTH=bearer."
)


async def inventory(parts: CheckParts, *, can_be_granted: bool) -> list[Finding]:
    """Check each data center's credential by listing its organizations.

    If `can_be_granted` is False, make no calls, because the database can't count them.
    """
    settings = parts.settings
    if not settings.inventory_data_centers:
        return [_missing(settings, "inventory")]
    if not can_be_granted:
        sentence = "Not checked: Gatehouse can't count or make calls without the database."
        names = settings.inventory_data_centers
        return [Finding(f"inventory {name}", NOT_TRIED, sentence) for name in names]
    # Maps each data center to the organization that the bot's next listing counts against.
    known = {
        report.data_center: report.listing.representative()
        for report in (await parts.directory.known()).reports
        if report.listing
    }
    looks = (
        _data_center(parts.inventory, name, center.organization_id, known.get(name))
        for name, center in settings.inventory_data_centers.items()
    )
    return list(await asyncio.gather(*looks))


async def _data_center(
    client: InventoryClient, data_center: str, organization_id: str | None, known_id: str | None
) -> Finding:
    subject = f"inventory {data_center}"
    named = OrganizationKey(data_center, organization_id or known_id or "")
    try:
        try:
            found = await client.organizations(named, CAUSE)
        except ServiceRefused:
            if not named.organization_id:
                raise
            # The service doesn't know this organization, but might list others.
            found = await client.organizations(OrganizationKey(data_center), CAUSE)
    except GatehouseError as error:
        if isinstance(error, PermissionMissing):
            return Finding(subject, "listing_scope_missing", error.sentence)
        is_elsewhere = isinstance(error, ServiceUnreachable | Redirected | ResponseUnreadable)
        if not isinstance(error, ProxyUnreachable) and (is_elsewhere or _is_404(error)):
            advice = "Check INVENTORY_BASE_URL or the data center's base_url."
            return Finding(subject, "wrong_host", f"{error.sentence} {advice}")
        return failed(subject, error)
    if not found:
        sentence = "The credential is valid, but doesn't give access to any organization."
        return Finding(subject, "no_organization", sentence)
    if organization_id and organization_id not in {row.organization_id for row in found}:
        sentence = (
            f"organization_id {organization_id} is not one of the {len(found)} listed "
            "organizations. Find the right ID in the service's console, under organization"
            " management, and use it in INVENTORY_DATA_CENTERS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    return well(subject, f"lists {count(len(found), 'organization')}.")


def _is_404(error: GatehouseError) -> bool:
    return isinstance(error, ServiceRefused) and error.status == HTTPStatus.NOT_FOUND


async def flows(parts: CheckParts) -> list[Finding]:
    """Check the flow service's credentials and aliases, without writing to the service.

    Only a write could show whether the form field is right.
    """
    settings, aliases = parts.settings, parts.settings.flow_aliases
    client = flow_client(settings, parts.http)
    if client is None:
        return [_missing(settings, "flow")]

    found: list[Finding] = []
    for alias, flow_sid in (aliases or {"": NO_SUCH_FLOW}).items():
        found.append(await _flow(client, alias, flow_sid))
        if found[-1].code not in {WELL, "flow_unknown"}:
            return found  # the next call would fail the same way
    if not aliases or all(finding.code == "flow_unknown" for finding in found):
        # A service that returns 404 even for a wrong token is not the flow service.
        wrong = settings.model_copy(update={"flow_auth_token": SecretStr("no-such-token")})
        try:
            await (flow_client(wrong, parts.http) or client).read(NO_SUCH_FLOW)
            minds_its_token = False
        except ServiceError as error:
            minds_its_token = not _is_404(error)
        if not minds_its_token:
            return [Finding("flow", "wrong_host", NO_FLOW_SERVICE)]
    return found


async def _flow(flows: FlowClient, alias: str, flow_sid: str) -> Finding:
    subject = f"flow {alias}".strip()
    try:
        users = await flows.read(flow_sid)
    except ServiceError as error:
        if not _is_404(error):
            return failed(subject, error)
        if not alias:
            return well(subject, "accepts the credentials (no alias is configured).")
        sentence = f"There is no flow {flow_sid}: correct “{alias}” in FLOW_ALIASES."
        return Finding(subject, "flow_unknown", sentence)
    return well(subject, f"exists and has {count(len(users), 'test user')}.")


async def email(parts: CheckParts) -> list[Finding]:
    """Check the email API key. If HTTP Basic is rejected, try Bearer to find out why."""
    settings = parts.settings
    client = email_client(settings, parts.http)
    if client is None:
        return [_missing(settings, "email")]
    try:
        await client.get("templates")
    except ServiceError as error:
        is_refused = isinstance(error, CredentialsRefused | PermissionMissing)
        if is_refused and settings.email_auth == "basic":
            as_bearer = settings.model_copy(update={"email_auth": "bearer"})
            with suppress(ServiceError):
                await (email_client(as_bearer, parts.http) or client).get("templates")
                return [Finding("email", "basic_refused", BASIC_REFUSED)]
        return [failed("email", error)]
    return [well("email", f"The key works ({client.auth}).")]


def _missing(settings: Settings, service: Service) -> Finding:
    missing = settings.missing_for(service)
    if len(missing) == len(SERVICES[service]):
        sentence = f"is not configured. Its commands need {', '.join(missing)}."
        return Finding(service, NOT_CONFIGURED, sentence)
    sentence = f"Not set: {', '.join(missing)}. Set all or none of this service's settings."
    return Finding(service, "half_configured", sentence)


async def gateway(parts: CheckParts) -> list[Finding]:
    """Check the gateway's settings against the last successful listings, without making calls."""
    known: dict[str, Listing] = {}
    with suppress(DatabaseUnavailable):
        reports = (await parts.directory.known()).reports
        known = {report.data_center: report.listing for report in reports if report.listing}
    return examine_gateway(parts.settings, known)


def examine_gateway(settings: Settings, listings: Mapping[str, Listing]) -> list[Finding]:
    """Check the gateway's settings against the given listings, which are keyed by data center."""
    clients, port = settings.gateway_clients, settings.gateway_port
    if port is None and not clients:
        return []
    findings = [_client(name, client, settings, listings) for name, client in clients.items()]
    if port is None:
        sentence = "GATEWAY_CLIENTS is set but GATEWAY_PORT is not, so clients can't connect."
        return [Finding("gateway", "gateway_off", sentence), *findings]
    if not clients:
        sentence = "GATEWAY_PORT is set but GATEWAY_CLIENTS is empty, so no clients are allowed."
        return [Finding("gateway", "gateway_empty", sentence)]
    where = f"{settings.gateway_host}:{port}"
    return [well("gateway", f"listens on {where} for {count(len(clients), 'client')}."), *findings]


def _client(
    name: str, client: ClientSettings, settings: Settings, listings: Mapping[str, Listing]
) -> Finding:
    subject = f"gateway {name}"
    if not settings.inventory_data_centers:
        sentence = "can't make any calls because INVENTORY_DATA_CENTERS is not set."
        return Finding(subject, "gateway_idle", sentence)
    paths = () if client.organizations == "*" else client.organizations
    keys = [OrganizationKey.of_path(path) for path in paths]
    unknown = [
        str(key)
        for key in keys
        if key.data_center in listings
        and key.organization_id not in listings[key.data_center].by_id
    ]
    if unknown:
        sentence = (
            f"The service doesn't list these organizations: {', '.join(unknown)}. Correct them in"
            " GATEWAY_CLIENTS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    granted = count(len(paths), "organization") if paths else "every organization"
    methods = ", ".join(client.methods)
    return well(subject, f"may use {methods} for {granted}, with a share of {client.share:g}.")
