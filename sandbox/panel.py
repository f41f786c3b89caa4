"""Lets people make Slack and the services fail, and shows recent calls to the services."""

from collections.abc import Awaitable, Callable
from dataclasses import asdict
from typing import Any

from sandbox.flows import ALIASES
from sandbox.greedy import Greedy
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.organizations import DataCenter
from sandbox.services.running import RunningServices
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Json
from sandbox.slack.server import RunningSlack

SHOWN_CALLS = 14
SLOW_SECONDS = 4

OUTAGES: dict[str, dict[str, Any]] = {
    "503": {"kind": FaultKind.STATUS, "status": 503, "message": "Service unavailable."},
    "401": {"kind": FaultKind.STATUS, "status": 401, "message": "Authentication failed."},
    "slow": {"kind": FaultKind.SLOW, "seconds": SLOW_SECONDS},
    "reset": {"kind": FaultKind.RESET},
}


class Panel:
    """The services panel of the sandbox's page.

    `shown` returns the content, and `acts` contains functions that handle the panel's buttons.
    """

    def __init__(self, slack: RunningSlack, services: RunningServices, greedy: Greedy) -> None:
        self._slack = slack
        self._services = services
        self._greedy = greedy
        # The gateway's last answer to a program that asked.
        self._answer = ""
        # Keyed by service and, for the inventory, by data center.
        self._outages: dict[tuple[str, str | None], tuple[str, Fault]] = {}

    @property
    def acts(self) -> dict[str, Callable[[Json], Awaitable[Json]]]:
        """The functions that handle `POST /page/panel/<name>`, keyed by name."""
        return {
            "block": self._block,
            "outage": self._set_outage,
            "list": self._edit_list,
            "slack": self._break_slack,
            "greedy": self._run_greedy_script,
            "ask": self._ask_as_a_program,
        }

    def shown(self) -> Json:
        """Return the panel's content, such as organizations, outages and recent calls."""
        services = self._services.state
        return {
            "organizations": [
                organization
                for center in services.data_centers.values()
                for organization in _organizations(services, center)
            ],
            "outages": [self._outage("inventory", suffix) for suffix in services.data_centers]
            + [self._outage("flow"), self._outage("email")],
            "flows": [
                {"sid": sid, "alias": alias, "identities": services.flows[sid].identities}
                for alias, sid in ALIASES.items()
            ],
            "calls": [asdict(call) for call in services.calls[-SHOWN_CALLS:]],
            "answer": self._answer,
            "greedy": {way: run.shown() for way, run in self._greedy.runs.items()},
        }

    def _outage(self, service: str, data_center: str | None = None) -> Json:
        kind, _ = self._outages.get((service, data_center), (None, None))
        return {"service": service, "data_center": data_center, "kind": kind}

    async def _block(self, body: Json) -> Json:
        """Block an organization with the given code, or unblock it if the code is None."""
        organization = (body["data_center"], body["organization_id"])
        limits = self._services.state.limits
        if body["code"] is None:
            limits.lift(organization)
        else:
            limits.block(organization, body["code"])
        return {}

    async def _set_outage(self, body: Json) -> Json:
        """Make a service fail in the given way, or make it work again."""
        service, data_center, kind = body["service"], body["data_center"], body["kind"]
        if (service, data_center) in self._outages:
            _, fault = self._outages.pop((service, data_center))
            fault.lift()
        if kind:
            fault = Fault(service=service, data_center=data_center, **OUTAGES[kind])
            self._services.state.faults.add(fault)
            self._outages[service, data_center] = (kind, fault)
        return {}

    async def _edit_list(self, body: Json) -> Json:
        self._services.state.edit_flow(body["sid"], body["identities"])
        return {}

    async def _break_slack(self, body: Json) -> Json:
        """Make the bot's next attempt to post a message fail."""
        faults = self._slack.workspace.faults
        method = "chat.postMessage"
        match body["kind"]:
            case "ratelimit":
                faults.ratelimit(method, retry_after=2)
            case "status":
                faults.status(method, 500, times=2)
            case "cut":
                faults.cut(method)
        return {}

    async def _ask_as_a_program(self, body: Json) -> Json:
        self._answer = await self._greedy.ask(body["text"])
        return {}

    async def _run_greedy_script(self, body: Json) -> Json:
        if "organization_id" in body:
            await self._greedy.start(**body)
        else:
            await self._greedy.stop(body["through"])
        return {}


def _organizations(services: ServicesState, center: DataCenter) -> list[Json]:
    """Return a data center's active organizations.

    If an organization is blocked, `code` is the error code in the service's responses.
    """
    listed = []
    for organization in center.organizations:
        if not organization.is_org_active:
            continue
        key = (center.suffix, organization.organization_id)
        block = services.limits.current(key).block
        listed.append(
            {
                "data_center": center.suffix,
                "organization_id": organization.organization_id,
                "name": organization.name,
                "code": block.code if block else None,
            }
        )
    return listed
