"""The inventory service: organizations of each data center; no call without a grant."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from http import HTTPStatus

from pydantic import BaseModel, ConfigDict, ValidationError
from yarl import URL

from bot.clients.calls import Answer, Attempt, ServiceCall
from bot.clients.credentials import Credential, Signed
from bot.clients.failures import json_of, model_of, refused_by_code
from bot.clients.http import ServiceHttp
from bot.clients.quota_guard import CallPermit, QuotaGuard
from bot.dataclass import dataclass
from bot.errors import NotConfigured
from bot.model.organizations.organization import Organization, OrganizationKey, read_in_portions
from bot.model.quotas.calls import CallCause
from bot.model.quotas.reported import ReportedLimits
from bot.service_errors import CredentialsRefused, RateLimited

LISTING_SCOPE = "ServiceInventory.settings.READ"
ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "Replace the data center's credential in INVENTORY_DATA_CENTERS.",
    HTTPStatus.FORBIDDEN: f"Listing organizations needs the scope {LISTING_SCOPE}.",
    HTTPStatus.NOT_FOUND: "The address of the data center is probably wrong.",
}


@dataclass(frozen=True, slots=True)
class DataCenterAccess:
    """How a data center is reached: `root` is its API root."""

    root: URL
    credential: Credential


class _Envelope(BaseModel):
    model_config = ConfigDict(strict=True)

    code: int


class _Listing(_Envelope):
    organizations: list[Organization]


class InventoryClient:
    """Lists organizations. Every attempt at a call is granted by `guard` before it is sent."""

    def __init__(
        self, http: ServiceHttp, guard: QuotaGuard, access: Mapping[str, DataCenterAccess]
    ) -> None:
        self._http = http
        self._guard = guard
        self._access = dict(access)
        self._readers = {center: _ListingReader() for center in access}

    @property
    def data_centers(self) -> tuple[str, ...]:
        """The configured ones, in the order of the settings."""
        return tuple(self._access)

    async def organizations(
        self, key: OrganizationKey, cause: CallCause
    ) -> tuple[Organization, ...]:
        """All organizations of the key's data center, as the service orders them.

        The very same tuple again for the very same answer: ten thousand are not read again.

        The call names the key's organization and counts against it; without one it names none
        and counts against the data center. One that no person waits for is never made again.

        Raises NotConfigured, QuotaError, DatabaseUnavailable, or a ServiceError.
        """
        access = self._access.get(key.data_center)
        if access is None:
            name = f"the inventory service ({key.data_center})"
            raise NotConfigured(name, ["INVENTORY_DATA_CENTERS"])
        signed = await access.credential.sign()
        try:
            return await self._list(access.root, key, cause, signed)
        except CredentialsRefused:
            renewed = await access.credential.renewed(signed)
            # What nobody waits for is one call; the next one has the new credential.
            if renewed is None or not cause.is_for_people:
                raise
        return await self._list(access.root, key, cause, renewed)

    async def _list(
        self, root: URL, key: OrganizationKey, cause: CallCause, signed: Signed
    ) -> tuple[Organization, ...]:
        naming = {"organization_id": key.organization_id} if key.organization_id else {}
        call = ServiceCall(
            service="inventory",
            label=f"the inventory service ({key.data_center})",
            method="GET",
            url=root / "organizations",
            params={**naming, **signed.params},
            headers=signed.headers,
            data_center=key.data_center,
            advice=ADVICE,
        )
        return await self._http.request(
            call,
            partial(self._readers[key.data_center].read, call),
            lambda: self._granted(key, cause),
            retried=cause.is_for_people,
        )

    @asynccontextmanager
    async def _granted(self, key: OrganizationKey, cause: CallCause) -> AsyncIterator[Attempt]:
        async with self._guard.call(key, cause) as grant:
            try:
                yield _GrantedAttempt(grant)
            except RateLimited as refusal:
                await grant.refused(refusal)
                raise


class _ListingReader:
    """Reads the listings of one data center; one that is the same as the last is not read again.

    It runs in a thread where the answer is large, hence what it remembers is replaced as a whole.
    """

    def __init__(self) -> None:
        self._last: tuple[bytes, tuple[Organization, ...]] = b"", ()

    def read(self, call: ServiceCall, answer: Answer) -> tuple[Organization, ...]:
        digest = sha256(answer.body).digest()
        known, organizations = self._last
        if digest != known:
            organizations = tuple(organizations_in(call, answer))
            self._last = digest, organizations
        return organizations


def organizations_in(call: ServiceCall, answer: Answer) -> list[Organization]:
    """The organizations of a listing's answer; raises ResponseUnreadable, or what its code says."""
    # Read once: ten thousand organizations take long enough to be felt by who waits.
    sent = json_of(call, answer)
    code = model_of(call, sent, _Envelope).code
    if code != 0:
        raise refused_by_code(call, answer.status, code)
    try:
        return read_in_portions(_listed(sent))
    except ValidationError:
        # Says where it is wrong.
        return model_of(call, sent, _Listing).organizations


def _listed(sent: object) -> object:
    return sent.get("organizations") if isinstance(sent, dict) else None


class _GrantedAttempt:
    """Tells the grant that the headers are here, and what they tell of the limits."""

    def __init__(self, grant: CallPermit) -> None:
        self._grant = grant

    def may_send(self) -> bool:
        return self._grant.may_send()

    async def responded(self, status: int, headers: Mapping[str, str]) -> None:
        await self._grant.responded()
        reported = ReportedLimits.from_headers(headers)
        # Those of a 429 go with the refusal.
        if reported is not None and status != HTTPStatus.TOO_MANY_REQUESTS:
            await self._grant.reported(reported)
