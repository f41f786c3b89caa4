"""The gateway: whether each client can call what it is meant to call."""

from collections.abc import Mapping, Sequence

from bot.checks.doctor.findings import Finding, well
from bot.organizations.rules import Listing
from bot.settings import Settings
from bot.settings.gateway import ClientSettings

NAMED = 5


def examine_gateway(settings: Settings, listings: Mapping[str, Listing]) -> list[Finding]:
    """A line for each client, and one for the listener; nothing is called.

    Args:
        settings: The clients.
        listings: The last good listing of each data center that has one.
    """
    clients, port = settings.gateway_clients, settings.gateway_port
    if port is None and not clients:
        return []
    findings = [_client(name, one, settings, listings) for name, one in clients.items()]
    if port is None:
        sentence = "GATEWAY_CLIENTS is set and GATEWAY_PORT is not, so nobody can call."
        return [Finding("gateway", "gateway_off", sentence), *findings]
    if not clients:
        sentence = "GATEWAY_PORT is set and GATEWAY_CLIENTS is empty, so nobody can call."
        return [Finding("gateway", "gateway_empty", sentence)]
    where = f"{settings.gateway_host}:{port}"
    return [well("gateway", f"listens on {where} for {len(clients)} clients."), *findings]


def _client(
    name: str, client: ClientSettings, settings: Settings, listings: Mapping[str, Listing]
) -> Finding:
    subject = f"gateway {name}"
    if not settings.inventory_data_centers:
        sentence = "It can call nothing: INVENTORY_DATA_CENTERS is not set."
        return Finding(subject, "gateway_idle", sentence)
    unknown = _unlisted(client, listings)
    if unknown:
        more = f" and {len(unknown) - NAMED} more" if len(unknown) > NAMED else ""
        sentence = (
            f"These of its organizations are not listed: {', '.join(unknown[:NAMED])}{more}."
            " Correct them in GATEWAY_CLIENTS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    return well(subject, _rights(client))


def _unlisted(client: ClientSettings, listings: Mapping[str, Listing]) -> Sequence[str]:
    """Its organizations that their data center's last listing does not have, where there is one."""
    paths = () if client.organizations == "*" else client.organizations
    split = [path.partition("/") for path in paths]
    return [
        f"{center}/{organization_id}"
        for center, _, organization_id in split
        if center in listings and listings[center].place_of(organization_id) is None
    ]


def _rights(client: ClientSettings) -> str:
    whom = "every organization"
    if client.organizations != "*":
        many = len(client.organizations)
        whom = f"{many} organization{'' if many == 1 else 's'}"
    return f"may use {', '.join(client.methods)} for {whom}, with a share of {client.share:g}."
