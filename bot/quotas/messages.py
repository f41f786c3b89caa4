"""Messages about rate limits, test calls, plans, and blocked organizations."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from bot.organizations.messages import problems
from bot.organizations.rules import Directory, OrganizationKey
from bot.quotas.rules.limits import LIMITS, Limit, LimitKind, Plan, Source
from bot.quotas.rules.quota import (
    DOCUMENTED,
    HOUR_SECONDS,
    MINUTE_SECONDS,
    PEOPLE_SHOWN,
    Block,
    BlockCode,
    HourOfCalls,
    Incident,
    Meter,
    QuotaState,
    Standing,
    calls_by,
    first_hour,
)
from bot.services.calls import PROBE, WATCH, client_named
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import FIRST, Message, Page, SlackBlock, Wanted

HEADINGS = ("Organization", "State", "Minute", "Day", "At once", "Data center")
NUMBERS = frozenset({2, 3, 4})
# Slack tables don't render emoji names.
MARKS = {
    QuotaState.BLOCKED: "\u26d4",
    QuotaState.DAY_FULL: "\U0001f534",
    QuotaState.MINUTE_FULL: "\U0001f534",
    QuotaState.BUSY: "\U0001f7e0",
    QuotaState.NEARLY_FULL: "\U0001f7e1",
    QuotaState.FINE: "\U0001f7e2",
}
# Slack allows at most 20 categories per chart and two charts per message (docs.slack.dev, data
# visualization block), so each chart shows 12 hours.
HOURS_A_CHART = 12
CHARTS = ("Calls by hour (UTC), 24 to 12 hours ago", "Calls by hour (UTC), last 12 hours")
SOURCES = {
    Source.PLAN: "the plan's limit, counted over 25 hours",
    Source.REPORTED: "reported by the service",
    Source.MESSAGE: "from the service's last error message",
}
ONE_AT_A_TIME = {
    Source.RESET: "until the service reports on its new day",
    Source.STALL: "while the service doesn't respond",
}
# Kinds of calls that have another name in the code than in messages.
KINDS = {PROBE: "test after a block", WATCH: "regular check"}
ORGANIZATIONS_SHOWN = 15
NO_ID = "no specific organization"


def _moment(at: float) -> str:
    return text.time(datetime.fromtimestamp(at, UTC))


def again(block: Block, now: float, key: OrganizationKey) -> str:
    """Return when the next call to a blocked organization will be made.

    Only clients make calls to another API.
    """
    tries, will_try = "Gatehouse is trying", "Gatehouse will try"
    if key.is_api:
        tries = will_try = "A client can try"
    if block.until <= now:
        return f"{tries} again now."
    soon = ", in less than a minute" if block.until - now < MINUTE_SECONDS else ""
    return f"{will_try} again {_moment(block.until)}{soon}."


def overview(
    standings: Sequence[Standing], directory: Directory, at: datetime, wanted: Wanted = FIRST
) -> Message:
    """Show a page of organizations, and list the data centers that couldn't be loaded."""
    total = sum(bool(standing.key.organization_id) for standing in standings)
    summary = (
        f"*API usage of {text.count(total, 'organization')}*, starting with those closest to a"
        " limit"
    )
    page = Page.cut(standings, ORGANIZATIONS_SHOWN, wanted)
    rows: list[Sequence[str]] = []
    lines: list[str] = []
    options: list[tuple[str, str]] = []
    for standing in page.items:
        name = directory.name_of(standing.key)
        key = standing.key
        state = _state(standing)
        meters = {kind: str(meter) for kind, meter in standing.meters.items()}
        sign = f"{MARKS[standing.state]} {state}"
        numbers = [meters.get(kind, "–") for kind in LimitKind]
        rows.append(
            (text.shorten(name, 60), sign, *numbers, "–" if key.is_api else key.data_center)
        )
        used = ", ".join(f"{meter} {kind.in_words}" for kind, meter in meters.items())
        lines.append(f"{text.escape(name, 60)}{key.center}: {used}, {state}")
        options.append((f"{text.shorten(name, 50)}{key.center}", key.path))
    controls = list[SlackBlock]()
    if options:
        controls.append(block_kit.select("Open an organization…", ids.RATELIMITS_SHOW, options))
    controls += page.turns(ids.RATELIMITS_PAGE)
    refresh = f"{ids.RATELIMITS_PAGE}.refresh"
    controls.append(block_kit.button("Refresh", refresh, page.wanted.value()))
    details = f"{text.code('/ratelimits <org>')} shows an organization's calls in the last 24 hours"
    return block_kit.tabular(
        [summary, *problems(directory.failures)],
        [HEADINGS, *rows],
        lines,
        (page.place, f"As of {text.time(at)}", details),
        controls,
        right=NUMBERS,
    )


