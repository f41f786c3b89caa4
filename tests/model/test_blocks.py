"""Pauses after a 429: how long, how they grow, and whose call ends them."""

from dataclasses import replace

import pytest

from bot.quotas.rules.blocks import BlockCode, Blocks, pause_seconds
from bot.quotas.rules.limits import CallClass

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("code", "pauses"),
    [
        (BlockCode.MINUTE, [60, 120, 240, 480, 900, 900]),
        (BlockCode.DAY, [900, 1800, 3600, 3600]),
        (BlockCode.CONCURRENT, [2, 4, 8, 16, 32, 60, 60]),
    ],
)
def test_pauses_double_up_to_their_longest(code, pauses):
    assert [pause_seconds(code, tries) for tries in range(len(pauses))] == pauses
    assert pause_seconds(code, 10**12) == pauses[-1]


@pytest.mark.parametrize("code", [None, 0, 43, 57, -1])
def test_a_code_that_is_not_documented_is_acted_on_as_44(code):
    assert BlockCode.known(code) is BlockCode.MINUTE


def test_calls_that_were_in_flight_do_not_lengthen_the_pause():
    blocks = Blocks()
    for later in range(5):
        blocks = blocks.refused(BlockCode.MINUTE, NOW + later, probe=False)
    assert blocks.longest.failed_tries == 0
    assert blocks.longest.until == NOW + 4 + 60
    assert blocks.longest.since == NOW


def test_a_known_pause_is_never_shortened():
    blocks = Blocks().refused(BlockCode.DAY, NOW, probe=False)
    blocks = blocks.refused(BlockCode.CONCURRENT, NOW + 1, probe=False)
    assert blocks.longest.code is BlockCode.DAY
    blocks = blocks.refused(BlockCode.DAY, NOW - 500, probe=False)
    assert blocks.longest.until == NOW + 900


@pytest.mark.parametrize("call_class", list(CallClass))
def test_nobody_calls_during_the_pause(call_class):
    blocks = Blocks().refused(BlockCode.MINUTE, NOW, probe=False)
    assert blocks.in_the_way_of(call_class, NOW + 59.9) == blocks.longest


def test_after_the_pause_one_probe_is_let_through_and_nobody_else():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW, probe=False)
    later = NOW + 60
    assert blocks.in_the_way_of(CallClass.PERSON, later)
    assert blocks.in_the_way_of(CallClass.BACKGROUND, later)
    assert blocks.in_the_way_of(CallClass.PROBE, later) is None
    probing = replace(blocks, probing_until=later + 15)
    assert probing.in_the_way_of(CallClass.PROBE, later + 14)
    assert probing.in_the_way_of(CallClass.PROBE, later + 15) is None


def test_a_straggler_does_not_end_the_probe_that_is_under_way():
    blocks = replace(Blocks().refused(BlockCode.MINUTE, NOW, probe=False), probing_until=NOW + 75)
    assert blocks.refused(BlockCode.DAY, NOW + 61, probe=False).probing_until == NOW + 75
    assert blocks.refused(BlockCode.MINUTE, NOW + 61, probe=True).probing_until == 0


def test_probe_that_tells_nothing_is_repeated_twice_as_late():
    blocks = replace(Blocks().refused(BlockCode.MINUTE, NOW, probe=False), probing_until=NOW + 75)
    again = blocks.unclear(NOW + 61)
    assert again.longest.until == NOW + 61 + 120
    assert again.probing_until == 0


def test_a_try_that_is_put_off_is_no_failed_one():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW, probe=False)
    blocks = blocks.refused(BlockCode.CONCURRENT, NOW, probe=False)
    later = blocks.postpone(NOW + 500)
    assert (later.longest.code, later.longest.until) == (BlockCode.MINUTE, NOW + 500)
    assert later.longest.failed_tries == 0
    assert later.blocks[0] == blocks.blocks[1]
    assert later.in_the_way_of(CallClass.PROBE, NOW + 499) is not None
    assert later.in_the_way_of(CallClass.PROBE, NOW + 500) is None
