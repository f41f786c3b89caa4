"""The text and JSON forms of a report, and the parts of the bot that checks use."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.checks.rules import WRONG, Finding, all_well
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.ops.redaction import on_one_line
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.services.calls import ServiceLog
from bot.services.http import ServiceHttp
from bot.settings import Settings
from bot.slack.client import SlackClient
from bot.store.engine import Database


@dataclass(frozen=True)
class CheckParts:
    """The parts of the bot that the checks use. Tests can pass a smaller object."""

    settings: Settings
    clock: Clock
    database: Database
    slack: SlackClient
    http: ServiceHttp
    inventory: InventoryClient
    directory: OrganizationDirectory
    metrics: Metrics
    services: ServiceLog


def as_table(findings: Sequence[Finding]) -> str:
    """Return the report as text: one line per finding, followed by a verdict."""
    width = max((len(finding.subject) for finding in findings), default=0)
    lines = []
    for finding in findings:
        code = f" [{finding.code}]" if finding.mark in {"WARN", WRONG} else ""
        line = f"{finding.mark:<5}  {finding.subject:<{width}}  {finding.for_operators}{code}"
        lines.append(on_one_line(line))
    verdict = "All is well." if all_well(findings) else "Correct each problem that is marked WRONG."
    return "\n".join([*lines, "", verdict])


def as_json(findings: Sequence[Finding]) -> str:
    """Return the report as a JSON object, with the verdict in `ok` and the findings in `checks`."""
    checks = [
        {
            "subject": finding.subject,
            "code": finding.code,
            "sentence": finding.for_operators,
            "ok": finding.is_well,
        }
        for finding in findings
    ]
    return json.dumps({"ok": all_well(findings), "checks": checks}, ensure_ascii=False, indent=2)
