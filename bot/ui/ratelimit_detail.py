"""`/ratelimits <org>`: one organization's meters, its last 24 hours, and what a check showed."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.model.days import DaySource
from bot.model.quota import LimitKind
from bot.model.standing import Meter, Standing
from bot.model.use import PEOPLE_SHOWN, Checked, Detail, PlanSet
from bot.ui import blocks, ids, text
from bot.ui.message import Message, SlackBlock
from bot.ui.ratelimits import MARKS, moment, state_in_words

CELLS = 10
# A chart has at most 20 categories, and a message two charts (docs.slack.dev, data visualization
# block): hence two of 12 hours.
HOURS_A_CHART = 12
SOURCES = {
    DaySource.PLAN: "the plan's limit, for any 25 hours",
    DaySource.TOLD: "as the service tells it",
    DaySource.MESSAGE: "as the service's last refusal named it",
}


def detail(one: Detail) -> Message:
    """One organization: now, over the last 24 hours, and from here on."""
    standing = one.standing
    state = _state(one)
    pairs = [
        *((kind.in_words.capitalize(), _meter(one, kind)) for kind in LimitKind),
        ("At this pace", _forecast(one)),
    ]
    made = f"*Calls of the last 24 hours* by person: {_by_person(one)}\nBy kind: {_by_kind(one)}"
    footnote = _footnote(one)
    value = standing.key.path
    return Message(
        _fallback(one, [state, *(f"{label}: {words}" for label, words in pairs), made, footnote]),
        (
            blocks.header(one.name),
            blocks.section(state),
            *blocks.fields(pairs),
            *_charts(one.by_hour()),
            blocks.section(made),
            blocks.context(footnote),
            blocks.actions(
                blocks.button("Check now", ids.RATELIMITS_CHECK, value),
                blocks.button("Refresh", ids.RATELIMITS_REFRESH, value),
            ),
        ),
    )


def _state(one: Detail) -> str:
    standing = one.standing
    words = f"{MARKS[standing.state]} *{state_in_words(standing).capitalize()}*"
    block = standing.blocks.longest
    if block is None:
        return words
    since = f"since {moment(block.since)}"
    return f"{words} {since}. The bot itself makes one call to see at {moment(block.until)}."


def _meter(one: Detail, kind: LimitKind) -> str:
    meter = one.standing.meter(kind)
    lines = [f"{bar(meter)} {meter}"]
    free_at = one.free_at.get(kind)
    if free_at is not None:
        lines.append(f"next one free {moment(free_at)}")
    if kind is LimitKind.DAY:
        lines.append(_day(one))
    return "\n".join(lines)


def bar(meter: Meter) -> str:
    """A meter as ten cells; what is used at all fills one."""
    full = min(CELLS, max(round(meter.share * CELLS), 1 if meter.used else 0))
    return "▰" * full + "▱" * (CELLS - full)


def _day(one: Detail) -> str:
    day = one.standing.day
    resets = "" if day.resets_at is None else f", until {moment(day.resets_at)}"
    others = ""
    if one.others_used:
        others = f"; about {text.count(one.others_used, 'call')} of other clients"
    return f"{SOURCES[day.source]}{resets}{others}"


def _forecast(one: Detail) -> str:
    pace = f"{text.count(one.forecast.calls_an_hour, 'call')} in the last hour"
    ends_at = one.forecast.ends_at
    if ends_at is None:
        return f"{pace}: the day's allowance lasts"
    if ends_at <= one.at:
        return f"{pace}: the day's allowance has ended"
    return f"{pace}: the day's allowance ends {moment(ends_at)}"


def _by_person(one: Detail) -> str:
    made = one.by_person()
    shown = [f"{_who(one, who)} {calls:,}" for who, calls in made[:PEOPLE_SHOWN]]
    rest = sum(calls for _, calls in made[PEOPLE_SHOWN:])
    return ", ".join(shown + ([f"others {rest:,}"] if rest else [])) or "none"


def _who(one: Detail, slack_user_id: str | None) -> str:
    if slack_user_id is None:
        return "the bot itself"
    return text.person(one.people.get(slack_user_id, slack_user_id), slack_user_id)


def _by_kind(one: Detail) -> str:
    return ", ".join(f"{text.escape(kind)} {calls:,}" for kind, calls in one.by_kind()) or "none"


def _footnote(one: Detail) -> str:
    standing = one.standing
    organization_id = standing.key.organization_id or "none named"
    parts = [
        f"Id {text.code(organization_id)}",
        f"data center {text.escape(standing.key.data_center)}",
        f"plan {standing.plan.value}",
        f"as of {moment(one.at)}",
    ]
    return " · ".join(parts)


def _charts(hours: Sequence[tuple[float, int]]) -> list[SlackBlock]:
    halves = (hours[:HOURS_A_CHART], hours[HOURS_A_CHART:])
    titles = ("Calls by hour (UTC), 24 to 12 hours ago", "Calls by hour (UTC), last 12 hours")
    return [_chart(title, half) for title, half in zip(titles, halves, strict=True)]


def _chart(title: str, hours: Sequence[tuple[float, int]]) -> SlackBlock:
    points = [(_hour(at), calls) for at, calls in hours]
    return {
        "type": "data_visualization",
        "title": title,
        "chart": {
            "type": "bar",
            "series": [
                {
                    "name": "Calls",
                    "data": [{"label": label, "value": calls} for label, calls in points],
                }
            ],
            "axis_config": {"categories": [label for label, _ in points], "y_label": "Calls"},
        },
    }


def _hour(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:00}"


def _fallback(one: Detail, lines: Sequence[str]) -> str:
    hours = ", ".join(f"{_hour(at)} {calls}" for at, calls in one.by_hour())
    flat = [f"*{text.escape(one.name, 300)}*", *lines, f"Calls by hour (UTC): {hours}"]
    return text.cut("\n".join(flat), 3900)


def checked(result: Checked) -> Message:
    """What a check showed: a call that passed, one that was refused, or none."""
    name = f"*{text.escape(result.name, 300)}*"
    lines = [_verdict(result, name), in_short(result.standing)]
    markup = "\n".join(lines)
    button = blocks.button("Show limits", ids.RATELIMITS_SHOW, result.standing.key.path)
    return Message(markup, (blocks.section(markup), blocks.actions(button)))


def _verdict(result: Checked, name: str) -> str:
    if result.seconds is not None:
        return f":white_check_mark: A call to {name} has passed in {result.seconds:.2f} s."
    until = "" if result.until is None else f" The bot itself tries again {moment(result.until)}."
    if result.refusal is not None:
        words = f" Its words: “{text.escape(result.refusal, 300)}”" if result.refusal else ""
        return f":no_entry: The service refused a call to {name}.{words}{until}"
    return f":no_entry: {name} is blocked, so no call was made.{until}"


def in_short(standing: Standing) -> str:
    """The state and the three meters on one line."""
    meters = " · ".join(f"{kind.in_words} {standing.meter(kind)}" for kind in LimitKind)
    return f"{MARKS[standing.state]} {state_in_words(standing)} · {meters}"


def plan_set(result: PlanSet) -> Message:
    """That a plan was set, and what it allows."""
    limits = result.limits
    markup = (
        f"*{text.escape(result.name, 300)}* is on the plan *{result.now}* now (before:"
        f" {result.before}): {limits.minute} calls a minute, {limits.day:,} a day,"
        f" {limits.concurrent} at once."
    )
    return Message(markup, (blocks.section(markup),))
