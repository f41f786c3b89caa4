"""What somebody writes into the database is a text in messages: it mentions and formats nothing."""

import json
from datetime import UTC, datetime

import pytest

from bot.audit import messages as audit
from bot.quotas import messages
from bot.store.audit_entry import RecordedEntry
from bot.testusers.messages import notes
from bot.testusers.rules.requests import Preset, Who
from tests.support.requests import texts_of
from tests.ui.test_incidents import an_incident

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
NASTY = "`<!channel> <@U1>"
NAMED = Preset(NASTY, (NASTY,), Who("U0OTTO", NASTY), AT)


def an_entry(action: str, detail: str) -> RecordedEntry:
    return RecordedEntry(1, AT, "U0OTTO", action, NASTY, detail, "", "")


@pytest.mark.parametrize(
    "message",
    [
        messages.incident_card(an_incident(detail={"words": NASTY}), "x"),
        audit.audit(
            [an_entry("plan.set", json.dumps({"before": NASTY, "plan": NASTY}))],
            NASTY,
            audit.Names(),
        ),
        notes.presets([NAMED], sees_identities=True),
        notes.presets([NAMED], sees_identities=False),
        notes.preset_saved(NASTY, [NASTY], NAMED),
        notes.preset_deleted(NAMED),
    ],
    ids=lambda message: message.text[:20],
)
def test_edited_row_mentions_nobody(message):
    shown = "\n".join(texts_of(message))
    assert "<!channel" not in shown
    assert "<@" not in shown


@pytest.mark.parametrize("seconds", ["Infinity", "NaN", "1e999", '"x"', "[]", "{}", "null"])
def test_edited_entry_leaves_the_others_to_be_read(seconds):
    entries = [an_entry("alert.muted", f'{{"seconds": {seconds}}}'), an_entry("x", "{}")]
    assert "*Last 2 audit entries*" in audit.audit(entries, "0", audit.Names()).text
