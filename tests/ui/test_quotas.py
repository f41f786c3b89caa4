"""Tests the messages about incidents and rate limits."""

from datetime import UTC, datetime

import pytest

from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
)
from bot.quotas import messages
from bot.quotas.guard import decline_error
from bot.quotas.rules.limits import (
    LIMITS,
    RESET,
    STALL,
    Limit,
    LimitKind,
    Plan,
    Source,
    applying,
    less_reserve,
    share_of,
)
from bot.quotas.rules.quota import (
    BlockCode,
    Blocks,
    HourOfCalls,
    Incident,
    IncidentDetail,
    InUse,
    NotNow,
    Standing,
    first_hour,
)
from bot.services.calls import CallClass
from bot.slack.messages.block_kit import Wanted
from tests.support.requests import hold

AT = datetime(2026, 11, 20, 9, 0, tzinfo=UTC)
OWN = {"minute": [37, 100], "day": [120, 1000], "concurrent": [1, 5]}
NASTY = "<!channel> <@U1> *bold* `x` \u202e" + "ü" * 400


def an_incident(code=BlockCode.MINUTE, **changed) -> Incident:
    detail = {"words": "You are blocked.", "sent_code": int(code), "own": OWN}
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


@pytest.mark.parametrize(
    ("sent", "shown"), [(57, "a 429 with the undocumented code 57"), (None, "a 429 without a code")]
)
def test_a_code_that_is_not_documented_is_shown_as_sent(sent, shown):
    assert shown in messages.incident_card(an_incident(detail={"sent_code": sent}), "Acme").text


@pytest.mark.parametrize("code", list(BlockCode))
@pytest.mark.parametrize("is_over", [False, True])
def test_nasty_words_stay_within_slacks_limits_and_inert(code, is_over):
    closed_at = AT if is_over else None
    message = messages.incident_card(
        an_incident(code, detail={"words": NASTY}, closed_at=closed_at), NASTY
    )
    for told in (message, messages.muted(NASTY, AT)):
        hold(told)
        assert "&lt;!channel&gt;" in told.text


NOW = 1_780_000_000.0


def standing(name="10", *, minute=0, concurrent=0, day=0, blocks=Blocks(), more=()):  # noqa: B008
    in_use = InUse(minute, concurrent, day)
    key = OrganizationKey("eu", name)
    limits = [*LIMITS[Plan.FREE].in_force(), *more]
    return Standing(key, Plan.FREE, in_use, limits, blocks, now=NOW)


def the_detail(one, *, hours=(), last_hour=0, name="Acme"):
    return messages.detail(name, one, hours, {"U1": "Ada <x>"}, last_hour)


def a_directory(name, *numbers):
    organizations = tuple(Organization(organization_id=number, name=name) for number in numbers)
    return Directory((DataCenterReport("eu", Listing("eu", organizations, AT)),))


def test_a_page_of_many_nasty_names_is_within_slacks_limits():
    numbers = [str(n) for n in range(2_000)]
    directory = a_directory(NASTY, *numbers)
    for page in (0, 5, 133):
        message = messages.overview([*map(standing, numbers)], directory, AT, Wanted(page=page))
        hold(message)
    assert "Page 134 of 134" in repr(message.slack_blocks)


def test_organization_fits_whatever_its_name():
    people = [HourOfCalls(first_hour(NOW), f"kind {n}", f"U{n}", 1) for n in range(200)]
    message = the_detail(standing(), hours=people, name=NASTY)
    hold(message)
    assert "others 190" in message.text


@pytest.mark.parametrize(
    ("used", "last_hour", "words"),
    [
        (0, 0, "0 calls in the last hour: well within the daily limit\n1,000 calls left"),
        (995, 5, "5 calls in the last hour: the daily limit will be reached <!date^"),
        (999, 5, "\n1 call left"),
        (1001, 5, "5 calls in the last hour: the daily limit is used up\n0 calls left"),
    ],
)
def test_what_is_left_and_when_it_ends_in_words(used, last_hour, words):
    assert words in the_detail(standing(day=used), last_hour=last_hour).text


@pytest.mark.parametrize(
    ("hours_ago", "titles"),
    [([], []), ([1], ["last 12 hours"]), ([20], ["24 to 12"]), ([1, 20], ["24 to 12", "last 12"])],
)
def test_a_chart_without_calls_is_left_out(hours_ago, titles):
    hours = [HourOfCalls(first_hour(NOW) + (23 - ago) * 3600, "list", "U1", 1) for ago in hours_ago]
    detail = the_detail(standing(), hours=hours)
    charts = [
        block["title"] for block in detail.slack_blocks if block["type"] == "data_visualization"
    ]
    assert len(charts) == len(titles)
    spoken = [line.partition(":")[0] for line in detail.text.splitlines() if "(UTC)" in line]
    assert spoken == charts
    for chart, title in zip(charts, titles, strict=True):
        assert title in chart


def test_a_decline_says_what_leaves_fewer_calls_than_the_service_allows():
    limits = less_reserve(LIMITS[Plan.FREE].in_force(), 94, 0)
    limits = (*limits, Limit(LimitKind.MINUTE, 5, Source.REFUSAL, NOW + 600))
    its = applying(limits, LimitKind.MINUTE, CallClass.BACKGROUND)
    decline = NotNow(NOW, share_of(its, 0.5), free_at=NOW + 3)
    assert decline_error(decline, OrganizationKey("eu", "10")).sentence == (
        "This client has used its share of the calls for organization 10 (eu): 2 calls per minute."
        " Of 100, 94 are reserved for other programs, 1 is left unused because the service refused"
        " calls, 1 is kept for people, 2 are left to other clients. Nothing was sent. The next slot"
        " will be free in 3 s."
    )


def test_a_lowered_minute_limit_is_shown():
    limit = Limit(LimitKind.MINUTE, 4, Source.REFUSAL, NOW + 600)
    lowered = standing(more=[limit])
    shown = the_detail(lowered)
    limited = "scripts and background jobs are limited to 4 calls per minute"
    assert f"{limited} until <!date^" in shown.text
    assert f"Within limits; {limited}" in shown.text
    overview = messages.overview([lowered], a_directory("Acme", "10"), AT)
    assert f"within limits; {limited}" in overview.text
    card = messages.incident_card(an_incident(lowered=limit), "Acme")
    assert f"{limited}." in card.text


def test_one_call_at_a_time_says_until_when():
    shown = the_detail(standing(more=[STALL, RESET])).text
    assert "one call at a time while the service doesn't respond" in shown
    assert "one call at a time until the service reports on its new day" in shown


@pytest.mark.parametrize("sent", [6, None])
def test_nothing_is_claimed_about_the_limit_of_an_unknown_code(sent):
    for closed_at in (None, AT):
        incident = an_incident(detail={"sent_code": sent}, closed_at=closed_at)
        card = messages.incident_card(incident, "Acme").text
        assert "per minute was exceeded" not in card
        assert "another client" not in card
        assert "Gatehouse doesn't know which limit this is." in card
