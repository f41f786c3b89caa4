"""Builds the quota components used by the workflows, the job loop, and the outbox."""

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
from bot.store.engine import Database
from bot.store.job_loop import Runner


@dataclass
class QuotaParts:
    """The quota components; the functions in `plans` schedule the recurring jobs."""

    database: Database
    clock: Clock
    audit: AuditStore
    people: People
    inventory: InventoryListings
    directory: OrganizationDirectory
    terms: Terms
    alerts_channel: str
    is_watching: bool

    def __post_init__(self) -> None:
        database, inventory, directory = self.database, self.inventory, self.directory
        watcher = Watcher(database, inventory, directory, self.terms, is_on=self.is_watching)
        probes = Probes(inventory, directory, Incidents(self.terms))
        tidying = Tidying(database, self.clock)
        self.alerts = Alerts(database, self.audit, directory, self.alerts_channel)
        self.ratelimits = RateLimits(
            database, self.audit, inventory, directory, self.people, self.terms, self.clock
        )
        self.runners: dict[str, Runner] = {
            PROBE_JOB: probes.run,
            ALERT_JOB: self.alerts.after_mute,
            WATCH_KIND: watcher.run,
            TIDY_KIND: tidying.run,
        }
        self.renderers: dict[str, Renderer] = {CARD: self.alerts.card, NOTE: self.alerts.note}
        self.card_kinds = {CARD}
        self.plans = (probes.plan, watcher.plan, tidying.plan)
