"""The composition root: connects every part, and opens and closes them."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cachetools import TTLCache
from slack_bolt.async_app import AsyncApp

import handlers
from bot import __version__
from bot.audit.reading import AuditReading
from bot.audit.witness import HEAD, WITNESS_KIND, Witness
from bot.checks.health import Health
from bot.checks.health_alerts import HEALTH_CARD, HEALTH_JOB, HealthAlerts
from bot.checks.health_watch import HealthWatch
from bot.checks.rules.status import Counted
from bot.checks.status import Count, StatusReport
from bot.configured import email_client, flow_client, inventory_access, quota_terms, redactor_of
from bot.emailkey import EmailKey
from bot.home.publishing import Home, HomeSetup
from bot.metrics import Metrics
from bot.ops.clock import Clock, SystemClock
from bot.ops.redaction import Redactor
from bot.organizations.client import DataCenterAccess, InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.quotas.guard import Guard
from bot.quotas.incidents import Incidents
from bot.quotas.parts import QuotaParts, QuotaSetup, quota_parts
from bot.quotas.store import incidents, quota_use
from bot.services.http import open_session
from bot.services.lane import Lane
from bot.settings import Settings, revealed
from bot.shared import Shared, channels_of, shared_parts
from bot.slack import received_events
from bot.slack.bolt import bolt_app
from bot.slack.client import SlackClient
from bot.slack.conversation import Conversation
from bot.slack.deliveries import Deliveries
from bot.slack.rules.pace import WINDOW_SECONDS, Deed, Pace, Recent
from bot.slack.sender import SEND_KIND, Sender
from bot.slack.server import SlackEndpoint
from bot.store import home_views, outbox
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.store.job_loop import JobLoop
from bot.store.retention import RETAIN_KIND, Retention
from bot.tasks import Tasks
from bot.testusers.card_links import CardLinks
from bot.testusers.parts import TestusersParts, testusers_parts
from bot.testusers.setup import RequestRules, Setup
from bot.testusers.store import flows, requests
from bot.workflows import Workflows

if TYPE_CHECKING:
    from bot.gateway.server import Gateway

PEOPLE_COUNTED = 10_000
# The database counts in `/gatehouse status` and `/metrics`.
COUNTS = {
    Counted.OPEN_INCIDENTS: incidents.count_open,
    Counted.PENDING_REQUESTS: requests.count_pending,
    Counted.UNDELIVERED_MESSAGES: outbox.count_undelivered,
}

# Data with a limited retention. The outbox is last: it keeps the cards of remaining objects.
PRUNES = (
    requests.forget,
    flows.forget,
    incidents.forget,
    quota_use.forget,
    home_views.forget,
    received_events.forget,
    outbox.prune,
)


@dataclass(frozen=True)
class Gatehouse:
    """The assembled bot; `plans` schedule the permanent jobs."""

    settings: Settings
    database: Database
    slack: SlackClient
    app: AsyncApp
    endpoint: SlackEndpoint
    workflows: Workflows
    audit: AuditStore
    jobs: JobLoop
    plans: Sequence[Callable[[Transaction], Awaitable[None]]]
    tasks: Tasks
    metrics: Metrics
    clock: Clock
    health: Health
    watch: HealthWatch
    gateway: "Gateway | None"


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
        redactor: Shared with the logs, so that later access tokens are redacted too.
        clock: The machine's, except in tests.
        own_clock: True if PostgreSQL tells the time; see `Database`.
    """
    clock = clock or SystemClock()
    url = settings.database_url.get_secret_value()
    database = Database(url, clock, own_clock=own_clock, pool_size=settings.database_pool)
    async with open_session() as session:
        try:
            shared = shared_parts(
                settings, redactor or redactor_of(settings), clock, database, session
            )
            yield _assemble(shared)
        finally:
            await database.close()


def _assemble(shared: Shared) -> Gatehouse:
    settings = shared.settings
    guard, access = _calls(shared)
    organizations, quotas = _organizations(shared, guard, access)
    testusers = _testusers(shared)
    home = _home(shared, organizations, quotas)
    gateway = _gateway(shared, guard, access, organizations)
    workflows = _workflows(shared, organizations, quotas, testusers, home, gateway)
    channels = channels_of(settings)
    alerts = HealthAlerts(shared.database, channels, shared.clock)
    watch = HealthWatch(
        shared.health, alerts, shared.slack, shared.database, channels, shared.clock
    )
    renderers = {**testusers.renderers, **quotas.renderers, HEALTH_CARD: alerts.card}
    witness = Witness(
        shared.database,
        shared.audit,
        settings.alerts_channel,
        is_wanted=settings.audit_witness,
    )
    renderers |= {HEAD: witness.note}
    shared.runners.update({WITNESS_KIND: witness.post})
    card_kinds = {*testusers.card_kinds, *quotas.card_kinds, HEALTH_CARD}
    sender = Sender(shared.database, shared.slack, renderers, card_kinds)
    retention = Retention(shared.database, settings.retain_days, PRUNES)
    shared.runners.update({SEND_KIND: sender.run, RETAIN_KIND: retention.run})
    shared.runners.update({**testusers.runners, **quotas.runners, HEALTH_JOB: alerts.end})
    shared.runners.update({home_views.PUBLISH: home.run, home_views.SPREAD: home.spread})
    app = bolt_app(settings, shared.people, shared.web, shared.metrics, shared.clock)
    listeners = _listeners(shared, app)
    handlers.register(listeners, workflows)
    shared.metrics.expect_commands(listeners.names | {"slack.request"})
    secret = revealed(settings.slack_signing_secret)
    return Gatehouse(
        settings=settings,
        database=shared.database,
        slack=shared.slack,
        app=app,
        endpoint=SlackEndpoint(app, secret, shared.metrics, shared.clock),
        workflows=workflows,
        audit=shared.audit,
        jobs=shared.jobs,
        plans=(retention.plan, home.plan, witness.plan, *quotas.plans, *testusers.plans),
        tasks=shared.tasks,
        metrics=shared.metrics,
        clock=shared.clock,
        health=shared.health,
        watch=watch,
        gateway=gateway,
    )


