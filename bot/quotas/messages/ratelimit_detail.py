"""`/ratelimits <org>`: an organization's meters, its last 24 hours, and the result of a check."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.quotas.messages.ratelimits import MARKS, moment, state_in_words
from bot.quotas.rules.blocks import BlockCode
from bot.quotas.rules.days import DaySource
from bot.quotas.rules.plans import limits_of
from bot.quotas.rules.quota import LimitKind
from bot.quotas.rules.standing import Meter, Standing, may_be_smaller_plan
from bot.quotas.rules.use import PEOPLE_SHOWN, Checked, Detail, PlanSet
from bot.services.calls import client_named
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.message import Message, SlackBlock

CELLS = 10
# A chart has at most 20 categories and a message at most two charts (docs.slack.dev, data
# visualization block), so each chart shows 12 hours.
HOURS_A_CHART = 12
SOURCES = {
    DaySource.PLAN: "limit of the plan, over 25 hours",
    DaySource.REPORTED: "reported by the service",
    DaySource.MESSAGE: "from the service's last error message",
}
LIFTED = "Limits that were lowered after errors are back to the plan's."


def detail(organization: Detail) -> Message:
    """Show one organization: current use, the last 24 hours, and a forecast."""
    standing = organization.standing
    state = _state(organization)
    pairs = [(kind.in_words.capitalize(), _meter(organization, kind)) for kind in LimitKind]
    if not standing.blocks:
        # During a block, no calls are made, so there is nothing to forecast.
        pairs.append(("At this pace", _forecast(organization)))
    made = _made(organization)
    footnote = _footnote(organization)
    value = standing.key.path
    return Message(
        _fallback(
            organization, [state, *(f"{label}: {words}" for label, words in pairs), made, footnote]
        ),
        (
            block_kit.header(organization.name),
            block_kit.section(state),
            *block_kit.fields(pairs),
            block_kit.section(made),
            *_charts(organization.by_hour()),
            block_kit.context(footnote),
            block_kit.actions(
                block_kit.button("Check now", ids.RATELIMITS_CHECK, value),
                block_kit.button("Refresh", ids.RATELIMITS_REFRESH, value),
            ),
        ),
    )


def _state(organization: Detail) -> str:
    standing = organization.standing
    words = f"{MARKS[standing.state]} *{state_in_words(standing).capitalize()}*"
    block = standing.blocks.longest
    if block is None:
        return words
    again = f"Gatehouse tries again {_soon(organization, block.until)}."
    return f"{words} since {moment(block.since)}.{_who_used_the_day(organization)} {again}"


def _is_day_blocked(organization: Detail) -> bool:
    block = organization.standing.blocks.longest
    return block is not None and block.code is BlockCode.DAY


def _who_used_the_day(organization: Detail) -> str:
    day = organization.standing.meter(LimitKind.DAY)
    own = Meter(max(0, day.used - (organization.others_used or 0)), day.limit)
    if not _is_day_blocked(organization) or own.used >= own.limit:
        return ""
    used = f"Gatehouse itself used {own.used:,} of {own.limit:,}"
    if may_be_smaller_plan(LimitKind.DAY, own):
        plan = "the organization's plan is smaller than the one set here"
        return f" Another client used up the daily limit, or {plan} ({used})."
    return f" The daily limit was used up by another client ({used})."


def _soon(organization: Detail, at: float) -> str:
    return text.soon(datetime.fromtimestamp(at, UTC), datetime.fromtimestamp(organization.at, UTC))


def _meter(organization: Detail, kind: LimitKind) -> str:
    meter = organization.standing.meter(kind)
    lines = [f"{meter} {bar(meter)}"]
    free_at = organization.free_at.get(kind)
    if free_at is not None:
        lines.append(f"next slot {_soon(organization, free_at)}")
    if kind is LimitKind.DAY:
        lines.append(_day(organization))
    if kind is LimitKind.CONCURRENT and organization.standing.lowered_until is not None:
        lines.append(_lowered(organization.standing, organization.standing.lowered_until))
    return "\n".join(lines)


def _lowered(standing: Standing, until: float) -> str:
    planned = limits_of(standing.plan).concurrent
    return f"lowered from {planned} after the service blocked more, until {moment(until)}"


def bar(meter: Meter) -> str:
    """Draw a meter with ten cells; any use fills at least one cell."""
    full = min(CELLS, max(round(meter.share * CELLS), 1 if meter.used else 0))
    return "▰" * full + "▱" * (CELLS - full)


def _day(organization: Detail) -> str:
    day = organization.standing.day
    resets = "" if day.resets_at is None else f", resets {_soon(organization, day.resets_at)}"
    other_clients = ""
    if organization.others_used:
        other_clients = f"; about {organization.others_used:,} by other clients"
    return f"{SOURCES[day.source]}{resets}{other_clients}"


def _forecast(organization: Detail) -> str:
    pace = f"{text.count(organization.forecast.calls_an_hour, 'call')} in the last hour"
    ends_at = organization.forecast.ends_at
    if ends_at is None:
        return f"{pace}: well within the daily limit"
    if ends_at <= organization.at:
        return f"{pace}: the daily limit is used up"
    return f"{pace}: the daily limit will be reached {moment(ends_at)}"


def _made(organization: Detail) -> str:
    if not organization.hours:
        return "No calls in the last 24 hours."
    return (
        f"*Gatehouse's calls in the last 24 hours*\nBy person: {_by_person(organization)}\n"
        f"By type: {_by_kind(organization)}"
    )


def _by_person(organization: Detail) -> str:
    made = organization.by_person()
    names = [f"{_who(organization, caller)} {calls:,}" for caller, calls in made[:PEOPLE_SHOWN]]
    rest = sum(calls for _, calls in made[PEOPLE_SHOWN:])
    return ", ".join(names + ([f"others {rest:,}"] if rest else []))


def _who(organization: Detail, slack_user_id: str | None) -> str:
    if slack_user_id is None:
        return "Gatehouse"
    client = client_named(slack_user_id)
    if client is not None:
        return f"{text.code(client)} (gateway)"
    return text.escape(organization.people.get(slack_user_id, slack_user_id), 80)


def _by_kind(organization: Detail) -> str:
    return ", ".join(f"{text.escape(kind)} {calls:,}" for kind, calls in organization.by_kind())


def _footnote(organization: Detail) -> str:
    standing = organization.standing
    organization_id = standing.key.organization_id
    parts = [
        f"ID {text.code(organization_id)}" if organization_id else "no organization named",
        f"data center {text.escape(standing.key.data_center)}",
        f"plan {standing.plan.value}",
        f"as of {moment(organization.at)}",
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


def _fallback(organization: Detail, lines: Sequence[str]) -> str:
    hours = ", ".join(f"{_hour(at)} {calls}" for at, calls in organization.by_hour())
    flat = [f"*{text.escape(organization.name, 300)}*", *lines, f"Calls by hour (UTC): {hours}"]
    return "\n".join(flat)


def checked(result: Checked) -> Message:
    """Show the result of a check: a successful call, a refused call, or no call."""
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
    """Format the state and the three meters on one line."""
    meters = " · ".join(f"{kind.in_words} {standing.meter(kind)}" for kind in LimitKind)
    return f"{MARKS[standing.state]} {state_in_words(standing)} · {meters}"


def plan_set(result: PlanSet) -> Message:
    """Confirm a plan, with its limits."""
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
