"""Checks the services with small calls, and the gateway's settings without any calls."""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from pydantic import SecretStr
from yarl import URL

from bot.checks.parts import CheckParts
from bot.checks.rules import NOT_CONFIGURED, NOT_TRIED, WELL, Finding, Part, failed, well
from bot.configured import email_client, flow_client
from bot.errors import GatehouseError
from bot.flows.client import NO_SUCH_FLOW, FlowClient
from bot.organizations.client import InventoryClient
from bot.organizations.rules import Organization, OrganizationKey
from bot.services.calls import CallCause
from bot.services.errors import ServiceError, ServiceRefused
from bot.settings.model import SERVICES, ServiceName, Settings
from bot.slack.messages.text import count

CAUSE = CallCause("check")
NO_FLOW_SERVICE = (
    "The configured address returned 404 for every request, even with an incorrect token, so it is"
    " not the address of the flow service. Check FLOW_BASE_URL, which must not include /v2."
)


async def inventory(parts: CheckParts) -> list[Finding]:
    """Check each data center's credential by listing its organizations."""
    centers = parts.settings.inventory_data_centers
    if not centers:
        return [_missing(parts.settings, "inventory")]
    if not parts.can_count:
        sentence = (
            "Gatehouse didn't check this, because it can't count or make calls without the"
            " database."
        )
        return [Finding(f"inventory {name}", NOT_TRIED, sentence) for name in centers]
    return await asyncio.gather(
        *(_data_center(parts, name, center.organization_id) for name, center in centers.items())
    )


async def _data_center(parts: CheckParts, name: str, organization_id: str | None) -> Finding:
    subject = f"inventory {name}"
    # The bot's next listing of the data center counts against this organization.
    key = OrganizationKey(name, await parts.directory.representative(name))
    try:
        rows = await _organizations(parts.inventory, key)
    except GatehouseError as error:
        return failed(subject, error)
    parts.listed[name] = rows
    if not rows:
        sentence = "The credential is valid, but doesn't give access to any organization."
        return Finding(subject, "no_organization", sentence)
    if organization_id and organization_id not in ids_of(rows):
        sentence = (
            f"organization_id {organization_id} is not one of the {len(rows)} listed"
            " organizations. Find the right ID in the service's console, under organization"
            " management, and use it in INVENTORY_DATA_CENTERS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    return well(subject, f"lists {count(len(rows), 'organization')}.")


async def _organizations(client: InventoryClient, key: OrganizationKey) -> Sequence[Organization]:
    try:
        return await client.organizations(key, CAUSE)
    except ServiceRefused:
        if not key.organization_id:
            raise
        # The service doesn't know this organization, but might list others.
        return await client.organizations(OrganizationKey(key.data_center), CAUSE)


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

    findings: list[Finding] = []
    for alias, flow_sid in (aliases or {"": NO_SUCH_FLOW}).items():
        findings.append(await _flow(client, alias, flow_sid))
        if findings[-1].code not in {WELL, "flow_unknown"}:
            return findings  # the next call would fail the same way
    if not aliases or all(finding.code == "flow_unknown" for finding in findings):
        # A service that returns 404 even for a wrong token is not the flow service.
        url = URL(settings.flow_base_url or "")
        stranger = FlowClient(parts.http, url, "nobody", SecretStr("no-such-token"))
        try:
            await stranger.read(NO_SUCH_FLOW)
        except ServiceError as error:
            if _is_404(error):
                return [Finding("flow", "wrong_host", NO_FLOW_SERVICE)]
    return findings


async def _flow(flows: FlowClient, alias: str, flow_sid: str) -> Finding:
    subject = f"flow {alias}".strip()
    try:
        users = await flows.read(flow_sid)
    except ServiceError as error:
        if not _is_404(error):
            return failed(subject, error)
        if not alias:
            return well(subject, "accepts the credentials (no alias is configured).")
        sentence = f"There is no flow {flow_sid}. Correct “{alias}” in FLOW_ALIASES."
        return Finding(subject, "flow_unknown", sentence)
    return well(subject, f"exists and has {count(len(users), 'test user')}.")


async def email(parts: CheckParts) -> list[Finding]:
    """Check the email API key."""
    client = email_client(parts.settings, parts.http)
    if client is None:
        return [_missing(parts.settings, "email")]
    try:
        await client.get("templates")
    except ServiceError as error:
        return [failed("email", error)]
    return [well("email", f"The key works ({client.auth}).")]


async def credentials(parts: CheckParts) -> list[Finding]:
    """Return which services refused their credential in this process's last call."""
    refused = [seen.name for seen in parts.services.seen() if seen.is_refused]
    if not refused:
        return [well(Part.SERVICE_CREDENTIALS, "are accepted.")]
    sentence = f"{', '.join(refused)} rejected Gatehouse's credential. Run gatehouse check."
    return [Finding(Part.SERVICE_CREDENTIALS, "credentials_refused", sentence)]


def _missing(settings: Settings, service: ServiceName) -> Finding:
    missing = settings.missing_for(service)
    if len(missing) == len(SERVICES[service]):
        sentence = f"is not configured. To use this service's commands, set {', '.join(missing)}."
        return Finding(service, NOT_CONFIGURED, sentence)
    sentence = f"Set {', '.join(missing)} too, or remove this service's other settings."
    return Finding(service, "half_configured", sentence)


def ids_of(organizations: Sequence[Organization]) -> set[str]:
    """Return the IDs of organizations."""
    return {row.organization_id for row in organizations}


async def gateway(parts: CheckParts) -> list[Finding]:
    """Check the gateway's settings, with the organizations that were listed."""
    settings = parts.settings
    clients, port = settings.gateway_clients, settings.gateway_port
    if port is None and not clients and not settings.apis:
        return []
    if port is None or not clients:
        sentence = (
            "The gateway, and with it APIS, needs both GATEWAY_PORT and GATEWAY_CLIENTS. Set all or"
            " none of them."
        )
        return [Finding("gateway", "half_configured", sentence)]
    unknown = []
    for name, client in clients.items():
        for key in map(OrganizationKey.of_path, client.organizations):
            rows = parts.listed.get(key.data_center)
            if rows is not None and key.organization_id not in ids_of(rows):
                unknown.append(f"{key} ({name})")
    if unknown:
        sentence = (
            "GATEWAY_CLIENTS names organizations that the inventory service doesn't list:"
            f" {', '.join(unknown)}."
        )
        return [Finding("gateway", "organization_not_listed", sentence)]
    findings = [well("gateway", f"has {count(len(clients), 'client')}.")]
    for name in settings.apis:
        its = [client for client, other in clients.items() if name in other.organizations]
        sentence = f"can be called by {', '.join(its) or 'no client'}. This check doesn't call it."
        findings.append(well(f"api {name}", sentence))
    return findings
