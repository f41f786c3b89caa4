"""The forms in which a credential goes into a request."""

import base64
from collections.abc import Mapping
from dataclasses import field
from typing import Protocol

from pydantic import SecretStr

from bot.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Signed:
    """What a credential adds to a request; never printed."""

    params: Mapping[str, str] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class Credential(Protocol):
    """A credential of the inventory service."""

    async def sign(self) -> Signed:
        """What to add to a request; may renew itself first, and then raise ServiceError."""

    async def renewed(self, refused: Signed) -> Signed | None:
        """Another one after the service refused `refused`; None if there can be no other."""


@dataclass(frozen=True, slots=True)
class QueryToken:
    """The sample request's form: the query parameter `authtoken`."""

    token: SecretStr

    async def sign(self) -> Signed:
        """The parameter."""
        return Signed(params={"authtoken": self.token.get_secret_value()})

    async def renewed(self, refused: Signed) -> None:  # noqa: ARG002 - the port has it
        """A static token has no successor."""
        return


@dataclass(frozen=True, slots=True)
class HeaderToken:
    """The header form, which the specification leaves open: `template` has `{token}` in it."""

    token: SecretStr
    template: str = "Bearer {token}"

    async def sign(self) -> Signed:
        """The header."""
        return Signed(headers=authorization(self.template, self.token.get_secret_value()))

    async def renewed(self, refused: Signed) -> None:  # noqa: ARG002 - the port has it
        """A static token has no successor."""
        return


def authorization(template: str, token: str) -> Mapping[str, str]:
    """`Authorization` with the token in its place; other braces stay."""
    return {"Authorization": template.replace("{token}", token)}


def basic(user: str, password: SecretStr) -> Mapping[str, str]:
    """HTTP Basic (RFC 7617), in UTF-8."""
    pair = f"{user}:{password.get_secret_value()}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode('ascii')}"}


def bearer(token: SecretStr) -> Mapping[str, str]:
    """Bearer (RFC 6750)."""
    return {"Authorization": f"Bearer {token.get_secret_value()}"}
