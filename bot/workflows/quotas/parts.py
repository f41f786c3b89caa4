"""The parts that see to quotas, put together: for the workflows, the job loop and the outbox."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from bot.background.jobs import Runner
from bot.background.outbox import Renderer
from bot.dataclass import dataclass
from bot.model.quotas.quota import Terms
from bot.ops.clock import Clock
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.workflows.directory import InventoryListings, OrganizationDirectory
from bot.workflows.people import People
from bot.workflows.quotas.alerts import Alerts, Probes
from bot.workflows.quotas.incidents import ALERT_JOB, CARD, NOTE, PROBE_JOB, Incidents
from bot.workflows.quotas.ratelimits import RateLimits
from bot.workflows.quotas.tidying import TIDY_KIND, Tidying
from bot.workflows.quotas.watcher import WATCH_KIND, Watcher


@dataclass(frozen=True)
class QuotaSetup:
    """What the parts are made from."""

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
    """`card_kinds` say how one card stands; `plans` see to the jobs that are always there."""

    ratelimits: RateLimits
    alerts: Alerts
    runners: Mapping[str, Runner]
    renderers: Mapping[str, Renderer]
    card_kinds: Collection[str]
    plans: Sequence[Callable[[Transaction], Awaitable[None]]]


def quota_parts(setup: QuotaSetup) -> QuotaParts:
    """Put the parts together."""
    database, inventory, directory = setup.database, setup.inventory, setup.directory
    alerts = Alerts(database, setup.audit, directory, setup.alerts_channel)
    watcher = Watcher(
        database, inventory, directory, setup.terms, setup.clock, is_on=setup.is_watching
    )
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
