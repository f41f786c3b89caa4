"""Two bots that share a database do only what was approved, whatever happens meanwhile."""

from datetime import UTC, datetime

import pytest

from sandbox.slack.messages import Message
from tests.simulation.pair.life import HAPPENS, begun
from tests.simulation.pair.model import Effect, Model, read
from tests.support.world import ADA, OTTO

CARD = (
    ":hourglass: *Waiting for approval*\n*Otto Operator* wants to add *1 test user* to *welcome*"
    " for 2 min; keep *1 test user* on *welcome* with no end date (currently until"
    " <!date^1795772699^{time}|soon>)\n*Add for 2 min (1):*\n`+1`\n"
    "*Keep with no end date (currently until <!date^1795772699^{time}|soon>) (1):*\n`+2`\n> `+3`"
)


@pytest.mark.postgres
@pytest.mark.slow
@pytest.mark.timeout(600)
async def test_two_bots_do_only_what_was_approved():
    async with begun(seed=6) as life:
        problems = await life.live(80)
    assert not problems
    assert any("*Applied*" in card.all_text for card in life.cards())
    assert life.done.keys() >= HAPPENS


def test_the_model_reads_whom_a_card_changes():
    card = read(shown())
    assert card is not None
    assert card.effects == {"+1": Effect("add", seconds=120), "+2": Effect("keep")}


def shown() -> Message:
    section = {"type": "section", "text": {"type": "mrkdwn", "text": CARD}}
    return Message("C0APPROVALS", "1.0", "U0GATEHOUSE", blocks=[section])


def test_the_model_notices_what_nobody_approved():
    model = Model(lambda: datetime(2026, 3, 2, 9, 0, tzinfo=UTC))
    model.approves(OTTO, shown())
    model.posts("welcome", [], ["+1"])
    assert len(model.problems) == 1
    model.approves(ADA, shown())
    model.posts("welcome", ["+1"], ["+1"])
    assert len(model.problems) == 1
    model.posts("welcome", ["+1"], [])
    assert len(model.problems) == 2
