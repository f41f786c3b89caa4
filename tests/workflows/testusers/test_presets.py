"""Presets: names that stand for people at the time of asking."""

import pytest

from bot.errors import NotFound, Refused
from bot.testusers import presets
from bot.testusers.messages import notes, phrases
from tests.support.testusers import ADA, OTTO, VERA


async def test_saving_and_deleting_are_audited_with_what_was(world):
    otto = await world.person(OTTO)
    await presets.save_preset(world, otto, "demo", ("+1",))
    await presets.delete_preset(world, otto, "demo")
    with pytest.raises(NotFound, match="no preset “@demo”"):
        await presets.delete_preset(world, otto, "demo")
    assert await world.audited() == [(OTTO, "preset.saved"), (OTTO, "preset.deleted")]
    assert await presets.every_preset(world, otto) == []


async def test_a_viewer_looks_and_changes_nothing(world):
    vera = await world.person(VERA)
    await presets.save_preset(world, await world.person(ADA), "demo", ("+15550100",))
    for act in (
        presets.save_preset(world, vera, "demo", ("+1",)),
        presets.delete_preset(world, vera, "demo"),
    ):
        with pytest.raises(Refused):
            await act
    shown = notes.presets(await presets.every_preset(world, vera), phrases.masked).text
    assert "`@demo` (1 test user): `…0100` · saved by Ada Approver" in shown
    assert "5550" not in shown
