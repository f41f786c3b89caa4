"""When a call may be made, and when the next one may."""

from dataclasses import replace

import pytest

from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.limits import CallClass, DaySource, DayUse, LimitKind, Limits, Plan, limits_of
from bot.quotas.rules.quota import InUse, NotNow, Terms, decide

FREE = limits_of(Plan.FREE)
NOW = 1_000_000.0
NO_DAY = DayUse(0, 1000, DaySource.PLAN)


def asked(call_class=CallClass.PERSON, *, in_use=InUse(), day=NO_DAY, blocks=Blocks()):  # noqa: B008
    return decide(call_class, NOW, limits=FREE, in_use=in_use, day=day, blocks=blocks)


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
    assert limits_of(Plan(plan)) == Limits(minute=100, day=day, concurrent=concurrent)


def test_the_background_leaves_a_fifth_of_everything_to_people():
    assert FREE.left_to(CallClass.BACKGROUND) == Limits(80, 800, 4)
    assert FREE.left_to(CallClass.PERSON) == FREE == FREE.left_to(CallClass.PROBE)


def test_the_hundredth_call_is_granted_and_the_next_is_not():
    assert asked(in_use=InUse(99)) is None
    full = asked(in_use=InUse(100))
    assert (full.kind, full.used, full.allowed) == (LimitKind.MINUTE, 100, 100)
    assert not full.is_stalled


@pytest.mark.parametrize(
    ("in_use", "kind"), [(InUse(80), LimitKind.MINUTE), (InUse(0, 4), LimitKind.CONCURRENT)]
)
def test_where_the_background_has_to_wait_a_person_has_not(in_use, kind):
    assert asked(CallClass.BACKGROUND, in_use=in_use).kind is kind
    assert asked(CallClass.PERSON, in_use=in_use) is None


def test_full_day_tells_its_use_and_limit():
    full = asked(CallClass.BACKGROUND, day=DayUse(850, 1000, DaySource.PLAN))
    assert full == NotNow(NOW, LimitKind.DAY, 850, 800)


def test_a_block_goes_before_every_limit():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW - 10, probe=False)
    decision = asked(in_use=InUse(100), blocks=blocks)
    assert decision == NotNow(NOW, code=BlockCode.MINUTE, free_at=NOW + 50)


def test_a_probe_that_is_under_way_is_when_it_is_tried_at_the_latest():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW - 61, probe=False)
    decision = asked(CallClass.PROBE, blocks=replace(blocks, probing_until=NOW + 14))
    assert decision == NotNow(NOW, code=BlockCode.MINUTE, free_at=NOW + 14)


def test_call_without_an_answer_holds_for_its_timeout_and_a_grace():
    assert Terms(lambda _: Plan.FREE, timeout_seconds=10.0).hold_seconds == 15.0


def test_stalled_service_gets_one_call_at_a_time():
    in_use = InUse(concurrent=1, is_stalled=True)
    decision = decide(
        CallClass.PERSON, NOW, limits=FREE, in_use=in_use, day=NO_DAY, blocks=Blocks()
    )
    assert decision == NotNow(NOW, LimitKind.CONCURRENT, 1, 1, is_stalled=True)
