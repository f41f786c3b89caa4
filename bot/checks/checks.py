"""Checks of Slack, the people in the settings, the services, the gateway, and the database.

The bot reads the clock at startup and then counts elapsed time, so a clock that is temporarily
wrong doesn't end access early. The bot adopts the machine's time as soon as that is nearer to
Slack's: if the clock was wrong at startup, or stopped while the machine was suspended.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from itertools import chain

import structlog
from pydantic import SecretStr
from yarl import URL

from bot.approvals.rules import EVERY_FLOW
from bot.checks.rules import NOT_CONFIGURED, NOT_TRIED, WELL, Finding, Part, all_well, failed, well
from bot.configured import email_client, flow_client
from bot.errors import (
    DatabaseReplaced,
    DatabaseTooNew,
    DatabaseTooOld,
    DatabaseUnavailable,
    GatehouseError,
    NotFound,
    OrganizationWideInstall,
    SlackError,
    SlackRefused,
)
from bot.flows.client import NO_SUCH_FLOW, FlowClient
from bot.metrics import Metrics
from bot.migrations import is_current, migrate, revision
from bot.ops.clock import Clock, SystemClock, machine_offset, read_date, since_boot
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import Organization, OrganizationKey
from bot.permissions import EVERY_FULL_MEMBER, Permission, Policy
from bot.services.calls import CallCause, ServiceLog
from bot.services.errors import ServiceError, ServiceRefused
from bot.services.http import ServiceHttp
from bot.settings import Settings
from bot.settings.model import SERVICES, ServiceName, revealed
from bot.slack.client import SlackClient
from bot.slack.manifest import missing_scopes
from bot.slack.messages.text import count
from bot.slack.people import is_not_found
from bot.store.causes import cause_of
from bot.store.engine import Database

log = structlog.get_logger(__name__)

# Warn early: if the clocks differ by five minutes, the bot refuses every request from Slack.
WRONG_SECONDS = 60.0
# Smaller steps are ordinary clock adjustments, or delays between readings.
LEAST_STEP_SECONDS = 1.0
ROLES = "roles"
CAUSE = CallCause("check")
NO_FLOW_SERVICE = (
    "The configured address returned 404 for every request, even with an incorrect token, so it is"
    " not the address of the flow service. Check FLOW_BASE_URL, which must not include /v2."
)

Listed = dict[str, Sequence[Organization]]
"""The organizations that a check listed, by data center."""


@dataclass(frozen=True)
class CheckParts:
    """The parts of the bot that the checks use. Tests can pass a smaller object.

    `stored` is what was found about the database before the other checks. Without a usable
    database, which counts calls, none is made to the inventory service.
    """

    settings: Settings
    clock: Clock
    database: Database
    slack: SlackClient
    http: ServiceHttp
    inventory: InventoryClient
    directory: OrganizationDirectory
    metrics: Metrics
    services: ServiceLog
    stored: Sequence[Finding] = ()
    listed: Listed = field(default_factory=dict)


Check = Callable[[CheckParts], Awaitable[Sequence[Finding]]]
"""A check of one or several parts or settings. It never writes to a service."""


# Slack, and the people in the settings


async def slack_token(parts: CheckParts) -> list[Finding]:
    """Check the bot token and its scopes, and compare this machine's clock with Slack's clock."""
    try:
        me = await parts.slack.who_am_i()
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_BOT_TOKEN ({error.error}). Install the app in the workspace again"
            " and copy its Bot User OAuth Token."
        )
        return [Finding(Part.SLACK_TOKEN, "token_refused", sentence)]
    except SlackError as error:
        return [failed(Part.SLACK_TOKEN, error)]
    if me.is_organization_wide:
        return [failed(Part.SLACK_TOKEN, OrganizationWideInstall())]
    scopes = well(Part.SLACK_SCOPES, "are complete." if me.scopes else "are unknown.")
    if missing := missing_scopes(me.scopes):
        scopes = Finding(Part.SLACK_SCOPES, "scope_missing", missing)
    return [
        well(Part.SLACK_TOKEN, f"is accepted by the workspace {me.team_name} ({me.team_id})."),
        scopes,
        *slack_clock(parts, me.answered_at),
    ]


async def app_token(parts: CheckParts) -> list[Finding]:
    """Check the Socket Mode token, if it is set."""
    token = revealed(parts.settings.slack_app_token)
    if token is None:
        return []
    try:
        await parts.slack.try_app_token(token)
    except SlackRefused as error:
        sentence = (
            f"Slack refuses SLACK_APP_TOKEN ({error.error}). Create an app-level token with the "
            "scope connections:write, and turn on Socket Mode."
        )
        return [Finding("slack app token", "app_token_refused", sentence)]
    except SlackError as error:
        return [failed("slack app token", error)]
    return [well("slack app token", "can open Socket Mode connections.")]


def slack_clock(parts: CheckParts, date: str) -> list[Finding]:
    """Compare this machine's clock with the `Date` header of a response from Slack."""
    clock = parts.clock
    reported = read_date(date)
    if reported is None or not isinstance(clock, SystemClock):
        return []
    offset = machine_offset()
    ahead = offset + since_boot() - reported.timestamp()
    own_ahead = clock.now().timestamp() - reported.timestamp()
    if abs(offset - clock.offset) >= LEAST_STEP_SECONDS and abs(ahead) < abs(own_ahead):
        log.warning("clock.renewed", seconds=round(offset - clock.offset, 3))
        clock.offset = offset
    if abs(ahead) <= WRONG_SECONDS:
        return [well(Part.CLOCK, "agrees with Slack's clock.")]
    side = "ahead of" if ahead > 0 else "behind"
    sentence = (
        f"This machine's clock is {abs(round(ahead))} s {side} Slack's. If the difference is more"
        " than 300 s, Gatehouse refuses every request from Slack. Turn on time synchronization."
    )
    return [Finding(Part.CLOCK, "clock_off", sentence)]