def _state(standing: Standing) -> str:
    state = standing.state.value
    if block := standing.blocks.longest:
        return f"{state} ({block.code})" if block.code in DOCUMENTED else state
    lowered = standing.lowered(LimitKind.MINUTE)
    return f"{state}; {_limited(lowered)}" if lowered else state


def _limited(lowered: Limit) -> str:
    most = text.count(lowered.most, "call")
    if lowered.is_for_background:
        return f"scripts and background jobs are limited to {most} per minute"
    return f"Gatehouse makes at most {most} at once"


def detail(
    name: str,
    standing: Standing,
    hours: Sequence[HourOfCalls],
    people: Mapping[str, str],
    last_hour: int,
) -> Message:
    """Show an organization's current usage, its calls in the last 24 hours, and what is left.

    `people` maps Slack user IDs to names. `last_hour` is the number of calls in the last hour.
    """
    key = standing.key
    state = f"{MARKS[standing.state]} *{_state(standing).capitalize()}*"
    pairs = [(kind.in_words.capitalize(), _meter(standing, kind)) for kind in standing.meters]
    if block := standing.blocks.longest:
        state += f" since {_moment(block.since)}. {again(block, standing.now, standing.key)}"
    elif day := standing.meters.get(LimitKind.DAY):
        pairs.append(("At this pace", _pace(standing, day, last_hour)))
    made = _made(hours, people)
    made_by_hour = calls_by("hour_at", hours)
    hour_at = first_hour(standing.now)
    charts: list[SlackBlock] = []
    spoken = list[str]()
    for title in CHARTS:
        half = dict[str, int]()
        for _ in range(HOURS_A_CHART):
            half[f"{datetime.fromtimestamp(hour_at, UTC):%H:00}"] = made_by_hour[hour_at]
            hour_at += HOUR_SECONDS
        if not any(half.values()):
            continue
        points = [{"label": hour, "value": calls} for hour, calls in half.items()]
        axes = {"categories": [*half], "y_label": "Calls"}
        series = [{"name": "Calls", "data": points}]
        chart = {"type": "bar", "series": series, "axis_config": axes}
        charts.append({"type": "data_visualization", "title": title, "chart": chart})
        spoken.append(f"{title}: {', '.join(f'{hour} {calls}' for hour, calls in half.items())}")
    buttons = [block_kit.button("Refresh", ids.RATELIMITS_REFRESH, key.path)]
    about = "limits set in APIS"
    if not key.is_api:
        buttons.insert(0, block_kit.button("Check now", ids.RATELIMITS_CHECK, key.path))
        identity = f"ID {text.code(key.organization_id)}" if key.organization_id else NO_ID
        about = f"{identity} · data center {key.data_center} · plan {standing.plan}"
    footnote = f"{about} · as of {_moment(standing.now)}"
    lines = [
        f"*{text.escape(name, 300)}*",
        state,
        *(f"{label}: {words}" for label, words in pairs),
        made,
        *spoken,
    ]
    blocks = (
        block_kit.header(name),
        block_kit.section(state),
        block_kit.fields(pairs),
        block_kit.section(made),
        *charts,
    )
    small_print = block_kit.context(footnote)
    return Message("\n".join(lines), blocks).plus(small_print, block_kit.actions(*buttons))


def _pace(standing: Standing, day: Meter, last_hour: int) -> str:
    end = "well within the daily limit"
    ends_at = standing.day_ends_at(last_hour)
    if ends_at is not None and ends_at <= standing.now:
        end = "the daily limit is used up"
    elif ends_at is not None:
        end = f"the daily limit will be reached {_moment(ends_at)}"
    left = text.count(max(0, day.allowed - day.used), "call")
    return f"{text.count(last_hour, 'call')} in the last hour: {end}\n{left} left"


