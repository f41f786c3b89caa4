"""Describes problems with data centers, one line per cause."""

from collections.abc import Sequence

from bot.organizations.rules.directory import DataCenterReport
from bot.slack.messages import text

CAUSE_CHARACTERS, CAUSE_MARKUP = 300, 340


def problems(reports: Sequence[DataCenterReport]) -> list[str]:
    """Return a line for each cause, naming every data center that couldn't be loaded."""
    groups: dict[tuple[str, bool], list[DataCenterReport]] = {}
    for report in reports:
        groups.setdefault((_cause(report), report.listing is None), []).append(report)
    return [_line(cause, group) for (cause, _), group in groups.items()]


def _cause(report: DataCenterReport) -> str:
    """Return the cause in words that data centers with the same problem share."""
    return (report.failure or "").replace(f" ({report.data_center})", "")


def _line(cause: str, group: Sequence[DataCenterReport]) -> str:
    names = ", ".join(report.data_center for report in group)
    times = [report.listing.fetched_at for report in group if report.listing]
    verb = "is" if len(group) == 1 else "are"
    state = f"{verb} out of date (from {text.time(min(times))})" if times else "couldn't be loaded"
    why = text.cut(text.sentence(cause, CAUSE_CHARACTERS), CAUSE_MARKUP)
    return f":warning: *{names}* {state}{f': {why}' if cause else '.'}"