async def channels(parts: CheckParts) -> list[Finding]:
    """Check that the bot can post to all channels, and that those for cards are private."""
    settings = parts.settings
    cards = filter(None, (policy.channel for policy in settings.flow_policies.values()))
    return await asyncio.gather(
        _channel(parts, Part.ALERTS_CHANNEL, settings.alerts_channel),
        *(
            _channel(parts, Part.APPROVALS_CHANNEL, channel)
            for channel in sorted({settings.approvals_channel, *cards})
        ),
    )


async def _channel(parts: CheckParts, setting: Part, channel_id: str) -> Finding:
    try:
        channel = await parts.slack.channel(channel_id)
    except SlackError as error:
        name = error.error if isinstance(error, SlackRefused) else ""
        if name not in {"channel_not_found", "not_in_channel"}:
            return failed(setting, error)
        sentence = (
            f"Slack can't find {channel_id} ({name}). Either the ID is incorrect, or the channel is"
            " private and the bot is not in it. Copy the ID from the channel's details, or use"
            " /invite to add the bot."
        )
        return Finding(setting, "channel_unknown", sentence)
    is_open = not (channel.get("is_private") or channel.get("is_im"))
    if channel.get("is_archived"):
        code = "channel_archived"
        problem = "is archived. Choose another channel."
    elif channel.get("is_member") is False:
        code = "bot_not_in_channel"
        problem = "exists, but the bot is not in it. Use /invite to add the bot."
    elif parts.slack.is_shared(channel):
        code = "channel_shared"
        problem = (
            "is shared with another workspace or organization, whose members can read what"
            " Gatehouse posts. Choose a channel that isn't shared."
        )
    elif setting is Part.APPROVALS_CHANNEL and is_open:
        code = "channel_public"
        problem = "is public, but the cards in it show identities. Make the channel private."
    else:
        return well(setting, f"{channel_id} exists, and the bot is in it.")
    return Finding(setting, code, f"{channel_id} {problem}")


