"""The gateway's clients: their tokens, rights, and shares of the limits."""

import hashlib
import hmac
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from http import HTTPStatus

from bot.errors import GatehouseError
from bot.organizations.rules.organization import OrganizationKey

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class GatewayRefusal(GatehouseError):
    """A request that is answered without a call: the status, and a label for metrics."""

    def __init__(self, status: HTTPStatus, word: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.word = word


def unauthorized() -> GatewayRefusal:
    """Return the refusal of a missing or unknown token."""
    return GatewayRefusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "Send the token of a gateway client, as “Authorization: Bearer …” or as authtoken=… in the"
        " query.",
    )


def forbidden(sentence: str) -> GatewayRefusal:
    """Return the refusal of a known client without this right."""
    return GatewayRefusal(HTTPStatus.FORBIDDEN, "forbidden", sentence)


def malformed(sentence: str) -> GatewayRefusal:
    """Return the refusal of an ambiguous or invalid request."""
    return GatewayRefusal(HTTPStatus.BAD_REQUEST, "malformed", sentence)


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """An entry of `GATEWAY_CLIENTS`; `organizations` is None for all of them.

    `share` is the part, above 0 and up to 1, that the client may use of the calls left to clients.
    """

    name: str
    token_sha256: str = field(repr=False)
    organizations: frozenset[OrganizationKey] | None
    methods: frozenset[str]
    share: float

    def require(self, method: str, data_center: str) -> None:
        """Raise GatewayRefusal if the client may not use a method or a data center."""
        if method not in self.methods:
            raise forbidden(f"The client {self.name} may not use {method}.")
        if self.organizations is None:
            return
        if data_center not in {key.data_center for key in self.organizations}:
            raise forbidden(f"The client {self.name} may not call the data center {data_center}.")

    def require_organization(self, key: OrganizationKey) -> None:
        """Raise GatewayRefusal if the client may not call for an organization."""
        if self.organizations is not None and key not in self.organizations:
            advice = "" if key.organization_id else " Name one that it may call in organization_id."
            target = key.organization_id or f"the data center {key.data_center} as a whole"
            raise forbidden(f"The client {self.name} may not call for {target}.{advice}")


def token_hash(token: str) -> str:
    """Return the hash that is stored instead of the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def client_of(clients: Iterable[GatewayClient], tokens: Collection[str]) -> GatewayClient | None:
    """Return the client with this token; None for no token, several tokens, or an unknown token.

    Compares every client's hash in constant time, so that timing reveals nothing.
    """
    sent = token_hash(next(iter(tokens), ""))
    matches = [client for client in clients if hmac.compare_digest(client.token_sha256, sent)]
    return next(iter(matches), None) if len(set(tokens)) == 1 else None
