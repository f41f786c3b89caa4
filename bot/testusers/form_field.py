"""Finds out which form field the flow service accepts, without changing a list.

Deployments use different fields, and without a check, nobody would notice a wrong field until the
first approved change fails. So `gatehouse check` sends updates that the service must refuse: the
current list plus an identity over the documented 300 bytes, first in a field that no service uses,
then in each known field. The service refuses unknown fields because the right one is missing, and
the right one because of the identity. A nonexistent flow is tried first, and is enough if the
service checks the form before it looks up the flow.

If a service accepts such an update anyway, the check restores the previous list.
"""

from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus

from bot.services.errors import PermissionMissing, ServiceError, ServiceRefused
from bot.testusers.client import FlowClient

FIELDS = ("testUsers", "TestUsers")
NO_SUCH_FIELD = "GatehouseCheck"
NO_SUCH_FLOW = "FW" + "0" * 32
TOO_LONG = "x" * 301

# The status, and either the service's error or whether the long identity was stored.
Reply = tuple[int, object]


Through = Callable[[str], FlowClient]


async def taken_form_field(through: Through, configured: str, flow_sid: str | None) -> str | None:
    """Return the form field that the service accepts, or None if it can't be determined.

    `through` creates a client for a form field. The `configured` field is tried first. `flow_sid`
    is an existing flow, if one is known.
    """
    found = None
    with suppress(PermissionMissing):  # for a nonexistent flow, a 403 says nothing about the field
        found = await _taken_by(through, configured, NO_SUCH_FLOW, [])
    if found is None and flow_sid is not None:
        identities = await through(configured).read(flow_sid)
        found = await _taken_by(through, configured, flow_sid, identities)
    return found


async def _taken_by(
    through: Through, configured: str, flow_sid: str, identities: list[str]
) -> str | None:
    without_field = await _reply(through, NO_SUCH_FIELD, flow_sid, identities)
    for field in dict.fromkeys((configured, *FIELDS)):
        reply = await _reply(through, field, flow_sid, identities)
        if reply != without_field:
            return field
        if reply[0] == HTTPStatus.NOT_FOUND:
            return None  # the service looked up the flow before it checked the form
    return None


async def _reply(through: Through, field: str, flow_sid: str, identities: list[str]) -> Reply:
    try:
        stored = await through(field).replace(flow_sid, [*identities, TOO_LONG])
    except ServiceRefused as error:
        return error.status, (error.code, error.message.replace(field, "…"))
    await _restore(through, field, flow_sid, identities)
    return HTTPStatus.OK, TOO_LONG in stored


async def _restore(through: Through, field: str, flow_sid: str, identities: list[str]) -> None:
    for name in dict.fromkeys((field, *FIELDS)):
        with suppress(ServiceError):
            if await through(name).replace(flow_sid, identities) == identities:
                return
