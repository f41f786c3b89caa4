"""Tests that a card shows the same local end time that the requester typed."""

import re
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

from hypothesis import assume, example, given
from hypothesis import strategies as st

from bot.approvals.times import WEEKDAYS
from bot.testusers.messages.card import Surroundings, card
from bot.testusers.parse.command import ChangeRequest, end_of, parse_testusers
from bot.testusers.rules.people import RequestPerson
from bot.testusers.rules.requests import Request
from tests.support.requests import FLOW, OTTO, texts_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ZONES = sorted(available_timezones() - {"Factory", "localtime"})
# Days on which clocks change, forward and back, at different hours.
CHANGES = [
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 25)),
    ("America/New_York", date(2026, 3, 8)),
    ("America/New_York", date(2026, 11, 1)),
    ("Australia/Lord_Howe", date(2026, 4, 5)),
    ("Australia/Lord_Howe", date(2026, 10, 4)),
    ("America/Santiago", date(2026, 9, 6)),
    ("Africa/Cairo", date(2026, 4, 24)),
]
anywhere = st.tuples(
    st.sampled_from(ZONES), st.dates(date(2026, 3, 3), date(2027, 2, 20))
) | st.sampled_from(CHANGES)
clock = st.times().map(lambda at: at.replace(second=0, microsecond=0))


def exists(local: datetime, zone: ZoneInfo) -> bool:
    """Return False if the time zone skips this local time when the clocks go forward."""
    back = local.replace(tzinfo=zone).astimezone(UTC).astimezone(zone)
    return back.replace(tzinfo=None) == local


def meant(word: str, at: time, zone: ZoneInfo, now: datetime) -> datetime | None:
    """Return the local time that a phrase like `friday 9:00` means in this time zone."""
    days = [now.astimezone(zone).date() + timedelta(days=ahead) for ahead in range(9)]
    named = {"today": days[:1], "tomorrow": days[1:2], "": days[:2]}
    fitting = named.get(word) or [day for day in days if WEEKDAYS[day.weekday()] == word]
    for local in (datetime.combine(day, at) for day in fitting):
        assume(exists(local, zone))
        if any(local.replace(tzinfo=zone, fold=fold).astimezone(UTC) > now for fold in (0, 1)):
            return local
    return None


def shown_on_card(typed: str, zone_name: str, now: datetime = NOW) -> set[datetime]:
    """Return the times that a command's card shows to people in this time zone."""
    command = parse_testusers(f"add welcome +1 {typed}")
    assert isinstance(command, ChangeRequest)
    ends_at = end_of(zone_name, command, now)
    people = (RequestPerson.added("+1", ends_at),)
    request = Request("1", FLOW, OTTO, people, now, now + timedelta(hours=24))
    shown = "\n".join(texts_of(card(request, Surroundings())))
    moments = {int(seconds) for seconds in re.findall(r"<!date\^(\d+)\^", shown)}
    zone = ZoneInfo(zone_name)
    return {datetime.fromtimestamp(at, zone).replace(tzinfo=None) for at in moments}


@given(anywhere, clock)
@example(("Europe/Berlin", date(2026, 10, 25)), time(2, 30))
@example(("America/New_York", date(2026, 11, 1)), time(1, 30))
def test_time_on_the_card_is_the_time_that_was_typed(place, at):
    zone_name, day = place
    local = datetime.combine(day, at)
    assume(exists(local, ZoneInfo(zone_name)))
    assert local in shown_on_card(f"until {local:%Y-%m-%d %H:%M}", zone_name)


@given(
    st.sampled_from(ZONES) | st.sampled_from([zone for zone, _ in CHANGES]),
    st.integers(0, 366 * 1440).map(lambda minutes: NOW + timedelta(minutes=minutes)),
    st.sampled_from(["", "today", "tomorrow", *WEEKDAYS]),
    clock | st.none(),
)
@example("Europe/Berlin", datetime(2026, 3, 27, 12, tzinfo=UTC), "friday", time(18))
@example("Europe/Berlin", datetime(2026, 3, 27, 12, tzinfo=UTC), "sunday", time(3, 30))
@example("Europe/Berlin", datetime(2026, 10, 24, 12, tzinfo=UTC), "tomorrow", time(2, 30))
@example("America/New_York", datetime(2026, 10, 30, 12, tzinfo=UTC), "sunday", None)
def test_day_in_words_is_that_day_on_the_card(zone_name, now, word, at):
    assume(word or at)
    local = meant(word, at or time(23, 59), ZoneInfo(zone_name), now)
    assume(local is not None)
    typed = " ".join(["until", *filter(None, [word, at and f"{at:%H:%M}"])])
    assert local in shown_on_card(typed, zone_name, now)
