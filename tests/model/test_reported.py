"""What the headers of an answer tell of a limit."""

import pytest

from bot.services.calls import ReportedLimits


def reported(limit="2500", remaining="2400", reset="60"):
    sent = {"Limit": limit, "Remaining": remaining, "Reset": reset}
    names = {f"X-Rate-Limit-{name}": value for name, value in sent.items() if value is not None}
    return ReportedLimits.from_headers(names)


def test_whole_numbers_are_taken_as_sent():
    assert reported() == ReportedLimits(limit=2500, remaining=2400, reset_seconds=60)
    assert reported("0", "0", "0") == ReportedLimits(0, 0, 0)
    assert reported("9" * 9) == ReportedLimits(999_999_999, 2400, 60)


@pytest.mark.parametrize("name", ["limit", "remaining", "reset"])
@pytest.mark.parametrize("sent", [None, "", "many", "-1", "1.5", "1,000", "²", "٣", "9" * 10])
def test_anything_else_tells_nothing(name, sent):
    assert reported(**{name: sent}) is None
