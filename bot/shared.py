"""The parts that all others use: database, clients, people, and the job loop."""

import secrets
from dataclasses import dataclass

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.checks.health import Health
from bot.checks.rules.health import Part
from bot.checks.status import ServiceLog
from bot.metrics import Metrics
from bot.ops.clock import Clock
from bot.ops.redaction import Redactor
from bot.ops.watchdog import Watchdog
from bot.quotas.incidents import PROBE_JOB
from bot.services.calls import Observed, Observer
from bot.services.http import ServiceHttp
from bot.services.proxies import slack_web_client
from bot.settings import Settings
from bot.slack.client import SlackClient, SlackObserver
from bot.slack.people import People
from bot.slack.refusal_record import RefusalRecord
from bot.slack.replies import Replies
from bot.slack.sender import SEND_KIND
from bot.store import home_views
from bot.store.audit import AuditStore
from bot.store.engine import Database
from bot.store.job_loop import Crowd, JobLoop, Runner
from bot.tasks import Tasks
from bot.testusers.interactions import INTERACTION, UNDO
from bot.testusers.transitions import APPLY

# Jobs that may wait long for a service; hanging ones don't take the others' room.
CROWDS = (
    Crowd(frozenset({SEND_KIND}), 24),
    Crowd(frozenset({INTERACTION}), 24),
    Crowd(frozenset({UNDO}), 16),
    Crowd(frozenset({home_views.PUBLISH}), 24),
    Crowd(frozenset({APPLY}), 12),
    Crowd(frozenset({PROBE_JOB}), 8),
)


@dataclass(frozen=True)
class Shared:
    """The parts that all others use.

    `runners` is filled later, by parts that need this object.
    """

    settings: Settings
    clock: Clock
    database: Database
    session: aiohttp.ClientSession
    observer: Observer
    http: ServiceHttp
    web: AsyncWebClient
    slack: SlackClient
    replies: Replies
    audit: AuditStore
    people: People
    metrics: Metrics
    services: ServiceLog
    health: Health
    watchdog: Watchdog
    jobs: JobLoop
    tasks: Tasks
    runners: dict[str, Runner]


def shared_parts(
    settings: Settings,
    redactor: Redactor,
    clock: Clock,
    database: Database,
    session: aiohttp.ClientSession,
) -> Shared:
    """Return the shared parts, with nothing called or connected yet."""
    metrics = Metrics()
    services = ServiceLog(clock, _configured_services(settings))
    observer, web = _observer(metrics, services), _web_client(settings, session)
    health = Health(clock, channels_of(settings))
    slack = SlackClient(web, clock, _slack_observer(metrics, health))
    audit = AuditStore()
    runners: dict[str, Runner] = {}
    watchdog = Watchdog(metrics.standstills.inc)
    return Shared(
        settings=settings,
        clock=clock,
        database=database,
        session=session,
        observer=observer,
        http=ServiceHttp(session, redactor, observer, clock),
        web=web,
        slack=slack,
        replies=Replies(session, clock, slack, settings.slack_api_url),
        audit=audit,
        people=People(slack, settings.policy, RefusalRecord(database, audit, clock), clock),
        metrics=metrics,
        services=services,
        health=health,
        watchdog=watchdog,
        jobs=JobLoop(database, clock, secrets.token_hex(8), runners, CROWDS, watchdog),
        tasks=Tasks(),
        runners=runners,
    )


def _web_client(settings: Settings, session: aiohttp.ClientSession) -> AsyncWebClient:
    token = settings.slack_bot_token.get_secret_value()
    return slack_web_client(token, settings.slack_api_url, session)


def channels_of(settings: Settings) -> dict[Part, str]:
    """Return the channels that the bot posts to."""
    return {
        Part.APPROVALS_CHANNEL: settings.approvals_channel,
        Part.ALERTS_CHANNEL: settings.alerts_channel,
    }


def _slack_observer(metrics: Metrics, health: Health) -> SlackObserver:
    def observe(method: str, error: str | None, channel_id: str | None) -> None:
        metrics.count_slack(method, error)
        health.note_slack(method, error, channel_id)

    return observe


def _configured_services(settings: Settings) -> list[str]:
    centers = [f"inventory ({name})" for name in settings.inventory_data_centers]
    services = [name for name in ("flow", "email") if not settings.missing_for(name)]
    return [*centers, *services]


def _observer(metrics: Metrics, services: ServiceLog) -> Observer:
    def observe(observed: Observed) -> None:
        metrics.count_call(observed.service, str(observed.status or observed.outcome))
        center = f" ({observed.data_center})" if observed.data_center else ""
        failure = None if observed.outcome == "ok" else observed.outcome
        services.note(f"{observed.service}{center}", failure)

    return observe