async def roles(parts: CheckParts) -> list[Finding]:
    """Return a finding for each invalid ID, and for each flow without approvers."""
    settings, policy = parts.settings, parts.settings.policy
    try:
        team_id = (await parts.slack.who_am_i()).team_id
    except SlackError as error:
        return [failed(ROLES, error)]
    places = dict.fromkeys(chain(*policy.roles.values()), "ROLES")
    for rules in policy.flow_policies.values():
        places |= dict.fromkeys(rules.named, "FLOW_POLICIES")
    places.pop(EVERY_FULL_MEMBER, None)
    if policy.access_contact:
        places.setdefault(policy.access_contact, "ACCESS_CONTACT")
    people: dict[str, frozenset[str]] = {}
    findings = []
    for slack_id, setting in places.items():
        try:
            people[slack_id] = await _members(parts.slack, team_id, slack_id)
        except (SlackError, NotFound) as error:
            code = error.outcome
            if isinstance(error, NotFound) or is_not_found(error):
                code = "group_unknown" if slack_id.startswith("S") else "user_unknown"
            people[slack_id] = frozenset()
            findings.append(Finding(ROLES, code, f"{slack_id} in {setting}: {error.sentence}"))
    # Everybody counts as one person without a name.
    people[EVERY_FULL_MEMBER] = _all_of(people, places) | {EVERY_FULL_MEMBER}
    are_known = all(finding.code.endswith("_unknown") for finding in findings)
    # Without the flow service, there is nothing to approve.
    if are_known and not settings.missing_for("flow"):
        aliases = {settings.sid_of(alias): alias for alias in settings.flow_aliases}
        others = ", ".join(aliases[sid] for sid in aliases if sid not in policy.flow_policies)
        names = {EVERY_FLOW: f"flows without their own policy{others and f' ({others})'}"}
        for sid in dict.fromkeys((EVERY_FLOW, *policy.flow_policies)):
            name = names.get(sid, f"flow {aliases.get(sid, sid)}")
            findings += _unapprovable(policy, sid, name, people)
    return findings or [
        well(ROLES, f"{count(len(places), 'person or group', 'people and groups')} found.")
    ]


async def _members(slack: SlackClient, team_id: str, slack_id: str) -> frozenset[str]:
    """Return the user IDs of a group's members, or of one person who can use the bot."""
    if slack_id.startswith("S"):
        return await slack.members(slack_id)
    user = await slack.user(slack_id)
    if user.is_deleted:
        raise NotFound("This account is deactivated.")
    if user.team_id not in ("", team_id):
        raise NotFound("This account belongs to another workspace.")
    return frozenset({slack_id})


def _unapprovable(
    policy: Policy, flow_sid: str, name: str, people: Mapping[str, frozenset[str]]
) -> list[Finding]:
    """Return a finding if nobody could ask for changes to a flow, or nobody could approve them."""
    rules = policy.of_flow(flow_sid)
    operators = _all_of(people, policy.with_role[Permission.REQUEST])
    askers = operators & _all_of(people, rules.requesters or people)
    rows = (("requesters", rules.requesters, operators), ("auto", rules.automatic, askers))
    for key, listed, able in rows:
        if listed and able.isdisjoint(_all_of(people, listed)):
            sentence = (
                f"None of the people in “{key}” for {name} can make requests. Give them the"
                " operator role in ROLES and, if the flow has “requesters”, list them there."
            )
            return [Finding(ROLES, "nobody_can_ask", sentence)]
    approvers = _all_of(people, policy.approvers(flow_sid))
    own = 0 if policy.allow_self_approval else 1
    most = max((len(approvers) - own * (asker in approvers) for asker in askers), default=0)
    if most >= rules.approvals_needed:
        return []
    who = "Nobody can approve"
    if approvers:
        who = f"Only {', '.join(sorted(approvers)[:5])} can approve, but not their own requests"
    sentence = (
        f"No request for {name} could be approved, because each needs"
        f" {count(rules.approvals_needed, 'approval')}. {who}. Add people who can approve to"
        f" {rules.sources.get('approvers', 'ROLES')}."
    )
    return [Finding(ROLES, "too_few_approvers", sentence)]