def _meter(standing: Standing, kind: LimitKind) -> str:
    lines = [str(standing.meters[kind])]
    for limit in standing.limits:
        if limit.kind is not kind:
            continue
        if limit.source is Source.RESERVE:
            reserved = standing.meters[kind].limit - limit.most
            lines.append(f"{text.count(reserved, 'call')} reserved for other programs")
        elif limit.source is Source.REFUSAL and limit.until is not None:
            until = _moment(limit.until)
            lines.append(f"{_limited(limit)} until {until} because the service blocked calls")
        elif limit.source in ONE_AT_A_TIME:
            lines.append(f"one call at a time {ONE_AT_A_TIME[limit.source]}")
        elif kind is LimitKind.DAY:
            resets = "" if limit.until is None else f", resets {_moment(limit.until)}"
            is_set = standing.key.is_api and limit.source is Source.PLAN
            source = "set for this API, counted over 25 hours" if is_set else SOURCES[limit.source]
            lines.append(f"{source}{resets}")
    return "\n".join(lines)


def _made(hours: Sequence[HourOfCalls], people: Mapping[str, str]) -> str:
    if not hours:
        return "Gatehouse made no calls in the last 24 hours."
    made = calls_by("slack_user_id", hours).most_common()
    callers = []
    for caller, calls in made[:PEOPLE_SHOWN]:
        client = client_named(caller)
        name = text.escape(people.get(caller, caller or "Gatehouse"), 80)
        callers.append(f"{f'{text.code(client)} (gateway)' if client else name} {calls:,}")
    rest = sum(calls for _, calls in made[PEOPLE_SHOWN:])
    if rest:
        callers.append(f"others {rest:,}")
    kinds = [
        f"{KINDS.get(kind, text.escape(kind))} {calls:,}"
        for kind, calls in calls_by("kind", hours).most_common()
    ]
    return (
        f"*Gatehouse's calls in the last 24 hours*\nBy person: {', '.join(callers)}\n"
        f"By type: {', '.join(kinds)}"
    )


def checked(
    name: str, standing: Standing, *, seconds: float | None = None, refusal: str | None = None
) -> Message:
    """Show whether a test call succeeded, was blocked, or wasn't made."""
    name = f"*{text.escape(name, 300)}*"
    block = standing.blocks.longest
    until = "" if block is None else f" {again(block, standing.now, standing.key)}"
    if seconds is not None:
        verdict = f":white_check_mark: The test call to {name} succeeded ({seconds:.2f} s)."
    elif refusal is not None:
        words = f": “{text.escape(refusal, 300)}”" if refusal else "."
        verdict = f":no_entry: The test call to {name} was blocked{words}{until}"
    else:
        since = "" if block is None else f" {_moment(block.since)}"
        verdict = f":no_entry: The service blocked {name}{since}, so no call was made.{until}"
    meters = " · ".join(f"{kind.in_words} {meter}" for kind, meter in standing.meters.items())
    markup = f"{verdict}\n{MARKS[standing.state]} {_state(standing)} · {meters}"
    button = block_kit.button("Show limits", ids.RATELIMITS_SHOW, standing.key.path)
    return Message.of(markup).with_buttons(button)


def not_for_apis(name: str, act: str) -> Message:
    """Say that something can't be done to another API."""
    return Message.of(
        f"*{text.escape(name, 300)}* is set in `APIS`, so Gatehouse {act}. Only gateway clients"
        " make calls to it."
    )


def plan_set(name: str, before: Plan, now: Plan) -> Message:
    """Confirm an organization's plan."""
    limits = LIMITS[now]
    return Message.of(
        f"*{text.escape(name, 300)}* is now on the *{now}* plan, which allows {limits.minute:,}"
        f" calls per minute, {limits.day:,} per day, and {limits.concurrent:,} at once. Until"
        f" now, the organization was on the {before} plan."
    )


