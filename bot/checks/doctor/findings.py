"""The doctor's findings, as values and as text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bot.errors import GatehouseError
from bot.ops.terminal import on_one_line

WELL = "ok"
# Nothing was tried: there is nothing to try, or something else has to be mended first.
NOT_CONFIGURED, NOT_TRIED = "not_configured", "not_tried"
WARNINGS = frozenset(
    {"setting_unknown", "setting_unused", "metrics_without_token", "form_field_unknown"}
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report.

    Attributes:
        subject: What was tried: "slack token", "inventory eu".
        code: `ok`, or a stable word for the mistake.
        sentence: What was seen; for a mistake also what to do.
    """

    subject: str
    code: str
    sentence: str

    @property
    def is_well(self) -> bool:
        """True if nothing needs to be done."""
        return self.code in {WELL, NOT_CONFIGURED} or self.code in WARNINGS

    @property
    def is_problem(self) -> bool:
        """True for something to fix, False for what could not be tried because of it."""
        return not self.is_well and self.code != NOT_TRIED

    @property
    def mark(self) -> str:
        """The first word of its line."""
        marks = {WELL: "ok", NOT_CONFIGURED: "SKIP", NOT_TRIED: "SKIP"}
        return marks.get(self.code, "WARN" if self.code in WARNINGS else "WRONG")


def unusable(problems: Sequence[str]) -> list[Finding]:
    """The settings themselves are wrong: one finding for each problem."""
    return [Finding("settings", "setting_wrong", problem) for problem in problems]


def warning(subject: str, code: str, sentence: str) -> Finding:
    """Something that may be meant so; `code` is one of `WARNINGS`."""
    return Finding(subject, code, sentence)


def skipped(subject: str, sentence: str) -> Finding:
    """Nothing to try, and nothing wrong with that."""
    return Finding(subject, NOT_CONFIGURED, sentence)


def well(subject: str, sentence: str) -> Finding:
    """Nothing to be done."""
    return Finding(subject, WELL, sentence)


def failed(subject: str, error: GatehouseError) -> Finding:
    """An error that says enough by itself."""
    return Finding(subject, error.outcome, error.sentence)


def as_table(findings: Sequence[Finding]) -> str:
    """Lines for people: a mark, the subject, the sentence, and the code of a mistake."""
    width = max((len(finding.subject) for finding in findings), default=0)
    lines = [_line(finding, width) for finding in findings]
    return "\n".join([*lines, "", _verdict(findings)])


def _line(one: Finding, width: int) -> str:
    code = f" [{one.code}]" if one.is_problem or one.mark == "WARN" else ""
    return on_one_line(f"{one.mark:<5}  {one.subject:<{width}}  {one.sentence}{code}")


def _verdict(findings: Sequence[Finding]) -> str:
    problems = sum(finding.is_problem for finding in findings)
    if problems == 0:
        return "All is well."
    return f"{problems} problem{'' if problems == 1 else 's'} to fix."


def as_json(findings: Sequence[Finding]) -> str:
    """An object for machines: `ok`, and `checks` with the fields of each finding."""
    checks = [{**asdict(finding), "ok": finding.is_well} for finding in findings]
    all_well = all(finding.is_well for finding in findings)
    return json.dumps({"ok": all_well, "checks": checks}, ensure_ascii=False, indent=2)