def _all_of(people: Mapping[str, frozenset[str]], holders: Iterable[str]) -> frozenset[str]:
    return frozenset().union(*(people[holder] for holder in holders))


# The services and the gateway


async def inventory(parts: CheckParts) -> list[Finding]:
    """Check each data center's credential by listing its organizations."""
    centers = parts.settings.inventory_data_centers
    if not centers:
        return [_missing(parts.settings, "inventory")]
    if not all_well(parts.stored):
        sentence = (
            "Gatehouse didn't check this, because it can't count or make calls without the"
            " database."
        )
        return [Finding(f"inventory {name}", NOT_TRIED, sentence) for name in centers]
    return await asyncio.gather(
        *(_data_center(parts, name, center.organization_id) for name, center in centers.items())
    )


async def _data_center(parts: CheckParts, name: str, organization_id: str | None) -> Finding:
    subject = f"inventory {name}"
    # The bot's next listing of the data center counts against this organization.
    key = OrganizationKey(name, await parts.directory.representative(name))
    try:
        rows = await _organizations(parts.inventory, key)
    except GatehouseError as error:
        return failed(subject, error)
    parts.listed[name] = rows
    if not rows:
        sentence = "The credential is valid, but doesn't give access to any organization."
        return Finding(subject, "no_organization", sentence)
    if organization_id and organization_id not in {row.organization_id for row in rows}:
        sentence = (
            f"organization_id {organization_id} is not one of the {len(rows)} listed"
            " organizations. Find the right ID in the service's console, under organization"
            " management, and use it in INVENTORY_DATA_CENTERS."
        )
        return Finding(subject, "organization_not_listed", sentence)
    return well(subject, f"lists {count(len(rows), 'organization')}.")


async def _organizations(client: InventoryClient, key: OrganizationKey) -> Sequence[Organization]:
    try:
        return await client.organizations(key, CAUSE)
    except ServiceRefused:
        if not key.organization_id:
            raise
        # The service doesn't know this organization, but might list others.
        return await client.organizations(OrganizationKey(key.data_center), CAUSE)


async def flows(parts: CheckParts) -> list[Finding]:
    """Check the flow service's credentials and aliases, without writing to the service.

    Only a write could show whether the form field is right.
    """
    settings, aliases = parts.settings, parts.settings.flow_aliases
    client = flow_client(settings, parts.http)
    if client is None:
        return [_missing(settings, "flow")]

    findings: list[Finding] = []
    for alias, flow_sid in (aliases or {"": NO_SUCH_FLOW}).items():
        findings.append(await _flow(client, alias, flow_sid))
        if findings[-1].code not in {WELL, "flow_unknown"}:
            return findings  # the next call would fail the same way
    if not aliases or all(finding.code == "flow_unknown" for finding in findings):
        # A service that returns 404 even for a wrong token is not the flow service.
        url = URL(settings.flow_base_url or "")
        stranger = FlowClient(parts.http, url, "nobody", SecretStr("no-such-token"))
        try:
            await stranger.read(NO_SUCH_FLOW)
        except ServiceError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return [Finding("flow", "wrong_host", NO_FLOW_SERVICE)]
    return findings


async def _flow(flows: FlowClient, alias: str, flow_sid: str) -> Finding:
    subject = f"flow {alias}".strip()
    try:
        users = await flows.read(flow_sid)
    except ServiceError as error:
        if error.status != HTTPStatus.NOT_FOUND:
            return failed(subject, error)
        if not alias:
            return well(subject, "accepts the credentials (no alias is configured).")
        sentence = f"There is no flow {flow_sid}. Correct “{alias}” in FLOW_ALIASES."
        return Finding(subject, "flow_unknown", sentence)
    return well(subject, f"exists and has {count(len(users), 'test user')}.")


