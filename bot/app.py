"""The composition root: `gatehouse` builds all parts of the bot."""

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient

from bot.audit.reading import HEAD, Witness
from bot.checks.checks import CheckParts
from bot.checks.health import HEALTH_CARD, Health
from bot.configured import email_client, flow_client, quota_terms, redactor_of, service_access
from bot.emailkey import EmailClient
from bot.errors import NotConfigured
from bot.flows.client import Flows
from bot.gateway.asking import Programs
from bot.gateway.forward import Forwarder
from bot.gateway.server import Gateway
from bot.gateway.turns import Turns
from bot.home.publishing import Home, redraw
from bot.metrics import Metrics
from bot.ops.clock import Clock, SystemClock
from bot.ops.redaction import Redactor
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.quotas.guard import Guard
from bot.quotas.incidents import CARD, NOTE, Alerts, Probes, Watcher
from bot.quotas.ratelimits import RateLimits
from bot.quotas.store import incidents
from bot.services.calls import Observed, ServiceLog
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings
from bot.slack import received_events
from bot.slack.client import SlackClient, slack_web_client
from bot.slack.people import Pace, People
from bot.slack.received_events import ReceivedEvents
from bot.slack.replies import Replies
from bot.slack.sender import Sender
from bot.store import outbox
from bot.store.engine import Database
from bot.store.job_loop import JobLoop
from bot.store.retention import Retention
from bot.tasks import Tasks
from bot.testusers import jobs as testuser_jobs
from bot.testusers import store
from bot.testusers.parts import Parts as TestuserParts
from bot.testusers.rendering import RequestMessages

# Functions that delete old data. The outbox is last: it keeps the cards of existing requests.
PRUNES = (
    store.forget_requests,
    incidents.forget,
    received_events.forget,
    outbox.pruning(store.CARD_IS_NEEDED, incidents.CARD_IS_NEEDED),
)


@dataclass(frozen=True)
class SlackParts:
    """The parts that talk to Slack and know its people."""

    web: AsyncWebClient
    client: SlackClient
    replies: Replies
    people: People
    pace: Pace
    received: ReceivedEvents


@dataclass(frozen=True)
class InventoryParts:
    """The parts that know organizations and their limits. Without clients, `gateway` is None."""

    directory: OrganizationDirectory
    ratelimits: RateLimits
    alerts: Alerts
    gateway: Gateway | None


@dataclass(frozen=True)
class Gatehouse:
    """All parts of the bot, which `gatehouse` builds. Without its settings, `email` is None."""

    settings: Settings
    clock: Clock
    database: Database
    metrics: Metrics
    tasks: Tasks
    slack: SlackParts
    inventory: InventoryParts
    testusers: TestuserParts
    email: EmailClient | None
    home: Home
    health: Health
    jobs: JobLoop

    @property
    def emailkey(self) -> EmailClient:
        """The email service's client.

        Raises:
            NotConfigured: Some of the email service's settings are missing.
        """
        if self.email is None:
            raise NotConfigured("the email service", self.settings.missing_for("email"))
        return self.email


@asynccontextmanager
async def gatehouse(
    settings: Settings, redactor: Redactor | None = None, clock: Clock | None = None
) -> AsyncIterator[Gatehouse]:
    """Yield a bot with these settings, without making calls or opening connections.

    Pass the redactor that the logs use, so that it also removes access tokens issued later.
    """
    clock = clock or SystemClock()
    redactor = redactor or redactor_of(settings)
    url = settings.database_url.get_secret_value()
    database = Database(url, clock, pool_size=settings.database_pool)
    async with open_session() as session:
        try:
            yield _built(settings, redactor, clock, database, session)
        finally:
            await database.close()


