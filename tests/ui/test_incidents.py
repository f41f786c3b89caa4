"""The message of an incident, open and over."""

from datetime import UTC, datetime

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas import messages
from bot.quotas.rules.blocks import BlockCode, Blocks, Incident, IncidentDetail
from tests.support.requests import hold

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
OWN = {"minute": [37, 100], "day": [120, 1000], "concurrent": [1, 5]}
NASTY = "<!channel> <@U1> *x* " + "ü" * 400


def an_incident(code=BlockCode.MINUTE, **changed) -> Incident:
    detail = {"words": "You are blocked.", "sent_code": int(code), "is_foreign": True, "own": OWN}
    values = {
        "id": 7,
        "organization": 1,
        "key": OrganizationKey("eu", "20077314"),
        "code": int(code),
        "opened_at": AT,
        "closed_at": None,
        "refusals": 1,
        "detail": IncidentDetail(**{**detail, **changed.pop("detail", {})}),
        "blocks": Blocks().refused(code, AT.timestamp(), probe=False),
    }
    return Incident(**{**values, **changed})


@pytest.mark.parametrize(("sent", "shown"), [(57, "(sent as 57)"), (None, "(sent as none)")])
def test_a_code_that_is_not_documented_is_shown_as_sent(sent, shown):
    assert shown in messages.incident_card(an_incident(detail={"sent_code": sent}), "Acme").text


@pytest.mark.parametrize("code", list(BlockCode))
@pytest.mark.parametrize("is_over", [False, True])
def test_nasty_words_stay_within_slacks_limits_and_inert(code, is_over):
    closed_at = AT if is_over else None
    message = messages.incident_card(
        an_incident(code, detail={"words": NASTY}, closed_at=closed_at), NASTY
    )
    hold(message)
    hold(messages.muted(NASTY, AT))
