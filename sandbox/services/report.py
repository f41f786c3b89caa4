"""The services' state as JSON, for the sandbox's page and for people."""

from typing import Any

from sandbox.services.faults import Fault
from sandbox.services.limits import Limits, OrganizationAt
from sandbox.services.state import ServicesState

LISTED_ORGANIZATIONS = 200


def state(services: ServicesState) -> dict[str, Any]:
    """Organizations with their use, flows, faults and tokens; times are those of `now`.

    At most 200 organizations of a data center are listed, `total` says how many there are.
    """
    return {
        "now": services.now(),
        "data_centers": [
            {
                "data_center": suffix,
                "total": len(data_center.organizations),
                "unnamed": _use(services.limits, (suffix, None)),
                "organizations": [
                    {
                        "organization_id": organization.organization_id,
                        "name": organization.name,
                        "is_org_active": organization.is_org_active,
                        **_use(services.limits, (suffix, organization.organization_id)),
                    }
                    for organization in data_center.organizations[:LISTED_ORGANIZATIONS]
                ],
            }
            for suffix, data_center in services.data_centers.items()
        ],
        "flows": [
            {"sid": flow.sid, "identities": flow.identities, "updates": len(flow.history)}
            for flow in services.flows.values()
        ],
        "faults": [_fault(fault) for fault in services.faults.active()],
        "oauth": {"granted": services.oauth.granted, "refused": services.oauth.refused},
        "calls": len(services.calls),
        "refused": len(services.refused),
    }


def _use(limits: Limits, at: OrganizationAt) -> dict[str, Any]:
    usage, plan = limits.current(at), limits.plan(at)
    return {
        "plan": limits.plans.get(at, "free"),
        "minute": {"used": len(usage.minute), "limit": limits.rules.per_minute},
        "day": {"used": len(usage.day), "limit": plan.per_day},
        "in_flight": {
            "used": usage.in_flight,
            "peak": usage.peak_in_flight,
            "limit": plan.concurrent,
        },
        "block": {"code": usage.block.code, "until": usage.block.until} if usage.block else None,
    }


def _fault(fault: Fault) -> dict[str, Any]:
    return {
        "fault_id": fault.fault_id,
        "kind": fault.kind,
        "service": fault.service,
        "data_center": fault.data_center,
        "organization_id": fault.organization_id,
        "flow_sid": fault.flow_sid,
        "method": fault.method,
        "times": fault.times,
        "struck": fault.struck,
        "seconds": fault.seconds,
    }