async def email(parts: CheckParts) -> list[Finding]:
    """Check the email API key."""
    client = email_client(parts.settings, parts.http)
    if client is None:
        return [_missing(parts.settings, "email")]
    try:
        await client.get("templates")
    except ServiceError as error:
        return [failed("email", error)]
    return [well("email", f"The key works ({client.auth}).")]


async def credentials(parts: CheckParts) -> list[Finding]:
    """Return which services refused their credential in this process's last call."""
    refused = [seen.name for seen in parts.services.seen() if seen.is_refused]
    if not refused:
        return [well(Part.SERVICE_CREDENTIALS, "are accepted.")]
    sentence = f"{', '.join(refused)} rejected Gatehouse's credential. Run gatehouse check."
    return [Finding(Part.SERVICE_CREDENTIALS, "credentials_refused", sentence)]


def _missing(settings: Settings, service: ServiceName) -> Finding:
    missing = settings.missing_for(service)
    if len(missing) == len(SERVICES[service]):
        sentence = f"is not configured. To use this service's commands, set {', '.join(missing)}."
        return Finding(service, NOT_CONFIGURED, sentence)
    sentence = f"Set {', '.join(missing)} too, or remove this service's other settings."
    return Finding(service, "half_configured", sentence)


async def gateway(parts: CheckParts) -> list[Finding]:
    """Check the gateway's settings, with the organizations that were listed."""
    settings = parts.settings
    clients, port = settings.gateway_clients, settings.gateway_port
    if port is None and not clients and not settings.apis:
        return []
    if port is None or not clients:
        sentence = (
            "The gateway, and with it APIS, needs both GATEWAY_PORT and GATEWAY_CLIENTS. Set all or"
            " none of them."
        )
        return [Finding("gateway", "half_configured", sentence)]
    unknown = []
    for name, client in clients.items():
        for key in map(OrganizationKey.of_path, client.organizations):
            rows = parts.listed.get(key.data_center)
            ids = {row.organization_id for row in rows or ()}
            if rows is not None and key.organization_id not in ids:
                unknown.append(f"{key} ({name})")
    if unknown:
        sentence = (
            "GATEWAY_CLIENTS names organizations that the inventory service doesn't list:"
            f" {', '.join(unknown)}."
        )
        return [Finding("gateway", "organization_not_listed", sentence)]
    findings = [well("gateway", f"has {count(len(clients), 'client')}.")]
    for name in settings.apis:
        its = [client for client, other in clients.items() if name in other.organizations]
        sentence = f"can be called by {', '.join(its) or 'no client'}. This check doesn't call it."
        findings.append(well(f"api {name}", sentence))
    return findings


# The database


async def prepared_database(parts: CheckParts) -> list[Finding]:
    """Check the database, and create its tables before, as the bot does when it first starts."""
    try:
        if await revision(parts.database) is None:
            await migrate(parts.database)
    except DatabaseUnavailable as error:
        return [_failure(error)]
    return await database(parts)


def _failure(error: DatabaseUnavailable) -> Finding:
    cause = cause_of(error)
    return Finding(Part.DATABASE, cause.code, cause.sentence, cause.explanation)


async def database(parts: CheckParts) -> list[Finding]:
    """Check that the bot can use its database, without changing any data."""
    database = parts.database
    kind = "SQLite" if database.is_sqlite else "PostgreSQL"
    sentence = f"The {kind} database is reachable, up to date and writable."
    try:
        # The job loop proves the same every second.
        if not database.is_proven:
            if not await is_current(database) and await revision(database) is not None:
                sentence = (
                    "The database has an older schema. When Gatehouse starts next, it will upgrade"
                    " the database."
                )
                return [Finding(Part.DATABASE, "database_outdated", sentence)]
            await database.ping_writing()
    except (DatabaseTooNew, DatabaseTooOld, DatabaseReplaced) as error:
        return [failed(Part.DATABASE, error)]
    except DatabaseUnavailable as error:
        return [_failure(error)]
    return [well(Part.DATABASE, sentence)]