def incident_card(incident: Incident, name: str) -> Message:
    """Return the alert for an open or closed incident."""
    detail = incident.detail
    key = incident.key
    subject = f"*{text.escape(name, 300)}*{key.center}"
    exceeded, cause = _cause(incident)
    headline = f":no_entry: {subject} is blocked, because {exceeded}."
    if incident.closed_at is not None:
        outcome = _outcome(incident, incident.closed_at, subject)
        headline = f"{outcome}\nIt was blocked because {exceeded}."
    lines = [headline, " ".join((cause, *_effects(incident)))]
    if reason := text.escape(detail.words, 300):
        lines.append(f"> {reason}")
    # Gatehouse's own usage includes the usage of each gateway client.
    clients = [
        f"{text.escape(name)} {minute:,} per minute, {day:,} per day"
        for name, (minute, day) in detail.clients.items()
    ]
    if clients:
        lines.append(f"Calls by gateway clients: {'; '.join(clients)}.")
    card = Message.of(*lines).plus(block_kit.context(_small_print(incident)))
    if incident.closed_at is not None:
        return card
    buttons = [block_kit.button("Mute 1 h", ids.INCIDENT_MUTE, str(incident.id))]
    if not key.is_api:
        buttons.insert(0, block_kit.button("Check now", ids.RATELIMITS_CHECK, key.path))
    return card.with_buttons(*buttons)


def cleared_note(incident: Incident, closed_at: datetime, name: str) -> Message:
    """Return the thread reply that announces the end of an incident."""
    return Message(_outcome(incident, closed_at, text.escape(name, 300)))


def _outcome(incident: Incident, closed_at: datetime, subject: str) -> str:
    lasted = text.duration((closed_at - incident.opened_at).total_seconds())
    if because := incident.detail.ended_because:
        return f":heavy_minus_sign: *Closed* after {lasted}: {subject} {because}."
    return f":white_check_mark: *Cleared* after {lasted}: calls to {subject} work again."


def muted(name: str, until: datetime) -> Message:
    """Confirm that alerts were muted."""
    name = text.escape(name, 300)
    return Message(
        f"New alerts about {name} are muted until {text.time(until)}. This alert keeps updating."
    )


def _cause(incident: Incident) -> tuple[str, str]:
    """Return what was exceeded, and a sentence about who used up the limit."""
    detail = incident.detail
    kind = BlockCode(incident.code).kind
    if not detail.is_code_known:
        unknown = "Gatehouse doesn't know which limit this is."
        if incident.key.is_api:
            return "it sent a 429 (too many requests)", unknown
        code = detail.sent_code
        sent = "without a code" if code is None else f"with the undocumented code {code}"
        return f"the service sent a 429 {sent}", unknown
    used, limit = detail.own[kind.value]
    exceeded = f"the limit of {limit:,} requests {kind.unit} was exceeded"
    if used >= limit:
        return exceeded, f"Gatehouse itself had reached the limit ({used:,} requests {kind.unit})."
    made = f"{used:,} of these calls"
    if detail.possible >= limit:
        return exceeded, (
            f"Gatehouse had made {made}, and the service may have counted earlier ones too."
        )
    # Every plan has the same limit per minute.
    smaller = "" if kind is LimitKind.MINUTE else ", or the organization has a smaller plan"
    return exceeded, (
        f"Gatehouse made only {made}, so *another client* used up the limit{smaller}."
    )


def _effects(incident: Incident) -> Iterator[str]:
    is_minute = incident.code == BlockCode.MINUTE
    is_open = incident.closed_at is None
    if is_minute and is_open and incident.detail.is_code_known:
        yield "People who use the service in a browser may be locked out too."
    if lowered := incident.lowered:
        yield f"For {'an hour' if is_minute else 'a day'}, {_limited(lowered)}."
    if is_open and (block := incident.blocks.longest):
        yield again(block, incident.now, incident.key)


def _small_print(incident: Incident) -> str:
    key = incident.key
    detail = incident.detail
    times = "once" if incident.refusals == 1 else f"{incident.refusals:,} times"
    code = f", code {incident.code}" if detail.is_code_known else ""
    own = [
        f"{used:,}/{limit:,} {LimitKind(kind).unit}" for kind, (used, limit) in detail.own.items()
    ]
    parts = [
        text.code(key.organization_id) if key.organization_id else NO_ID,
        "an API of its own" if key.is_api else f"{key.data_center}{code}",
        f"since {text.time(incident.opened_at)}",
        f"refused {times}",
        f"Gatehouse's usage then: {', '.join(own)}",
    ]
    if incident.closed_at is not None:
        parts.append(f"ended {text.time(incident.closed_at)}")
    elif incident.is_muted:
        by = f" by {text.escape(incident.muted_by, 80)}" if incident.muted_by else ""
        parts.append(f"muted{by} until {_moment(incident.muted_until)}")
    return " · ".join(parts)
