"""The tokens of the gateway's clients."""

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from http import HTTPStatus

from bot.gateway.rules import GatewayRefusal
from bot.settings.model import ClientSettings


def client_of(clients: Mapping[str, ClientSettings], tokens: Collection[str]) -> str:
    """Return the name of the client that the token belongs to.

    Every client's hash is compared in constant time. Raises GatewayRefusal unless there is exactly
    one token and it belongs to a client.
    """
    sent = token_hash(next(iter(tokens), ""))
    matches = [
        name for name, client in clients.items() if hmac.compare_digest(client.token_sha256, sent)
    ]
    # If a client's token were empty, everybody would know it.
    is_one = len(tokens) == 1 and "" not in tokens
    if is_one and matches:
        return matches[0]
    sentence = (
        "Send exactly one gateway token, either in the header “Authorization: Bearer …” or"
        " as authtoken=… in the query."
    )
    if is_one:
        sentence = "This gateway token isn't known. `gatehouse gateway-token` creates one."
    challenge = ("WWW-Authenticate", 'Bearer realm="gatehouse"')
    raise GatewayRefusal(HTTPStatus.UNAUTHORIZED, "unauthorized", sentence, [challenge])


def token_hash(token: str) -> str:
    """Return the hash that is stored instead of the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def new_token() -> str:
    """Create a random token, and return the text that `gateway-token` prints.

    The token's prefix identifies a leaked token as a Gatehouse token.
    """
    token = f"ghgw_{secrets.token_urlsafe(32)}"
    return (
        f"token: {token}\n"
        f"token_sha256: {token_hash(token)}\n\n"
        "Give the token to the client program, and add token_sha256 to GATEWAY_CLIENTS. The token"
        " isn't stored, so you can't see it again."
    )
