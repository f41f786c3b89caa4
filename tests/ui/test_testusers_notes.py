"""Direct messages and forms about requests say what became of them, and fit."""

import pytest

from bot.approvals.rules import State
from bot.slack.messages.ids import TESTUSERS_EXTEND
from bot.testusers.messages import notes
from bot.testusers.messages.phrases import in_full
from bot.testusers.parse.form import Prefilled
from bot.testusers.rules.changes import Change
from bot.testusers.rules.requests import Request, RequestedChange
from tests.support.requests import FLOW, NOW, OTTO


@pytest.mark.parametrize(
    ("identities", "duration", "shown"),
    [
        (["+15550100"], 7200, "2h"),
        (["because"], None, ""),
    ],
)
def test_who_asked_is_told_of_the_end_and_can_ask_again(identities, duration, shown) -> None:
    requested = RequestedChange(Change(tuple(identities)), (), 0, duration_seconds=duration)
    request = Request("1", FLOW, OTTO, requested, NOW, NOW, State.APPLIED)
    message = notes.outcome(request, {"event": "ended", "identities": identities})
    assert message.text.startswith(f"Access to *welcome* has ended for {in_full(identities[0])}")
    (again,) = [block for block in message.slack_blocks if block["type"] == "actions"]
    (button,) = again["elements"]
    assert (button["text"]["text"], button["action_id"]) == ("Give access again", TESTUSERS_EXTEND)
    assert Prefilled.of(button["value"]) == Prefilled(FLOW.sid, "add", tuple(identities), shown)
