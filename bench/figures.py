"""Ratios to a peer measured in the same run, as a table and as JSON."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median


@dataclass(frozen=True)
class Figure:
    """A line of a table: the values of both sides in each round, and their ratio.

    Attributes:
        what: The measured quantity.
        unit: The unit of `ours` and `theirs`.
        peer: The program or the step that Gatehouse is compared with.
        ours, theirs: One value per round, measured in turn.
        most: The highest median ratio that is promised, or None.
        typical: The function that gives a side's value for the table.
    """

    what: str
    unit: str
    peer: str
    ours: Sequence[float]
    theirs: Sequence[float]
    most: float | None = None
    typical: Callable[[Sequence[float]], float] = median

    @property
    def ratios(self) -> list[float]:
        """The ratio of `ours` to `theirs` in each round; 0 if both are 0."""
        return [_ratio(*pair) for pair in zip(self.ours, self.theirs, strict=True)]

    @property
    def is_met(self) -> bool:
        """True if the promised ratio is met, or if none is promised."""
        return self.most is None or median(self.ratios) <= self.most

    def as_json(self) -> dict[str, object]:
        """Return all values for the results file."""
        return {
            "what": self.what,
            "unit": self.unit,
            "peer": self.peer,
            "ours": list(self.ours),
            "theirs": list(self.theirs),
            "ratio_median": median(self.ratios),
            "most": self.most,
        }

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table's line."""
        ratios = self.ratios
        return (
            self.what,
            f"{_number(self.typical(self.ours))} {self.unit}".rstrip(),
            f"{_number(self.typical(self.theirs))} {self.unit}".rstrip(),
            self.peer,
            _number(median(ratios)),
            f"{_number(min(ratios))} to {_number(max(ratios))}",
            "" if self.most is None else f"<= {self.most:g}: {'yes' if self.is_met else 'NO'}",
        )


def _ratio(ours: float, theirs: float) -> float:
    if theirs:
        return ours / theirs
    return float("inf") if ours else 0.0


HEADINGS = ("what", "Gatehouse", "peer", "which", "ratio", "spread", "promised")


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a table in Markdown."""
    rows = [HEADINGS, ["---"] * len(HEADINGS), *(figure.cells() for figure in figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _number(value: float) -> str:
    """Return the number with three significant digits and without an exponent."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
