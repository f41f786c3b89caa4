"""The three services: each credential is tried with one small read."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Protocol

from bot.checks.doctor.findings import Finding, failed, warning, well
from bot.errors import GatehouseError
from bot.organizations.rules import Organization, OrganizationKey
from bot.services.calls import CallCause
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    Redirected,
    ResponseUnreadable,
    ServiceError,
    ServiceRefused,
    ServiceUnreachable,
)
from bot.testusers.form_field import NO_SUCH_FLOW, Through, taken_form_field

CAUSE = CallCause("check")


class Inventory(Protocol):
    """The inventory calls that the doctor needs."""

    async def organizations(self, key: OrganizationKey, cause: CallCause) -> Sequence[Organization]:
        """Return the organizations of a data center."""
        ...


class Flows(Protocol):
    """The flow calls that the doctor needs."""

    async def read(self, flow_sid: str) -> list[str]:
        """Return the test users of a flow."""
        ...


class Email(Protocol):
    """The email calls that the doctor needs."""

    @property
    def auth(self) -> str: ...  # noqa: D102

    async def get(self, resource: str) -> object:
        """Return a resource that the key may read."""
        ...


async def examine_data_center(
    inventory: Inventory,
    data_center: str,
    organization_id: str | None,
    known_id: str | None = None,
) -> Finding:
    """One listing; `organization_id` is the configured one, which has to be in it.

    It names, and counts against, that one, or else `known_id`, the one that the bot would name.
    """
    subject = f"inventory {data_center}"
    try:
        found = await _listing(inventory, data_center, organization_id or known_id)
    except GatehouseError as error:
        return _data_center_failure(subject, error)
    ids = {organization.organization_id for organization in found}
    if not found:
        sentence = "The credential is good, but no organization can be seen with it."
        return Finding(subject, "no_organization", sentence)
    if organization_id and organization_id not in ids:
        sentence = (
            f"organization_id {organization_id} is not in the listing of {len(found)}:"
            " correct it in INVENTORY_DATA_CENTERS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    return well(subject, f"lists {len(found)} organization{'' if len(found) == 1 else 's'}.")


async def _listing(
    inventory: Inventory, data_center: str, organization_id: str | None
) -> Sequence[Organization]:
    """The listing, also where the service knows nothing of the organization."""
    try:
        return await inventory.organizations(
            OrganizationKey(data_center, organization_id or ""), CAUSE
        )
    except ServiceRefused:
        if not organization_id:
            raise
    return await inventory.organizations(OrganizationKey(data_center), CAUSE)


def _data_center_failure(subject: str, error: GatehouseError) -> Finding:
    codes: list[tuple[type[GatehouseError], str]] = [
        (CredentialsRefused, "credentials_refused"),
        (PermissionMissing, "listing_scope_missing"),
        (ServiceUnreachable, "wrong_host"),
        (Redirected, "wrong_host"),
        (ResponseUnreadable, "wrong_host"),
    ]
    code = next((code for kind, code in codes if isinstance(error, kind)), error.outcome)
    if isinstance(error, ServiceRefused) and error.status == HTTPStatus.NOT_FOUND:
        code = "wrong_host"
    advice = " Check INVENTORY_BASE_URL or the data center's base_url." * (code == "wrong_host")
    return Finding(subject, code, error.sentence + advice)


async def examine_flows(
    flows: Flows, aliases: Mapping[str, str], with_wrong_token: Flows | None = None
) -> list[Finding]:
    """The credentials, and every alias.

    A service that knows none of the flows is asked once more `with_wrong_token`: one that minds it
    as little is none.
    """
    found = await _each_flow(flows, aliases)
    all_unknown = (
        all(finding.code == "flow_unknown" for finding in found) if aliases else found[0].is_well
    )
    if not all_unknown or with_wrong_token is None or await _minds_its_token(with_wrong_token):
        return found
    return [Finding("flow", "wrong_host", _NO_FLOW_SERVICE)]


async def examine_form_field(
    through: Through, configured: str, flow_sid: str | None
) -> list[Finding]:
    """`FLOW_FORM_FIELD`, without changing a list; `flow_sid` is a flow that exists."""
    subject = "FLOW_FORM_FIELD"
    try:
        taken = await taken_form_field(through, configured, flow_sid)
    except ServiceError as error:
        return [failed(subject, error)]
    if taken == configured:
        return [well(subject, f"{configured} is the form field that the service takes.")]
    if taken is not None:
        sentence = f"The service takes {taken} and not {configured}: set FLOW_FORM_FIELD={taken}."
        return [Finding(subject, "form_field_wrong", sentence)]
    if flow_sid is None:
        return []
    sentence = f"cannot be tried: the service's answers do not tell if it takes {configured}."
    return [warning(subject, "form_field_unknown", sentence)]


async def _minds_its_token(flows: Flows) -> bool:
    """Return True if the service refuses a wrong token, as it should."""
    try:
        await flows.read(NO_SUCH_FLOW)
    except ServiceRefused as error:
        return error.status != HTTPStatus.NOT_FOUND
    except ServiceError:
        return True
    return False


async def _each_flow(flows: Flows, aliases: Mapping[str, str]) -> list[Finding]:
    found: list[Finding] = []
    for alias, flow_sid in (aliases or {"": NO_SUCH_FLOW}).items():
        finding = await _examine_flow(flows, alias, flow_sid)
        found.append(finding)
        if not finding.is_well and finding.code != "flow_unknown":
            break  # the next one would say the same
    return found


async def _examine_flow(flows: Flows, alias: str, flow_sid: str) -> Finding:
    subject = f"flow {alias}".strip()
    try:
        count = len(await flows.read(flow_sid))
    except ServiceRefused as error:
        if error.status != HTTPStatus.NOT_FOUND:
            return failed(subject, error)
        if not alias:
            return well(subject, "takes the credentials (no alias is configured).")
        sentence = f"There is no flow {flow_sid}: correct “{alias}” in FLOW_ALIASES."
        return Finding(subject, "flow_unknown", sentence)
    except ServiceError as error:
        return failed(subject, error)
    return well(subject, f"is there, with {count} test users.")


async def examine_email(email: Email, as_bearer: Email, resource: str = "templates") -> Finding:
    """The key in its configured form; Basic that is refused is tried as Bearer to learn why."""
    try:
        await email.get(resource)
    except (CredentialsRefused, PermissionMissing) as error:
        if email.auth == "basic" and await _works(as_bearer, resource):
            return Finding("email", "basic_refused", _BASIC_REFUSED)
        return failed("email", error)
    except ServiceError as error:
        return failed("email", error)
    return well("email", f"The key works ({email.auth}).")


async def _works(email: Email, resource: str) -> bool:
    try:
        await email.get(resource)
    except ServiceError:
        return False
    return True


_NO_FLOW_SERVICE = (
    "That address answers 404 to everything, even with a wrong token, so it is not the flow"
    " service. Check FLOW_BASE_URL, which goes without /v2."
)
_BASIC_REFUSED = (
    "The key is good, but Basic is refused: two-factor authentication is on for the account, or the"
    " service does not take Basic. Set EMAIL_AUTH=bearer."
)
