"""Builds the quota components for the workflows, the job loop, and the outbox."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from bot.ops.clock import Clock
from bot.organizations.directory import InventoryListings, OrganizationDirectory
from bot.quotas.alerts import Alerts, Probes
from bot.quotas.incidents import ALERT_JOB, CARD, NOTE, PROBE_JOB, Incidents
from bot.quotas.ratelimits import RateLimits
from bot.quotas.rules.quota import Terms
from bot.quotas.tidying import TIDY_KIND, Tidying
from bot.quotas.watcher import WATCH_KIND, Watcher
from bot.slack.people import People
from bot.slack.sender import Renderer
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Runner


@dataclass(frozen=True)
class QuotaSetup:
    """The dependencies of the quota components."""

    database: Database
    clock: Clock
    audit: AuditStore
    people: People
    inventory: InventoryListings
    directory: OrganizationDirectory
    terms: Terms
    alerts_channel: str
    is_watching: bool


@dataclass(frozen=True)
class QuotaParts:
    """The quota components; `card_kinds` render cards, and `plans` set the recurring jobs."""

    ratelimits: RateLimits
    alerts: Alerts
    runners: Mapping[str, Runner]
    renderers: Mapping[str, Renderer]
    card_kinds: Collection[str]
    plans: Sequence[Callable[[Transaction], Awaitable[None]]]


def quota_parts(setup: QuotaSetup) -> QuotaParts:
    """Build the components."""
    database, inventory, directory = setup.database, setup.inventory, setup.directory
    alerts = Alerts(database, setup.audit, directory, setup.alerts_channel)
    watcher = Watcher(database, inventory, directory, setup.terms, is_on=setup.is_watching)
    probes = Probes(inventory, directory, Incidents(setup.terms))
    tidying = Tidying(database, setup.clock)
    ratelimits = RateLimits(
        database=database,
        audit=setup.audit,
        inventory=inventory,
        directory=directory,
        people=setup.people,
        terms=setup.terms,
        clock=setup.clock,
    )
    return QuotaParts(
        ratelimits=ratelimits,
        alerts=alerts,
        runners={
            PROBE_JOB: probes.run,
            ALERT_JOB: alerts.after_mute,
            WATCH_KIND: watcher.run,
            TIDY_KIND: tidying.run,
        },
        renderers={CARD: alerts.card, NOTE: alerts.note},
        card_kinds={CARD},
        plans=(probes.plan, watcher.plan, tidying.plan),
    )
