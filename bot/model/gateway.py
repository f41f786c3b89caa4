"""The gateway's clients: who calls, what each may do, and how much of the limits is its share."""

import hashlib
import hmac
from collections.abc import Collection, Iterable
from dataclasses import field
from http import HTTPStatus

from bot.dataclass import dataclass
from bot.errors import GatehouseError
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.plans import CallClass, Limits

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class GatewayRefusal(GatehouseError):
    """A request that is answered without a call: the status, and a word for metrics."""

    def __init__(self, status: HTTPStatus, word: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.word = word


def unauthorized() -> GatewayRefusal:
    """No token, or one that nobody has."""
    return GatewayRefusal(
        HTTPStatus.UNAUTHORIZED,
        "unauthorized",
        "Send the token of a gateway client, as “Authorization: Bearer …” or as authtoken=… in the"
        " query.",
    )


def forbidden(sentence: str) -> GatewayRefusal:
    """The client is known, and may not do this."""
    return GatewayRefusal(HTTPStatus.FORBIDDEN, "forbidden", sentence)


def malformed(sentence: str) -> GatewayRefusal:
    """The request could mean two things, or something else than it says."""
    return GatewayRefusal(HTTPStatus.BAD_REQUEST, "malformed", sentence)


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """One entry of `GATEWAY_CLIENTS`; `organizations` is None for all of them.

    `share` is the part, above 0 and up to 1, that the client may take of what is left to clients.
    """

    name: str
    token_sha256: str = field(repr=False)
    organizations: frozenset[OrganizationKey] | None
    methods: frozenset[str]
    share: float

    def require(self, method: str, data_center: str) -> None:
        """Raise GatewayRefusal where the client may not use a method, or reach a data center."""
        if method not in self.methods:
            raise forbidden(f"The client {self.name} may not use {method}.")
        if self.organizations is None:
            return
        if data_center not in {key.data_center for key in self.organizations}:
            raise forbidden(f"The client {self.name} may not call the data center {data_center}.")

    def require_organization(self, key: OrganizationKey) -> None:
        """Raise GatewayRefusal where the client may not call for an organization."""
        if self.organizations is not None and key not in self.organizations:
            advice = "" if key.organization_id else " Name one that it may call in organization_id."
            whose = key.organization_id or f"the data center {key.data_center} as a whole"
            raise forbidden(f"The client {self.name} may not call for {whose}.{advice}")


def token_hash(token: str) -> str:
    """What is kept of a token, in place of the token."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def client_of(clients: Iterable[GatewayClient], tokens: Collection[str]) -> GatewayClient | None:
    """The client whose token was sent; None for no token, several, or one that nobody has.

    Every client's hash is compared, each in constant time: how long it takes tells nothing.
    """
    sent = token_hash(next(iter(tokens), ""))
    matches = [one for one in clients if hmac.compare_digest(one.token_sha256, sent)]
    return next(iter(matches), None) if len(set(tokens)) == 1 else None


def share_of(limits: Limits, share: float) -> Limits:
    """What a client with this share may use: of what is left to clients, but one call at least."""
    left = limits.left_to(CallClass.BACKGROUND)
    return Limits(*(max(1, int(n * share)) for n in (left.minute, left.day, left.concurrent)))
