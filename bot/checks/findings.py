"""The results of checks, their text and JSON forms, and the parts of the bot that checks use."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from bot.checks.rules import SEVERITIES, Part, Severity
from bot.errors import GatehouseError
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

WELL = "ok"
# The check didn't run: the service isn't configured, or another problem has to be fixed first.
NOT_CONFIGURED, NOT_TRIED = "not_configured", "not_tried"
SHORT = {
    Severity.WELL: "ok",
    Severity.NOT_CONFIGURED: "SKIP",
    Severity.WARNING: "WARN",
    Severity.UNTRIED: "SKIP",
}


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


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    `subject` is the name in the report, and a `Part` if this is checked while the bot runs. `code`
    is `ok` or a stable name for the problem. `sentence` describes the problem and the fix. Those
    who run the bot read `explanation` instead, if there is one.
    """

    subject: str | Part
    code: str
    sentence: str
    explanation: str = ""

    @property
    def severity(self) -> Severity:
        """The severity, which follows from the code."""
        return SEVERITIES.get(self.code, Severity.PROBLEM)

    @property
    def is_well(self) -> bool:
        """True if no action is needed (also for warnings and unconfigured services)."""
        return self.severity <= Severity.WARNING


def well(subject: str | Part, sentence: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(subject, WELL, sentence)


def failed(subject: str | Part, error: GatehouseError) -> Finding:
    """Return a finding with the error's code and sentence."""
    return Finding(subject, error.outcome, error.sentence)


def as_table(findings: Sequence[Finding]) -> str:
    """Return the report as text: one line per finding, followed by a verdict."""
    width = max((len(finding.subject) for finding in findings), default=0)
    lines = []
    for finding in findings:
        mark = SHORT.get(finding.severity, "WRONG")
        code = f" [{finding.code}]" if mark in {"WARN", "WRONG"} else ""
        sentence = finding.explanation or finding.sentence
        line = f"{mark:<5}  {finding.subject:<{width}}  {sentence}{code}"
        lines.append(on_one_line(line))
    all_well = all(finding.is_well for finding in findings)
    verdict = "All is well." if all_well else "Correct each problem that is marked WRONG."
    return "\n".join([*lines, "", verdict])


def as_json(findings: Sequence[Finding]) -> str:
    """Return the report as a JSON object, with the verdict in `ok` and the findings in `checks`."""
    checks = [
        {
            "subject": finding.subject,
            "code": finding.code,
            "sentence": finding.explanation or finding.sentence,
            "ok": finding.is_well,
        }
        for finding in findings
    ]
    all_well = all(finding.is_well for finding in findings)
    return json.dumps({"ok": all_well, "checks": checks}, ensure_ascii=False, indent=2)
