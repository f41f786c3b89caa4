"""What a measurement yields: ratios to a peer measured in the same run, as a table and as JSON."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Aim:
    """The bound that a figure's ratio is held to."""

    most: float | None = None
    least: float | None = None

    def is_met(self, ratio: float) -> bool:
        """Whether the ratio is within the bound."""
        return (self.most is None or ratio <= self.most) and (
            self.least is None or ratio >= self.least
        )

    def __str__(self) -> str:
        parts = []
        if self.least is not None:
            parts.append(f">= {self.least:g}")
        if self.most is not None:
            parts.append(f"<= {self.most:g}")
        return " and ".join(parts)


NO_AIM = Aim()


@dataclass(frozen=True)
class Figure:
    """One line: ours and theirs round by round, and what the ratio between them is held to.

    Attributes:
        what: What was measured.
        unit: Of `ours` and `theirs`.
        peer: Whom or what we are compared with.
        ours, theirs: One value a round, taken in turn.
        aim: The bound of the median ratio; `NO_AIM` when it is only told.
        typical: What the table shows of a side's values: their mean where most are nothing.
    """

    what: str
    unit: str
    peer: str
    ours: Sequence[float]
    theirs: Sequence[float]
    aim: Aim = NO_AIM
    typical: Callable[[Sequence[float]], float] = median

    @property
    def ratios(self) -> list[float]:
        """Ours to theirs, round by round; nothing to nothing is 0."""
        return [_ratio(*pair) for pair in zip(self.ours, self.theirs, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return median(self.ratios)

    @property
    def is_met(self) -> bool:
        """Whether the aim is met; true without one."""
        return self.aim.is_met(self.ratio)

    def as_json(self) -> dict[str, object]:
        """Everything, for the results file."""
        return {
            "what": self.what,
            "unit": self.unit,
            "peer": self.peer,
            "ours": list(self.ours),
            "theirs": list(self.theirs),
            "ratio_median": self.ratio,
            "ratio_lowest": min(self.ratios),
            "ratio_highest": max(self.ratios),
            "aim": str(self.aim),
            "is_met": self.is_met,
        }

    def cells(self) -> tuple[str, ...]:
        """A line of the table."""
        verdict = ("yes" if self.is_met else "NO") if str(self.aim) else ""
        return (
            self.what,
            _quantity(self.typical(self.ours), self.unit),
            _quantity(self.typical(self.theirs), self.unit),
            self.peer,
            _number(self.ratio),
            f"{_number(min(self.ratios))} to {_number(max(self.ratios))}",
            str(self.aim),
            verdict,
        )


def _ratio(ours: float, theirs: float) -> float:
    if theirs:
        return ours / theirs
    return float("inf") if ours else 0.0


HEADINGS = ("what", "Gatehouse", "peer", "which", "ratio", "spread", "aim", "met")


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a table in Markdown."""
    rows = [HEADINGS, *(figure.cells() for figure in figures)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    lines = [_line(row, widths) for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
    return "| " + " | ".join(cells) + " |"


def _quantity(value: float, unit: str) -> str:
    return f"{_number(value)} {unit}".rstrip()


def _number(value: float) -> str:
    """Three digits that matter, without an exponent."""
    if value == 0 or value != value or abs(value) == float("inf"):  # noqa: PLR0124 - NaN
        return f"{value:g}"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.2e}"
