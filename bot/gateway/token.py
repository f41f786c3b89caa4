"""`python -m bot gateway-token`: a new token for a client, and what to put into the settings."""

import secrets

from bot.model.gateway import token_hash

_BYTES = 32


def new_token() -> str:
    """A token that nobody can guess; the prefix says whose it is, for who finds one."""
    return f"ghgw_{secrets.token_urlsafe(_BYTES)}"


def token_lines(token: str) -> str:
    """What the command prints."""
    return (
        f"token: {token}\n"
        f"token_sha256: {token_hash(token)}\n\n"
        "Give the token to the program, and token_sha256 to GATEWAY_CLIENTS. The token is not"
        " stored anywhere: this is the only time that it is shown."
    )
