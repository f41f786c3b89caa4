"""What the doctor found, as values and as text."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from bot.errors import GatehouseError

WELL = "ok"


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
        """Whether nothing is to be done."""
        return self.code == WELL


def unusable(problems: Sequence[str]) -> list[Finding]:
    """The settings themselves are wrong: one finding for each problem."""
    return [Finding("settings", "setting_wrong", problem) for problem in problems]


def well(subject: str, sentence: str) -> Finding:
    """Nothing to be done."""
    return Finding(subject, WELL, sentence)


def failed(subject: str, error: GatehouseError) -> Finding:
    """An error that says enough by itself."""
    return Finding(subject, error.outcome, error.sentence)


def as_table(findings: Sequence[Finding]) -> str:
    """Lines for people: a mark, the subject, the sentence, and the code of a mistake."""
    width = max((len(one.subject) for one in findings), default=0)
    lines = [_line(one, width) for one in findings]
    wrong = sum(not one.is_well for one in findings)
    verdict = "All is well." if wrong == 0 else f"To be mended: {wrong}."
    return "\n".join([*lines, "", verdict])


def _line(one: Finding, width: int) -> str:
    mark, code = ("ok   ", "") if one.is_well else ("WRONG", f" [{one.code}]")
    return f"{mark}  {one.subject:<{width}}  {one.sentence}{code}"


def as_json(findings: Sequence[Finding]) -> str:
    """An object for machines: `ok`, and `checks` with the fields of each finding."""
    checks = [{**asdict(one), "ok": one.is_well} for one in findings]
    all_well = all(one.is_well for one in findings)
    return json.dumps({"ok": all_well, "checks": checks}, ensure_ascii=False, indent=2)
