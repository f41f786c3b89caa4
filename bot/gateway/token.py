"""`python -m bot gateway-token`: prints a new token for a client, and the settings for it."""

import secrets

from bot.gateway.rules.rights import token_hash

_BYTES = 32


def new_token() -> str:
    """Return a random token; its prefix identifies it as Gatehouse's if someone finds it."""
    return f"ghgw_{secrets.token_urlsafe(_BYTES)}"


def token_lines(token: str) -> str:
    """Return the lines that the command prints."""
    return (
        f"token: {token}\n"
        f"token_sha256: {token_hash(token)}\n\n"
        "Give the token to the program, and token_sha256 to GATEWAY_CLIENTS. The token is not"
        " stored anywhere: this is the only time that it is shown."
    )
