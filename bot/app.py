"""The composition root: `Gatehouse` builds and holds all parts of the bot."""

import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

import aiohttp

from bot.audit.reading import HEAD, Witness
from bot.checks.health import HEALTH_CARD, HEALTH_JOB, Count, Health
from bot.configured import (
    email_client,
    flow_client,
    gateway_clients,
    inventory_access,
    quota_terms,
    redactor_of,
)
from bot.emailkey import EmailClient
from bot.errors import NotConfigured
from bot.gateway.forward import Forwarder
from bot.gateway.server import Gateway
from bot.gateway.turns import Turns
from bot.home import store as home_views
from bot.home.publishing import SWEEP, Home
from bot.metrics import Metrics
from bot.ops.clock import Clock, SystemClock
from bot.ops.redaction import Redactor
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.quotas.guard import Guard
from bot.quotas.incidents import ALERT_JOB, CARD, NOTE, PROBE_JOB, Alerts, Probes
from bot.quotas.ratelimits import RateLimits
from bot.quotas.store import accounts, incidents
from bot.quotas.tidying import TIDY_JOB, Tidying
from bot.quotas.watcher import WATCH_KIND, Watcher
from bot.services.calls import Observed, ServiceLog
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings
from bot.slack import received_events
from bot.slack.client import SlackClient, slack_web_client
from bot.slack.people import Pace, People
from bot.slack.replies import Replies
from bot.slack.sender import Sender
from bot.store import outbox
from bot.store.engine import Database, Transaction
from bot.store.job_loop import JobLoop, Runner
from bot.store.retention import RETAIN_KIND, Retention
from bot.tasks import Tasks
from bot.testusers import store, transitions
from bot.testusers.applying import run_changes
from bot.testusers.client import Flows
from bot.testusers.interactions import INTERACTION, UNDO, StoredInteractions
from bot.testusers.rendering import RequestMessages
from bot.testusers.transitions import APPLY, TIMER

# The maximum number of concurrent jobs per kind, so that stuck jobs can't block other kinds.
CROWDS = {
    outbox.SEND: 24,
    INTERACTION: 24,
    UNDO: 16,
    home_views.PUBLISH: 24,
    APPLY: 12,
    PROBE_JOB: 8,
}
# Functions that delete old data. The outbox is last: it keeps the cards of existing requests.
PRUNES = (
    store.forget_requests,
    store.forget_changes,
    incidents.forget,
    home_views.forget,
    received_events.forget,
    outbox.pruning(store.CARD_IS_NEEDED, incidents.CARD_IS_NEEDED),
)


