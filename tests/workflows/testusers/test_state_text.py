"""What is said of a request that has moved on."""

from datetime import UTC, datetime, timedelta

import pytest

from bot.approvals.rules import State
from bot.testusers.messages.phrases import ago, state_sentence
from bot.testusers.rules.changes import Change, Flow
from bot.testusers.rules.requests import Request, RequestedChange, Who

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "just now"), (59, "just now"), (60, "1 min ago"), (7300, "2 h ago"), (180_000, "2 d ago")],
)
def test_a_decision_is_some_time_ago(seconds, said) -> None:
    assert ago(NOW, NOW + timedelta(seconds=seconds)) == said


def test_a_late_click_hears_who_decided_on_what() -> None:
    change = Change(tuple(f"+{number}" for number in range(5)), ("+9",))
    by = Who("U0ADA", "Ada")
    flow = Flow("FW" + "ab" * 16, "welcome")
    request = Request(
        "1",
        flow,
        by,
        RequestedChange(change, (), 0),
        NOW,
        NOW,
        State.APPLIED,
        decided_by=by,
        decided_at=NOW,
    )
    assert state_sentence(request, NOW + timedelta(minutes=3)) == (
        "Ada already approved this 3 min ago: add +0, +1, +2 and 2 more to welcome"
        " and remove +9 from welcome. It has been applied."
    )
