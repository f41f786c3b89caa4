"""When a call may be made, and when the next one may."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.quotas.rules.blocks import BlockCode, Blocks
from bot.quotas.rules.limits import CallClass, DaySource, DayUse, LimitKind, Limits, Plan, limits_of
from bot.quotas.rules.quota import (
    Blocked,
    Full,
    Granted,
    InUse,
    Terms,
    decide,
)
from tests.simulation.held import HeldCall, Holdings

FREE = limits_of(Plan.FREE)
NOW = 1_000_000.0
NO_DAY = DayUse(0, 1000, DaySource.PLAN)


def answered(count: int, ago: float = 1.0) -> list[HeldCall]:
    return [HeldCall.answered(NOW - ago - n / 1000, NOW - ago) for n in range(count)]


def in_flight(count: int) -> list[HeldCall]:
    return [HeldCall.unanswered(NOW - 1, 10.0) for _ in range(count)]


def in_use_of(calls, now) -> InUse:
    held = Holdings.of(calls, now)
    return InUse(len(held.slots), len(held.permits))


def asked(call_class=CallClass.PERSON, *, calls=(), day=NO_DAY, blocks=Blocks(), limits=FREE):  # noqa: B008
    in_use = in_use_of(calls, NOW)
    return decide(call_class, NOW, limits=limits, in_use=in_use, day=day, blocks=blocks)


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
    assert asked(calls=answered(99)) == Granted(99, 0, 0)
    full = asked(calls=answered(100))
    assert (full.kind, full.used, full.allowed) == (LimitKind.MINUTE, 100, 100)
    assert not full.is_stalled


def test_a_slot_is_free_sixty_seconds_and_a_little_after_the_headers():
    call = HeldCall.answered(headers_at=NOW, ended_at=NOW + 5)
    assert in_use_of([call], NOW + 60.049).minute == 1
    assert in_use_of([call], NOW + 60.051).minute == 0


def test_unanswered_call_holds_its_permit_and_then_its_slot():
    call = HeldCall.unanswered(NOW, timeout_seconds=10)
    assert in_use_of([call], NOW + 14.9).concurrent == 1
    assert in_use_of([call], NOW + 15.1).concurrent == 0
    assert in_use_of([call], NOW + 75.0).minute == 1
    assert in_use_of([call], NOW + 75.1).minute == 0


def test_a_permit_is_held_until_the_body_is_read():
    call = HeldCall.answered(headers_at=NOW, ended_at=NOW + 5)
    assert in_use_of([call], NOW + 4).concurrent == 1
    assert in_use_of([call], NOW + 5).concurrent == 0


@pytest.mark.parametrize(
    ("calls", "kind"), [(answered(80), LimitKind.MINUTE), (in_flight(4), LimitKind.CONCURRENT)]
)
def test_where_the_background_has_to_wait_a_person_has_not(calls, kind):
    assert asked(CallClass.BACKGROUND, calls=calls).kind is kind
    assert isinstance(asked(CallClass.PERSON, calls=calls), Granted)


def test_full_day_tells_its_use_and_limit():
    full = asked(CallClass.BACKGROUND, day=DayUse(850, 1000, DaySource.PLAN))
    assert (full.kind, full.allowed, full.free_at, full.used) == (LimitKind.DAY, 800, None, 850)


def test_a_block_goes_before_every_limit():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW - 10, probe=False)
    decision = asked(calls=answered(100), blocks=blocks)
    assert decision == Blocked(BlockCode.MINUTE, NOW + 50)


def test_a_probe_that_is_under_way_is_when_it_is_tried_at_the_latest():
    blocks = Blocks().refused(BlockCode.MINUTE, NOW - 61, probe=False).probing(NOW + 14)
    assert asked(CallClass.PROBE, blocks=blocks) == Blocked(BlockCode.MINUTE, NOW + 14)


@given(
    st.lists(st.floats(0, 100), max_size=30),
    st.integers(1, 30),
)
def test_at_the_time_named_a_slot_is_free_and_not_before(frees, allowed):
    free = sorted(frees)
    at = Holdings(free, []).free_at(LimitKind.MINUTE, allowed)
    assert sum(item > at for item in free) < allowed
    if len(free) >= allowed:
        assert sum(item >= at for item in free) >= allowed


def test_a_full_minute_is_free_when_its_oldest_slot_is():
    held = Holdings.of(answered(100), NOW)
    assert held.free_at(LimitKind.MINUTE, 100) == NOW - 1 - 0.099 + 60.05
    assert held.free_at(LimitKind.CONCURRENT, 5) == 0.0


def test_call_without_an_answer_holds_for_its_timeout_and_a_grace():
    assert Terms(lambda _: Plan.FREE, timeout_seconds=10.0).hold_seconds == 15.0


@pytest.mark.parametrize(("used", "result"), [(999, Granted), (1000, Full)])
def test_last_call_of_the_day_is_granted_and_no_more(used, result):
    day = DayUse(used, 1000, DaySource.PLAN)
    decision = decide(CallClass.PERSON, NOW, limits=FREE, in_use=InUse(), day=day, blocks=Blocks())
    assert isinstance(decision, result)


def test_stalled_service_gets_one_call_at_a_time():
    in_use = InUse(concurrent=1, is_stalled=True)
    decision = decide(
        CallClass.PERSON, NOW, limits=FREE, in_use=in_use, day=NO_DAY, blocks=Blocks()
    )
    assert decision == Full(LimitKind.CONCURRENT, 1, 1, is_stalled=True)