class Gatehouse:
    """All parts of the bot. Creating an instance makes no calls and opens no connections.

    The caller must close the database and the session.
    """

    def __init__(
        self,
        settings: Settings,
        redactor: Redactor,
        clock: Clock,
        database: Database,
        session: aiohttp.ClientSession,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.database = database
        self.session = session
        self.metrics = Metrics()
        self.tasks = Tasks()
        centers = [f"inventory ({name})" for name in settings.inventory_data_centers]
        services = [name for name in ("flow", "email") if not settings.missing_for(name)]
        self.services = ServiceLog(clock.now, [*centers, *services])
        self.http = ServiceHttp(session, redactor, self._observe_call, clock)
        token = settings.slack_bot_token.get_secret_value()
        self.web = slack_web_client(token, settings.slack_api_url, session)
        calls = self.metrics.slack_calls
        self.slack = SlackClient(
            self.web,
            clock,
            lambda method, outcome: calls.labels(method.replace("_", "."), outcome).inc(),
        )
        self.replies = Replies(session, clock, self.slack, settings.slack_api_url)
        self.people = People(self.slack, settings.policy, clock, database)
        self.pace = Pace(settings.commands_per_minute, clock)
        self.received = received_events.ReceivedEvents(database)
        runners: dict[str, Runner] = {}
        self.jobs = JobLoop(database, clock, self.new_id(), runners, CROWDS)
        self._quotas()
        flow, missing = flow_client(settings, self.http), settings.missing_for("flow")
        self.flows = Flows(settings.flow_aliases, flow, missing)
        self._email = email_client(settings, self.http)
        self.clicks = StoredInteractions(self)
        self.home = Home(
            database,
            clock,
            self.people,
            self.directory,
            self.ratelimits,
            self.slack,
            settings.approvals_channel,
        )
        counts: dict[str, Count] = {
            "open_incidents": incidents.count_open,
            "pending_requests": store.count_pending,
            "undelivered_messages": outbox.count_undelivered,
        }
        if self.gateway is not None:
            counts["gateway_calls_in_the_last_minute"] = accounts.count_of_clients
            counts["gateway_calls_waiting"] = self.gateway.count_waiting
        self.health = Health(self, counts)
        self._run(runners)

    def _quotas(self) -> None:
        settings, clock, database = self.settings, self.clock, self.database
        terms = self.terms = quota_terms(settings)
        guard = Guard(database, clock, terms, self.tasks)
        access = inventory_access(settings, self.http, clock)
        inventory = self.inventory = InventoryClient(self.http, guard.call, access)
        seconds, named = settings.inventory_cache_seconds, settings.named_organizations
        self.directory = OrganizationDirectory(inventory, database, clock, seconds, named)
        guard.name_of = self.directory.name_of
        self.gateway: Gateway | None = None
        if settings.gateway_port is not None:
            centers = settings.inventory_data_centers
            self.metrics.expect_gateway(settings.gateway_clients, centers)
            clients = gateway_clients(settings)
            shares = {client.name: client.share for client in clients}
            turns = Turns(guard, shares)
            redactor, observe = self.http.redactor, self._observe_call
            forwarder = Forwarder(self.session, access, turns, redactor, observe)
            # Clients can use Bearer or the scheme that the inventory service expects.
            schemes = ("Bearer", settings.inventory_auth_header.partition(" ")[0])
            count = self.metrics.count_gateway
            self.gateway = Gateway(forwarder, clients, schemes, self.directory, count)
        self.ratelimits = RateLimits(database, inventory, self.directory, self.people, terms, clock)
        self.alerts = Alerts(database, self.directory, settings.alerts_channel)

    @property
    def emailkey(self) -> EmailClient:
        """The email service's client.

        Raises:
            NotConfigured: Some of the email service's settings are missing.
        """
        if self._email is None:
            raise NotConfigured("the email service", self.settings.missing_for("email"))
        return self._email

    async def refresh_home(self, tx: Transaction, slack_user_id: str) -> None:
        """Schedule the person's Home tab to be published again, if it's open."""
        await home_views.refresh(tx, slack_user_id)

    @staticmethod
    def new_id() -> str:
        """Return an ID for a request or a job."""
        return secrets.token_hex(8)

    def _run(self, runners: dict[str, Runner]) -> None:
        settings, database = self.settings, self.database
        inventory, directory, terms = self.inventory, self.directory, self.terms
        probes = Probes(inventory, directory, terms)
        is_watching = settings.inventory_watch
        watcher = Watcher(database, inventory, directory, terms, is_watching)
        tidying = Tidying(database)
        messages = RequestMessages(self)
        witness = Witness(settings.alerts_channel)
        cards = {**messages.cards, CARD: self.alerts.card, HEALTH_CARD: self.health.card}
        notes = {**messages.notes, NOTE: self.alerts.note, HEAD: witness.note}
        sender = Sender(database, self.slack, cards, notes)
        daily = [witness.post] if settings.audit_witness else []
        retention = Retention(database, settings.retain_days, PRUNES, daily)
        runners |= {
            APPLY: partial(run_changes, self),
            TIMER: partial(transitions.run_timers, self),
            INTERACTION: self.clicks.run,
            UNDO: self.clicks.run,
            PROBE_JOB: probes.run,
            ALERT_JOB: self.alerts.after_mute,
            WATCH_KIND: watcher.run,
            TIDY_JOB: tidying.run,
            outbox.SEND: sender.run,
            RETAIN_KIND: retention.run,
            HEALTH_JOB: self.health.end,
            home_views.PUBLISH: self.home.publish,
            SWEEP: self.home.sweep,
        }
        self.plans: Sequence[Callable[[Transaction], Awaitable[None]]] = (
            *(retention.plan, self.home.plan),
            *(probes.plan, watcher.plan, tidying.plan),
            *(messages.plan, transitions.plan_timers),
        )

    def _observe_call(self, observed: Observed) -> None:
        self.metrics.service_calls.labels(observed.service, observed.label).inc()
        center = f" ({observed.data_center})" if observed.data_center else ""
        failure = None if observed.outcome == "ok" else observed.outcome
        self.services.note(f"{observed.service}{center}", failure)


@asynccontextmanager
async def gatehouse(
    settings: Settings,
    redactor: Redactor | None = None,
    clock: Clock | None = None,
    *,
    own_clock: bool = True,
) -> AsyncIterator[Gatehouse]:
    """Yield a bot with these settings, without making calls or opening connections.

    Pass the redactor that the logs use, so that it also removes access tokens issued later.
    """
    clock, redactor = clock or SystemClock(), redactor or redactor_of(settings)
    url = settings.database_url.get_secret_value()
    database = Database(url, clock, own_clock=own_clock, pool_size=settings.database_pool)
    async with open_session() as session:
        try:
            yield Gatehouse(settings, redactor, clock, database, session)
        finally:
            await database.close()
