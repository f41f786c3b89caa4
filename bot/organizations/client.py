"""The client for the inventory service, which lists the organizations in each data center."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, Field
from yarl import URL

from bot.errors import NotConfigured
from bot.organizations.rules import Organization, OrganizationKey
from bot.services.calls import CallCause, CallClass, ServiceCall
from bot.services.credentials import Credential, Signed
from bot.services.errors import CredentialsRefused, ServiceRefused, model_in, wrong_form
from bot.services.http import Permit, ServiceHttp

# The largest number of organizations in a data center.
MOST_ORGANIZATIONS = 10_000

OpenGrant = Callable[[OrganizationKey, CallCause], AbstractAsyncContextManager[Permit]]
"""A function that opens a permit for one attempt at a call (see `bot.quotas.guard`).

Each retry needs a new permit. If the call is declined, the context raises QuotaExhausted,
OrganizationBlocked, or DatabaseUnavailable.
"""


@dataclass(frozen=True)
class DataCenterAccess:
    """A data center's API root, its credential, and the OAuth scope for listing organizations."""

    root: URL
    credential: Credential
    scope: str


class _Listing(BaseModel):
    model_config = ConfigDict(strict=True)

    code: int
    # Without these limits, reading a large listing or all of its errors would delay everyone.
    organizations: list[Organization] | None = Field(
        None, max_length=MOST_ORGANIZATIONS, fail_fast=True
    )


@dataclass(frozen=True)
class InventoryClient:
    """Lists organizations. Each attempt at a call needs its own permit."""

    http: ServiceHttp
    grant: OpenGrant
    access: Mapping[str, DataCenterAccess]

    @property
    def data_centers(self) -> tuple[str, ...]:
        """The configured data centers, in the same order as in the settings."""
        return tuple(self.access)

    async def organizations(
        self, key: OrganizationKey, cause: CallCause
    ) -> tuple[Organization, ...]:
        """Return all organizations in the data center of `key`, in the service's order.

        If `key` has an organization, the request specifies it and counts against its limits.
        Only calls for people are retried.
        """
        name = f"the inventory service ({key.data_center})"
        access = self.access.get(key.data_center)
        if access is None:
            raise NotConfigured(name, ["INVENTORY_DATA_CENTERS"])
        call = ServiceCall(
            service="inventory",
            label=name,
            method="GET",
            url=access.root / "organizations",
            params={"organization_id": key.organization_id} if key.organization_id else {},
            data_center=key.data_center,
            advice={
                HTTPStatus.UNAUTHORIZED: (
                    "Replace the data center's credential in INVENTORY_DATA_CENTERS. The new"
                    f" credential needs the scope {access.scope}. If the credential is new, check"
                    " that its API root (base_url) is of the same data center."
                ),
                HTTPStatus.FORBIDDEN: f"The credential needs the scope {access.scope}.",
                HTTPStatus.NOT_FOUND: "The data center's URL is probably wrong.",
            },
        )
        is_retried = cause.call_class is CallClass.PERSON

        async def listed(signed: Signed) -> tuple[Organization, ...]:
            params = {**call.params, **signed.params}
            return await self.http.request(
                replace(call, params=params, headers=signed.headers),
                partial(organizations_in, call),
                partial(self.grant, key, cause),
                retried=is_retried,
            )

        signed = await access.credential.sign()
        try:
            return await listed(signed)
        except CredentialsRefused:
            renewed = await access.credential.renewed(signed)
            # A background call isn't retried. The next call will use the new credential.
            if renewed is None or not is_retried:
                raise
        return await listed(renewed)


def organizations_in(call: ServiceCall, body: bytes) -> tuple[Organization, ...]:
    """Return the organizations in a response, or raise ServiceError if it isn't a valid listing."""
    sent = model_in(call, body, _Listing)
    if sent.code != 0:
        # Show only the code, not the message.
        sentence = f"{call.subject} rejected the request (code {sent.code})."
        raise ServiceRefused(call.service, sentence, code=sent.code)
    if sent.organizations is None:
        raise wrong_form(call, "no list of organizations")
    return tuple(sent.organizations)
