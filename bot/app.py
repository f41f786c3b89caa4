"""The composition root: the only file that names every concrete class; it opens and closes them."""

import secrets
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from cachetools import TTLCache
from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_sdk.web.async_client import AsyncWebClient

import handlers
from bot import __version__
from bot.clients.calls import Observed, Observer
from bot.clients.configured import (
    email_client,
    flow_client,
    inventory_access,
    quota_terms,
    redactor_of,
)
from bot.clients.http import ServiceHttp, open_session
from bot.clients.inventory import InventoryClient
from bot.clients.replies import Replies
from bot.clients.slack import SlackClient
from bot.clock import Clock, SystemClock
from bot.metrics import Metrics
from bot.model.approval import Rules
from bot.model.pace import WINDOW_SECONDS, CommandPace
from bot.model.status import OPEN_INCIDENTS
from bot.redaction import Redactor
from bot.server import MeasuredApp, SlackEndpoint
from bot.settings import Settings, revealed
from bot.store import incidents, outbox, quota_use, requests
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.tasks import Tasks
from bot.workflows.audit import AuditReading
from bot.workflows.desk import Desk
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.emailkey import EmailKey
from bot.workflows.guard import Guard
from bot.workflows.incidents import Incidents
from bot.workflows.jobs import JobLoop, Runner
from bot.workflows.outbox import SEND_KIND, Sender
from bot.workflows.people import People
from bot.workflows.quota_parts import QuotaParts, QuotaSetup, quota_parts
from bot.workflows.retention import RETAIN_KIND, Retention
from bot.workflows.status import ServiceLog, StatusReport
from bot.workflows.testusers.clicks import CLICK
from bot.workflows.testusers.parts import TestusersParts, testusers_parts
from bot.workflows.testusers.setup import RequestRules, Setup

PEOPLE_COUNTED = 10_000
# What `/gatehouse status` and `/metrics` count in the database.
COUNTS = {
    OPEN_INCIDENTS: incidents.count_open,
    "Pending requests": requests.count_pending,
}


@dataclass(frozen=True)
class Gatehouse:
    """The bot, put together; `plans` see to the jobs that are always there."""

    settings: Settings
    database: Database
    slack: SlackClient
    app: AsyncApp
    endpoint: SlackEndpoint
    desk: Desk
    jobs: JobLoop
    plans: Sequence[Callable[[Transaction], Awaitable[None]]]
    tasks: Tasks
    metrics: Metrics
    clock: Clock


@dataclass(frozen=True)
class Shared:
    """What every part is made of.

    `runners` is filled when the parts are made: they want to wake the loop that runs them.
    """

    settings: Settings
    clock: Clock
    database: Database
    http: ServiceHttp
    web: AsyncWebClient
    slack: SlackClient
    replies: Replies
    audit: AuditStore
    people: People
    metrics: Metrics
    services: ServiceLog
    jobs: JobLoop
    tasks: Tasks
    runners: dict[str, Runner]


@asynccontextmanager
async def gatehouse(
    settings: Settings,
    redactor: Redactor | None = None,
    clock: Clock | None = None,
    *,
    own_clock: bool = True,
) -> AsyncIterator[Gatehouse]:
    """Yield the bot for these settings; nothing is called or connected yet.

    Args:
        settings: As read from the environment.
        redactor: Shared with the logs, so that access tokens got later are kept out of them too.
        clock: The machine's unless a test has one.
        own_clock: Whether PostgreSQL tells the time; see `Database`.
    """
    clock = clock or SystemClock()
    database = Database(settings.database_url.get_secret_value(), clock, own_clock=own_clock)
    async with open_session() as session:
        try:
            shared = _shared(settings, redactor or redactor_of(settings), clock, database, session)
            yield _assemble(shared)
        finally:
            await database.close()


def _shared(
    settings: Settings,
    redactor: Redactor,
    clock: Clock,
    database: Database,
    session: aiohttp.ClientSession,
) -> Shared:
    metrics = Metrics()
    services = ServiceLog(clock, _configured_services(settings))
    web = slack_web_client(settings, session)
    slack, audit = SlackClient(web, clock), AuditStore(settings.audit_key_bytes)
    runners: dict[str, Runner] = {}
    return Shared(
        settings=settings,
        clock=clock,
        database=database,
        http=ServiceHttp(session, redactor, _observer(metrics, services), clock),
        web=web,
        slack=slack,
        replies=Replies(session, clock, slack),
        audit=audit,
        people=People(slack, settings.policy, database, audit, clock),
        metrics=metrics,
        services=services,
        jobs=JobLoop(database, clock, secrets.token_hex(8), runners, {SEND_KIND, CLICK}),
        tasks=Tasks(),
        runners=runners,
    )