def _workflows(
    shared: Shared,
    organizations: OrganizationDirectory,
    quotas: QuotaParts,
    testusers: TestusersParts,
    home: Home,
    gateway: "Gateway | None",
) -> Workflows:
    settings, database = shared.settings, shared.database
    counts: dict[Counted, Count] = {**COUNTS}
    if gateway is not None:
        counts[Counted.GATEWAY_CALLS] = quota_use.count_of_clients
        counts[Counted.GATEWAY_CALLS_WAITING] = gateway.count_waiting
    return Workflows(
        people=shared.people,
        directory=organizations,
        ratelimits=quotas.ratelimits,
        alerts=quotas.alerts,
        emailkey=EmailKey(
            email_client(settings, shared.http),
            settings.missing_for("email"),
            Lane(shared.clock),
        ),
        testusers=testusers.workflows,
        home=home,
        conversation=Conversation(database, shared.slack, shared.clock),
        status=StatusReport(
            __version__,
            database,
            shared.services,
            shared.clock,
            counts,
            shared.health.troubles,
            shared.watchdog.stuck.values,
        ),
        audit=AuditReading(database, shared.audit),
        modals=shared.slack,
    )


def _home(shared: Shared, organizations: OrganizationDirectory, quotas: QuotaParts) -> Home:
    settings = shared.settings
    setup = HomeSetup(
        database=shared.database,
        clock=shared.clock,
        people=shared.people,
        directory=organizations,
        ratelimits=quotas.ratelimits,
        slack=shared.slack,
        approvals_needed=settings.approvals_needed,
        approvals_channel=settings.approvals_channel,
        wake=shared.jobs.wake,
    )
    return Home(setup)


def _listeners(shared: Shared, app: AsyncApp) -> handlers.Listeners:
    recent: TTLCache[tuple[str, Deed], Recent] = TTLCache(
        PEOPLE_COUNTED, WINDOW_SECONDS, timer=shared.clock.monotonic
    )
    pace = Pace(shared.settings.commands_per_minute, recent)
    return handlers.Listeners(
        app,
        shared.people,
        pace,
        shared.tasks,
        shared.metrics,
        shared.replies,
        shared.clock,
        Deliveries(shared.database),
    )


def _testusers(shared: Shared) -> TestusersParts:
    settings = shared.settings
    rules = RequestRules(
        aliases=settings.flow_aliases,
        approvals_needed=settings.approvals_needed,
        request_hours=settings.request_hours,
        remind_hours=settings.remind_hours,
        approvals_channel=settings.approvals_channel,
        alerts_channel=settings.alerts_channel,
        missing=settings.missing_for("flow"),
    )
    setup = Setup(
        shared.database,
        shared.audit,
        shared.people,
        flow_client(settings, shared.http),
        rules,
        lane=Lane(shared.clock),
    )
    card_links = CardLinks(shared.database, shared.slack, shared.clock)
    return testusers_parts(setup, shared.replies, shared.metrics.count_command, card_links)


def _calls(shared: Shared) -> tuple[Guard, dict[str, DataCenterAccess]]:
    settings, clock = shared.settings, shared.clock
    terms = quota_terms(settings)
    guard = Guard(shared.database, clock, terms, Incidents(terms), shared.tasks)
    return guard, inventory_access(settings, shared.http, clock)


def _gateway(
    shared: Shared,
    guard: Guard,
    access: Mapping[str, DataCenterAccess],
    directory: OrganizationDirectory,
) -> "Gateway | None":
    settings, database, clock = shared.settings, shared.database, shared.clock
    if settings.gateway_port is None:
        return None
    # Loaded only if used.
    from bot.configured_gateway import gateway_of, shares_of
    from bot.gateway.forward import ForwardParts
    from bot.gateway.turns import Turns

    shared.metrics.gateway.expect(settings.gateway_clients, settings.inventory_data_centers)
    parts = ForwardParts(
        session=shared.session,
        access=access,
        guard=guard,
        turns=Turns(guard, database, clock, shares_of(settings), shared.tasks, shared.watchdog),
        redactor=shared.http.redactor,
        observer=shared.observer,
        clock=clock,
        tasks=shared.tasks,
    )
    return gateway_of(settings, parts, directory, shared.metrics.gateway.count)


def _organizations(
    shared: Shared, guard: Guard, access: Mapping[str, DataCenterAccess]
) -> tuple[OrganizationDirectory, QuotaParts]:
    settings, clock, database = shared.settings, shared.clock, shared.database
    terms = quota_terms(settings)
    inventory = InventoryClient(shared.http, guard, access)
    directory = OrganizationDirectory(
        inventory, database, clock, settings.inventory_cache_seconds, settings.named_organizations
    )
    guard.name_of = directory.name_of
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
    )
    return directory, quota_parts(setup)
