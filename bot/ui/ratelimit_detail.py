"""`/ratelimits <org>`: one organization's meters, its last 24 hours, and what a check showed."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.model.quotas.blocks import BlockCode
from bot.model.quotas.calls import client_named
from bot.model.quotas.days import DaySource
from bot.model.quotas.plans import limits_of
from bot.model.quotas.quota import LimitKind
from bot.model.quotas.standing import Meter, Standing, may_be_smaller_plan
from bot.model.quotas.use import PEOPLE_SHOWN, Checked, Detail, PlanSet
from bot.ui import block_kit, ids, text
from bot.ui.message import Message, SlackBlock
from bot.ui.ratelimits import MARKS, moment, state_in_words

CELLS = 10
# A chart has at most 20 categories, and a message two charts (docs.slack.dev, data visualization
# block): hence two of 12 hours.
HOURS_A_CHART = 12
SOURCES = {
    DaySource.PLAN: "limit of the plan, over 25 hours",
    DaySource.REPORTED: "reported by the service",
    DaySource.MESSAGE: "from the service's last error message",
}
LIFTED = "Limits that were lowered after errors are back to the plan's."


def detail(one: Detail) -> Message:
    """One organization: now, over the last 24 hours, and from here on."""
    standing = one.standing
    state = _state(one)
    pairs = [(kind.in_words.capitalize(), _meter(one, kind)) for kind in LimitKind]
    if not standing.blocks:
        # While nobody calls there is nothing to foresee.
        pairs.append(("At this pace", _forecast(one)))
    made = _made(one)
    footnote = _footnote(one)
    value = standing.key.path
    return Message(
        _fallback(one, [state, *(f"{label}: {words}" for label, words in pairs), made, footnote]),
        (
            block_kit.header(one.name),
            block_kit.section(state),
            *block_kit.fields(pairs),
            block_kit.section(made),
            *_charts(one.by_hour()),
            block_kit.context(footnote),
            block_kit.actions(
                block_kit.button("Check now", ids.RATELIMITS_CHECK, value),
                block_kit.button("Refresh", ids.RATELIMITS_REFRESH, value),
            ),
        ),
    )


def _state(one: Detail) -> str:
    standing = one.standing
    words = f"{MARKS[standing.state]} *{state_in_words(standing).capitalize()}*"
    block = standing.blocks.longest
    if block is None:
        return words
    again = f"Gatehouse tries again {_soon(one, block.until)}."
    return f"{words} since {moment(block.since)}.{_who_used_the_day(one)} {again}"


def _is_day_blocked(one: Detail) -> bool:
    block = one.standing.blocks.longest
    return block is not None and block.code is BlockCode.DAY


def _who_used_the_day(one: Detail) -> str:
    day = one.standing.meter(LimitKind.DAY)
    own = Meter(max(0, day.used - (one.others_used or 0)), day.limit)
    if not _is_day_blocked(one) or own.used >= own.limit:
        return ""
    used = f"Gatehouse itself used {own.used:,} of {own.limit:,}"
    if may_be_smaller_plan(LimitKind.DAY, own):
        plan = "the organization's plan is smaller than the one set here"
        return f" Another client used up the daily limit, or {plan} ({used})."
    return f" The daily limit was used up by another client ({used})."


def _soon(one: Detail, at: float) -> str:
    return text.soon(datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(one.at, UTC))


def _meter(one: Detail, kind: LimitKind) -> str:
    meter = one.standing.meter(kind)
    lines = [f"{meter} {bar(meter)}"]
    free_at = one.free_at.get(kind)
    if free_at is not None:
        lines.append(f"next slot {_soon(one, free_at)}")
    if kind is LimitKind.DAY:
        lines.append(_day(one))
    if kind is LimitKind.CONCURRENT and one.standing.lowered_until is not None:
        lines.append(_lowered(one.standing, one.standing.lowered_until))
    return "\n".join(lines)


def _lowered(standing: Standing, until: float) -> str:
    planned = limits_of(standing.plan).concurrent
    return f"lowered from {planned} after the service blocked more, until {moment(until)}"


def bar(meter: Meter) -> str:
    """A meter as ten cells; what is used at all fills one."""
    full = min(CELLS, max(round(meter.share * CELLS), 1 if meter.used else 0))
    return "▰" * full + "▱" * (CELLS - full)


def _day(one: Detail) -> str:
    day = one.standing.day
    resets = "" if day.resets_at is None else f", resets {_soon(one, day.resets_at)}"
    others = ""
    if one.others_used:
        others = f"; about {one.others_used:,} by other clients"
    return f"{SOURCES[day.source]}{resets}{others}"


def _forecast(one: Detail) -> str:
    pace = f"{text.count(one.forecast.calls_an_hour, 'call')} in the last hour"
    ends_at = one.forecast.ends_at
    if ends_at is None:
        return f"{pace}: well within the daily limit"
    if ends_at <= one.at:
        return f"{pace}: the daily limit is used up"
    return f"{pace}: the daily limit will be reached {moment(ends_at)}"


def _made(one: Detail) -> str:
    if not one.hours:
        return "No calls in the last 24 hours."
    return (
        f"*Gatehouse's calls in the last 24 hours*\nBy person: {_by_person(one)}\n"
        f"By type: {_by_kind(one)}"
    )


def _by_person(one: Detail) -> str:
    made = one.by_person()
    shown = [f"{_who(one, who)} {calls:,}" for who, calls in made[:PEOPLE_SHOWN]]
    rest = sum(calls for _, calls in made[PEOPLE_SHOWN:])
    return ", ".join(shown + ([f"others {rest:,}"] if rest else []))


def _who(one: Detail, slack_user_id: str | None) -> str:
    if slack_user_id is None:
        return "Gatehouse"
    client = client_named(slack_user_id)
    if client is not None:
        return f"{text.code(client)} (gateway)"
    return text.escape(one.people.get(slack_user_id, slack_user_id), 80)


def _by_kind(one: Detail) -> str:
    return ", ".join(f"{text.escape(kind)} {calls:,}" for kind, calls in one.by_kind())


def _footnote(one: Detail) -> str:
    standing = one.standing
    organization_id = standing.key.organization_id
    parts = [
        f"ID {text.code(organization_id)}" if organization_id else "no organization named",
        f"data center {text.escape(standing.key.data_center)}",
        f"plan {standing.plan.value}",
        f"as of {moment(one.at)}",
    ]
    return " · ".join(parts)


def _charts(hours: Sequence[tuple[float, int]]) -> list[SlackBlock]:
    halves = (hours[:HOURS_A_CHART], hours[HOURS_A_CHART:])
    titles = ("Calls by hour (UTC), 24 to 12 hours ago", "Calls by hour (UTC), last 12 hours")
    if not any(calls for _, calls in hours):
        return []
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
    return "\n".join(flat)


def checked(result: Checked) -> Message:
    """What a check showed: a call that passed, one that was refused, or none."""
    name = f"*{text.escape(result.name, 300)}*"
    lines = [_verdict(result, name), in_short(result.standing)]
    markup = "\n".join(lines)
    button = block_kit.button("Show limits", ids.RATELIMITS_SHOW, result.standing.key.path)
    return Message(markup, (block_kit.section(markup), block_kit.actions(button)))


def _verdict(result: Checked, name: str) -> str:
    if result.seconds is not None:
        return f":white_check_mark: Test call to {name} succeeded ({result.seconds:.2f} s)."
    until = "" if result.until is None else f" Gatehouse tries again {moment(result.until)}."
    if result.refusal is not None:
        words = f": “{text.escape(result.refusal, 300)}”" if result.refusal else "."
        return f":no_entry: Test call to {name} was blocked{words}{until}"
    return f":no_entry: {name} is still blocked, so no call was made.{until}"


def in_short(standing: Standing) -> str:
    """The state and the three meters on one line."""
    meters = " · ".join(f"{kind.in_words} {standing.meter(kind)}" for kind in LimitKind)
    return f"{MARKS[standing.state]} {state_in_words(standing)} · {meters}"


def plan_set(result: PlanSet) -> Message:
    """That a plan was set, and what it allows."""
    limits, name = result.limits, f"*{text.escape(result.name, 300)}*"
    allowed = (
        f"{limits.minute:,} calls per minute, {limits.day:,} per day, {limits.concurrent:,} at once"
    )
    lifted = f" {LIFTED}" if result.is_lifted else ""
    if result.now is result.before:
        changed = lifted or " Nothing changed."
        markup = f"{name} is already on the *{result.now}* plan: {allowed}.{changed}"
    else:
        was = f"(was {result.before})"
        markup = f"{name} is now on the *{result.now}* plan {was}: {allowed}.{lifted}"
    return Message(markup, (block_kit.section(markup),))
