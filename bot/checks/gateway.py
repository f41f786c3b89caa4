"""The gateway: checks that each client can call the organizations meant for it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from bot.checks.findings import Finding, well
from bot.checks.parts import Parts
from bot.errors import DatabaseUnavailable
from bot.organizations.directory import load_listing
from bot.organizations.rules import Listing
from bot.settings import Settings
from bot.settings.gateway import ClientSettings

NAMED = 5


async def gateway(parts: Parts) -> list[Finding]:
    """Check the listener and each client against the last good listings, without any calls."""
    stored: list[Listing | None] = []
    with suppress(DatabaseUnavailable):
        async with parts.database.read_only() as tx:
            centers = parts.settings.inventory_data_centers
            stored = [await load_listing(tx, center) for center in centers]
    known = {listing.data_center: listing for listing in stored if listing is not None}
    return examine_gateway(parts.settings, known)


def examine_gateway(settings: Settings, listings: Mapping[str, Listing]) -> list[Finding]:
    """Check the listener and each client against the listing of each data center."""
    clients, port = settings.gateway_clients, settings.gateway_port
    if port is None and not clients:
        return []
    findings = [_client(name, client, settings, listings) for name, client in clients.items()]
    if port is None:
        sentence = "GATEWAY_CLIENTS is set but GATEWAY_PORT is not, so clients can't call."
        return [Finding("gateway", "gateway_off", sentence), *findings]
    if not clients:
        sentence = "GATEWAY_PORT is set but GATEWAY_CLIENTS is empty, so clients can't call."
        return [Finding("gateway", "gateway_empty", sentence)]
    where = f"{settings.gateway_host}:{port}"
    return [well("gateway", f"listens on {where} for {len(clients)} clients."), *findings]


def _client(
    name: str, client: ClientSettings, settings: Settings, listings: Mapping[str, Listing]
) -> Finding:
    subject = f"gateway {name}"
    if not settings.inventory_data_centers:
        sentence = "It can't make any calls: INVENTORY_DATA_CENTERS is not set."
        return Finding(subject, "gateway_idle", sentence)
    unknown = _unlisted(client, listings)
    if unknown:
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        sentence = (
            f"These organizations are not in the listing: {', '.join(unknown[:NAMED])}{more}."
            " Correct them in GATEWAY_CLIENTS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    granted = "every organization"
    if client.organizations != "*":
        many = len(client.organizations)
        granted = f"{many} organization{'' if many == 1 else 's'}"
    methods = ", ".join(client.methods)
    return well(subject, f"may use {methods} for {granted}, with a share of {client.share:g}.")


def _unlisted(client: ClientSettings, listings: Mapping[str, Listing]) -> Sequence[str]:
    paths = () if client.organizations == "*" else client.organizations
    split = [path.partition("/") for path in paths]
    return [
        f"{center}/{organization_id}"
        for center, _, organization_id in split
        if center in listings and listings[center].place_of(organization_id) is None
    ]