def _assemble(shared: Shared) -> Gatehouse:
    settings = shared.settings
    organizations, quotas = _organizations(shared)
    testusers = _testusers(shared)
    desk = _desk(shared, organizations, quotas, testusers)
    sender = Sender(shared.database, shared.slack, {**testusers.renderers, **quotas.renderers})
    # The outbox comes last: it keeps the cards of what is not forgotten.
    prunes = [requests.forget, incidents.forget, quota_use.forget, outbox.prune]
    retention = Retention(shared.database, settings.retain_days, prunes)
    shared.runners.update({SEND_KIND: sender.run, RETAIN_KIND: retention.run})
    shared.runners.update({**testusers.runners, **quotas.runners})
    app = _bolt_app(shared)
    handlers.register(_frame(shared, app), desk)
    secret = revealed(settings.slack_signing_secret)
    return Gatehouse(
        settings=settings,
        database=shared.database,
        slack=shared.slack,
        app=app,
        endpoint=SlackEndpoint(app, secret),
        desk=desk,
        jobs=shared.jobs,
        plans=(retention.plan, *quotas.plans),
        tasks=shared.tasks,
        metrics=shared.metrics,
        clock=shared.clock,
    )


def _desk(
    shared: Shared,
    organizations: OrganizationDirectory,
    quotas: QuotaParts,
    testusers: TestusersParts,
) -> Desk:
    settings, database = shared.settings, shared.database
    return Desk(
        people=shared.people,
        directory=organizations,
        ratelimits=quotas.ratelimits,
        alerts=quotas.alerts,
        emailkey=EmailKey(email_client(settings, shared.http), settings.missing_for("email")),
        testusers=testusers.desk,
        status=StatusReport(__version__, database, shared.services, shared.clock, COUNTS),
        audit=AuditReading(database, shared.audit),
        modals=shared.slack,
    )


def _frame(shared: Shared, app: AsyncApp) -> handlers.Frame:
    recent: TTLCache[str, deque[float]] = TTLCache(
        PEOPLE_COUNTED, WINDOW_SECONDS, timer=shared.clock.monotonic
    )
    pace = CommandPace(shared.settings.commands_per_minute, recent)
    return handlers.Frame(
        app, shared.people, pace, shared.tasks, shared.metrics, shared.replies, shared.clock
    )


def _testusers(shared: Shared) -> TestusersParts:
    settings = shared.settings
    rules = RequestRules(
        aliases=settings.flow_aliases,
        approval=Rules(settings.approvals_needed),
        request_hours=settings.request_hours,
        remind_hours=settings.remind_hours,
        approvals_channel=settings.approvals_channel,
    )
    setup = Setup(
        shared.database,
        shared.audit,
        shared.people,
        flow_client(settings, shared.http),
        rules,
        shared.jobs.wake,
    )
    return testusers_parts(setup, shared.replies, shared.metrics.count_command)


def _organizations(shared: Shared) -> tuple[OrganizationDirectory, QuotaParts]:
    """Return what knows the organizations, and what sees to their limits: no call without both."""
    settings, clock, database = shared.settings, shared.clock, shared.database
    terms, wake = quota_terms(settings), shared.jobs.wake
    guard = Guard(database, clock, terms, Incidents(terms, wake), shared.tasks)
    access = inventory_access(settings, shared.http, clock)
    inventory = InventoryClient(shared.http, guard, access)
    directory = OrganizationDirectory(
        inventory, database, clock, settings.inventory_cache_seconds, settings.named_organizations
    )
    setup = QuotaSetup(
        database=database,
        clock=clock,
        audit=shared.audit,
        people=shared.people,
        inventory=inventory,
        directory=directory,
        terms=terms,
        alerts_channel=settings.alerts_channel,
        is_watching=settings.inventory_watch,
        wake=wake,
    )
    return directory, quota_parts(setup)


def slack_web_client(settings: Settings, session: aiohttp.ClientSession) -> AsyncWebClient:
    """Return Slack's own client on the shared session."""
    return AsyncWebClient(
        token=settings.slack_bot_token.get_secret_value(),
        base_url=settings.slack_api_url.rstrip("/") + "/",
        session=session,
        # Posts are repeated by the outbox, which knows what it posted; nothing here repeats them.
        retry_handlers=[],
    )


def _bolt_app(shared: Shared) -> AsyncApp:
    """Return Bolt without a call of its own: the token was tried at the start."""
    settings, people = shared.settings, shared.people

    async def authorize(enterprise_id: str | None, team_id: str | None) -> AuthorizeResult:
        return AuthorizeResult(
            enterprise_id=enterprise_id,
            team_id=team_id,
            bot_token=settings.slack_bot_token.get_secret_value(),
            bot_user_id=people.bot_user_id,
        )

    return MeasuredApp(
        shared.metrics,
        shared.clock,
        client=shared.web,
        authorize=authorize,
        # bot.server verifies signatures: Bolt answers a malformed one with 500.
        request_verification_enabled=False,
        signing_secret="verified by bot.server",  # noqa: S106 - not a secret
    )


def _configured_services(settings: Settings) -> list[str]:
    centers = [f"inventory ({name})" for name in settings.inventory_data_centers]
    others = [name for name in ("flow", "email") if not settings.missing_for(name)]
    return [*centers, *others]


def _observer(metrics: Metrics, services: ServiceLog) -> Observer:
    def observe(observed: Observed) -> None:
        metrics.count_call(observed.service, str(observed.status or observed.outcome))
        center = f" ({observed.data_center})" if observed.data_center else ""
        failure = None if observed.outcome == "ok" else observed.outcome
        services.note(f"{observed.service}{center}", failure)

    return observe
