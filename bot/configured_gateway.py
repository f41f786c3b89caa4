"""The gateway that the settings configure."""

from bot.gateway.forward import Forwarder, ForwardParts
from bot.gateway.server import Gateway, GatewayParts, Observe
from bot.organizations.directory import OrganizationDirectory
from bot.settings import Settings

BEARER = "Bearer"


def gateway_of(
    settings: Settings, parts: ForwardParts, directory: OrganizationDirectory, observe: Observe
) -> Gateway:
    """Build the gateway from the bot's own parts; it doesn't listen yet."""
    # Scripts may keep sending everything they could send to the service directly.
    scheme = settings.inventory_auth_header.partition(" ")[0]
    return Gateway(
        GatewayParts(
            clients=[client.named(name) for name, client in settings.gateway_clients.items()],
            roots={name: access.root for name, access in parts.access.items()},
            schemes=(BEARER, scheme),
            representative=directory.representative,
            is_listed=directory.lists,
            forwarder=Forwarder(parts),
            turns=parts.turns,
            redactor=parts.redactor,
            observe=observe,
        )
    )


def shares_of(settings: Settings) -> dict[str, float]:
    """Return each client's share by name."""
    return {name: client.share for name, client in settings.gateway_clients.items()}