def _built(
    settings: Settings,
    redactor: Redactor,
    clock: Clock,
    database: Database,
    session: aiohttp.ClientSession,
) -> Gatehouse:
    """Build the bot from top to bottom. Each part gets only parts that are finished."""
    metrics = Metrics()
    tasks = Tasks()

    # The services
    names = [f"inventory ({name})" for name in settings.inventory_data_centers]
    names += [f"api ({name})" for name in settings.apis]
    names += [name for name in ("flow", "email") if not settings.missing_for(name)]
    services = ServiceLog(clock.now, names)

    def observe(observed: Observed) -> None:
        metrics.service_calls.labels(observed.service, observed.label).inc()
        center = f" ({observed.data_center})" if observed.data_center else ""
        failure = None if observed.outcome == "ok" else observed.outcome
        services.note(f"{observed.service}{center}", failure)

    http = ServiceHttp(session, redactor, observe, clock)

    # Slack
    token = settings.slack_bot_token.get_secret_value()
    web = slack_web_client(token, settings.slack_api_url, session)
    slack = SlackClient(
        web,
        clock,
        lambda method, outcome: metrics.slack_calls.labels(method.replace("_", "."), outcome).inc(),
    )
    replies = Replies(session, clock, slack, settings.slack_api_url)
    people = People(slack, settings.policy, clock, database)
    pace = Pace(settings.commands_per_minute, clock)

    # The inventory service
    terms = quota_terms(settings)
    guard = Guard(database, clock, terms, tasks)
    access = service_access(settings, http, clock)
    centers = {name: access[name] for name in map(str, settings.inventory_data_centers)}
    inventory = InventoryClient(http, guard.call, centers)
    named = {
        str(name): center.organization_id
        for name, center in settings.inventory_data_centers.items()
        if center.organization_id
    }
    directory = OrganizationDirectory(
        inventory, database, clock, settings.inventory_cache_seconds, named
    )
    ratelimits = RateLimits(database, directory, people, terms, clock)
    alerts = Alerts(database, directory, settings.alerts_channel)

    # Test users and the Home tab
    testusers = TestuserParts(
        settings,
        clock,
        database,
        people,
        Flows(settings.flow_aliases, flow_client(settings, http), settings.missing_for("flow")),
        slack,
        replies,
        metrics,
        redraw,
        new_id,
    )
    messages = RequestMessages(testusers)
    home = Home(testusers, directory, ratelimits)

    # The gateway
    gateway = None
    if settings.gateway_port is not None:
        shares = {name: client.share for name, client in settings.gateway_clients.items()}
        forwarder = Forwarder(session, access, Turns(guard, shares), redactor, observe)
        address = settings.gateway_host, settings.gateway_port
        programs = Programs(testusers, pace)
        gateway = Gateway(settings, address, forwarder, directory, metrics, programs)

    # The checks
    checks = CheckParts(
        settings, clock, database, slack, http, inventory, directory, metrics, services
    )
    health = Health(checks)

    # The jobs
    witness = Witness(settings.alerts_channel)
    cards = {**messages.cards, CARD: alerts.card, HEALTH_CARD: health.card}
    notes = {**messages.notes, NOTE: alerts.note, HEAD: witness.note}
    daily = [witness.post] if settings.audit_witness else []
    kinds = {
        **Retention(database, settings.retain_days, PRUNES, daily).kinds,
        **home.kinds,
        **Probes(directory, terms).kinds,
        **Watcher(database, directory, terms, settings.inventory_watch).kinds,
        **guard.kinds,
        **health.kinds,
        **Sender(database, slack, cards, notes).kinds,
        **testuser_jobs.kinds(testusers),
    }

    return Gatehouse(
        settings=settings,
        clock=clock,
        database=database,
        metrics=metrics,
        tasks=tasks,
        slack=SlackParts(web, slack, replies, people, pace, ReceivedEvents(database)),
        inventory=InventoryParts(directory, ratelimits, alerts, gateway),
        testusers=testusers,
        email=email_client(settings, http),
        home=home,
        health=health,
        jobs=JobLoop(database, clock, new_id(), kinds),
    )


def new_id() -> str:
    """Return an ID for a request or a job."""
    return secrets.token_hex(8)
