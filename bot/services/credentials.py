"""The ways to put a credential into a request."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import SecretStr


@dataclass(frozen=True, slots=True)
class Signed:
    """The headers or parameters of a credential; never printed."""

    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Credential(Protocol):
    """A credential of the inventory service."""

    async def sign(self) -> Signed:
        """Return the additions to a request; may renew itself, and so raise ServiceError."""

    async def renewed(self, refused: Signed) -> Signed | None:
        """Return a new credential after the service refused this one; None if impossible."""


@dataclass(frozen=True, slots=True)
class QueryToken:
    """The query parameter `authtoken`, as in the specification's sample request."""

    token: SecretStr

    async def sign(self) -> Signed:
        """Return the parameter."""
        return Signed(params={"authtoken": self.token.get_secret_value()})

    async def renewed(self, refused: Signed) -> None:  # noqa: ARG002 - the port has it
        """Return None: a static token can't be renewed."""
        return


@dataclass(frozen=True, slots=True)
class HeaderToken:
    """The header form, which the specification leaves open; `template` contains `{token}`."""

    token: SecretStr
    template: str = "Bearer {token}"

    async def sign(self) -> Signed:
        """Return the header."""
        return Signed(headers=authorization(self.template, self.token.get_secret_value()))

    async def renewed(self, refused: Signed) -> None:  # noqa: ARG002 - the port has it
        """Return None: a static token can't be renewed."""
        return


def authorization(template: str, token: str) -> Mapping[str, str]:
    """Return `Authorization` with the token filled in; other braces stay."""
    return {"Authorization": template.replace("{token}", token)}


def basic(user: str, password: SecretStr) -> Mapping[str, str]:
    """HTTP Basic (RFC 7617), in UTF-8."""
    pair = f"{user}:{password.get_secret_value()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


def bearer(token: SecretStr) -> Mapping[str, str]:
    """Bearer (RFC 6750)."""
    return {"Authorization": f"Bearer {token.get_secret_value()}"}
