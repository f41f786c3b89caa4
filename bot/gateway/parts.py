"""The gateway that the settings ask for."""

from bot.gateway.forward import Forwarder, ForwardParts
from bot.gateway.server import Gateway, GatewayParts, Observe
from bot.settings import Settings
from bot.workflows.directory import OrganizationDirectory

BEARER = "Bearer"


def gateway_of(
    settings: Settings, parts: ForwardParts, directory: OrganizationDirectory, observe: Observe
) -> Gateway:
    """Put the gateway together from the bot's own parts; it does not listen yet."""
    # What a script sends to the service itself, it may go on sending.
    scheme = settings.inventory_auth_header.partition(" ")[0]
    return Gateway(
        GatewayParts(
            clients=[one.named(name) for name, one in settings.gateway_clients.items()],
            roots={name: one.root for name, one in parts.access.items()},
            schemes=(BEARER, scheme),
            representative=directory.representative,
            forwarder=Forwarder(parts),
            turns=parts.turns,
            redactor=parts.redactor,
            observe=observe,
        )
    )


def shares_of(settings: Settings) -> dict[str, float]:
    """Each client's share, by its name."""
    return {name: one.share for name, one in settings.gateway_clients.items()}
