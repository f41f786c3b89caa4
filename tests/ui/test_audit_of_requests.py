"""The audit reads as sentences: presets, starts and escalations too."""

import json
from datetime import UTC, datetime

import pytest

from bot.audit import messages as audit
from bot.store.audit_entry import RecordedEntry

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
SID = "FW" + "AB" * 16
NAMES = audit.Names({"U0OTTO": "Otto"}, {SID: "welcome"})


@pytest.mark.parametrize(
    ("actor", "action", "subject", "detail", "said"),
    [
        (
            "U0OTTO",
            "preset.saved",
            "demo",
            {"before": ["+1"], "after": ["+2"]},
            "*Otto* saved the preset `@demo`: `+2` (before: `+1`)",
        ),
        (
            "U0OTTO",
            "preset.deleted",
            "demo",
            {"before": ["+1"]},
            "*Otto* deleted the preset `@demo` (`+1`)",
        ),
        (
            "bot",
            "request.applied_in_part",
            "12345678",
            {"flow": SID, "additions": ["+1"], "removals": [], "approvers": ["U0OTTO"]},
            "added `+1` to *welcome*, approved by *Otto*; the rest of the change failed",
        ),
        ("bot", "request.started", "12345678", {"flow": SID}, "*welcome* started as scheduled"),
        (
            "bot",
            "request.escalated",
            "12345678",
            {"flow": SID, "to": ["U0ADAM"]},
            "*welcome* was pending too long and has been escalated",
        ),
    ],
)
def test_an_entry_of_a_request_or_preset_is_a_sentence(actor, action, subject, detail, said):
    entry = RecordedEntry(1, NOW, actor, action, subject, json.dumps(detail), "", "")
    assert said in audit.audit([entry], "head", NAMES).text
