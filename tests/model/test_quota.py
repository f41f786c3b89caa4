"""The guard allows calls that are within the limits, and pauses calls after a 429 response."""

import random
from dataclasses import replace

import pytest

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import LIMITS, STALL, LimitKind, Limits, Plan, applying
from bot.quotas.rules.quota import (
    HOLD_SECONDS,
    BlockCode,
    Blocks,
    InUse,
    NotNow,
    QuotaState,
    Standing,
    decide,
    pause_seconds,
)
from bot.services.calls import CallClass

FREE = LIMITS[Plan.FREE]
NOW = 1_000_000.0


def asked(call_class=CallClass.PERSON, *, in_use=InUse(), blocks=Blocks(), more=()):  # noqa: B008
    limits = [*FREE.in_force(), *more]
    return decide(call_class, NOW, limits=limits, in_use=in_use, blocks=blocks)


def most(limits, call_class=CallClass.PERSON):
    """Return how many calls of each kind are allowed for a class of calls."""
    return [applying(limits.in_force(), kind, call_class)[-1].most for kind in LimitKind]


@pytest.mark.parametrize(
    ("plan", "day", "concurrent"),
    [
        ("free", 1000, 5),
        ("standard", 2000, 10),
        ("professional", 5000, 10),
        ("premium", 10000, 10),
        ("enterprise", 10000, 10),
    ],
)
def test_plans_have_the_documented_limits(plan, day, concurrent):
    assert LIMITS[Plan(plan)] == Limits(minute=100, day=day, concurrent=concurrent)


def test_the_background_leaves_a_fifth_of_everything_to_people():
    assert most(FREE, CallClass.BACKGROUND) == [80, 800, 4]
    assert most(Limits(1, 1, 1), CallClass.BACKGROUND) == [1, 1, 1]
    assert most(FREE) == [100, 1000, 5] == most(FREE, CallClass.PROBE)


@pytest.mark.parametrize("kind", list(LimitKind))
def test_a_kind_without_a_limit_is_not_limited(kind):
    only = Limits(**{kind.value: 3}).in_force()
    for call_class in CallClass:
        decline = decide(call_class, NOW, limits=only, in_use=InUse(9, 9, 9), blocks=Blocks())
        assert decline.kind is kind
        few = replace(InUse(9, 9, 9), **{kind.value: 0})
        assert decide(call_class, NOW, limits=only, in_use=few, blocks=Blocks()) is None


def test_the_hundredth_call_is_granted_and_the_next_is_not():
    assert asked(in_use=InUse(99)) is None
    full = asked(in_use=InUse(100))
    assert (full.kind, full.limits[-1].most) == (LimitKind.MINUTE, 100)


@pytest.mark.parametrize(
    ("in_use", "kind"), [(InUse(80), LimitKind.MINUTE), (InUse(0, 4), LimitKind.CONCURRENT)]
)
def test_where_the_background_has_to_wait_a_person_has_not(in_use, kind):
    assert asked(CallClass.BACKGROUND, in_use=in_use).kind is kind
    assert asked(CallClass.PERSON, in_use=in_use) is None


def test_a_call_declined_for_a_full_day_tells_which_limits_apply():
    full = asked(CallClass.BACKGROUND, in_use=InUse(day=850))
    assert [(limit.kind, limit.most) for limit in full.limits] == [
        (LimitKind.DAY, 1000),
        (LimitKind.DAY, 800),
    ]


def test_a_block_goes_before_every_limit():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW - 10, probe=False)
    decision = asked(in_use=InUse(100), blocks=blocks)
    assert decision == NotNow(NOW, code=BlockCode.MINUTE, free_at=NOW + 50)


def test_a_running_probe_ends_the_wait_at_the_latest():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW - 61, probe=False)
    decision = asked(CallClass.PROBE, blocks=replace(blocks, probing_until=NOW + 14))
    assert decision == NotNow(NOW, code=BlockCode.MINUTE, free_at=NOW + 14)


def test_call_without_an_answer_holds_for_its_timeout_and_a_grace():
    assert HOLD_SECONDS == 15.0


def test_stalled_service_gets_one_call_at_a_time():
    assert asked(more=[STALL]) is None
    decision = asked(in_use=InUse(concurrent=1), more=[STALL])
    assert decision.limits[-1] == STALL


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


@pytest.mark.parametrize(("told", "pause"), [(59.0, 60.0), (34_881.0, 34_881.0), (1e9, 90_000.0)])
def test_retry_after_lengthens_a_pause_to_at_most_a_day(told, pause):
    blocks = Blocks().refused(BlockCode.MINUTE, NOW, probe=False, told_seconds=told)
    assert blocks.longest.until == NOW + pause


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


def standing(name="1", *, minute=0, concurrent=0, day=0, blocked=False) -> Standing:
    blocks = Blocks().refused(BlockCode.MINUTE, 0.0, probe=False) if blocked else Blocks()
    return Standing(
        key=OrganizationKey("eu", name),
        plan=Plan.FREE,
        in_use=InUse(minute, concurrent, day),
        limits=FREE.in_force(),
        blocks=blocks,
    )


def test_the_worst_is_first_and_equal_ones_are_in_order():
    in_order = [
        standing("9", blocked=True),
        standing("8", day=1001),
        standing("7", minute=100),
        standing("6", concurrent=5),
        standing("5", minute=90),
        standing("4", day=850),
        standing("3", minute=10),
        standing("1"),
        standing("2"),
    ]
    shuffled = random.Random(1).sample(in_order, len(in_order))
    assert sorted(shuffled, key=lambda item: item.rank) == in_order


@pytest.mark.parametrize(
    ("minute", "state"),
    [
        (79, QuotaState.FINE),
        (80, QuotaState.NEARLY_FULL),
        (99, QuotaState.NEARLY_FULL),
        (100, QuotaState.MINUTE_FULL),
    ],
)
def test_state_changes_at_80_percent_and_at_the_limit(minute, state):
    assert standing(minute=minute).state is state
