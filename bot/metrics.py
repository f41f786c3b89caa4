"""What `/metrics` tells: numbers by name and outcome; never a secret, an identity or a person."""

from collections.abc import Iterator, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from bot.model.quota import LimitKind
from bot.model.standing import Standing
from bot.model.status import Status

ACK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)


class QuotaMetrics(Collector):
    """What is used of each organization's limits; made only when somebody asks for the page."""

    LABELS = ("data_center", "organization", "limit")

    def __init__(self) -> None:
        self.standings: Sequence[Standing] = ()

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield use and limit; the organization is "" for a data center's own account."""
        used = GaugeMetricFamily(
            "gatehouse_quota_used", "Calls that count against a limit now", labels=self.LABELS
        )
        limit = GaugeMetricFamily("gatehouse_quota_limit", "The limit in force", labels=self.LABELS)
        for standing in self.standings:
            for kind in LimitKind:
                meter = standing.meter(kind)
                labels = (standing.key.data_center, standing.key.organization_id, kind.value)
                used.add_metric(labels, meter.used)
                limit.add_metric(labels, meter.limit)
        yield used
        yield limit


class Metrics:
    """The bot's metrics, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.commands = Counter(
            "gatehouse_commands",
            "Commands, buttons and modals by name and outcome",
            ["name", "outcome"],
            registry=self.registry,
        )
        self.ack_seconds = Histogram(
            "gatehouse_ack_seconds",
            "Time until Slack has our acknowledgement",
            buckets=ACK_BUCKETS,
            registry=self.registry,
        )
        self.service_calls = Counter(
            "gatehouse_service_calls",
            "Calls to the services by service and status (a number, or what went wrong)",
            ["service", "status"],
            registry=self.registry,
        )
        self.jobs = Gauge(
            "gatehouse_jobs",
            "Jobs: all that wait, those due, those due for more than a minute",
            ["state"],
            registry=self.registry,
        )
        self.waiting = Gauge(
            "gatehouse_waiting",
            "What waits for people or services: pending requests, open incidents",
            ["what"],
            registry=self.registry,
        )
        self.database_up = Gauge(
            "gatehouse_database_up", "1 while the database answers", registry=self.registry
        )
        self.quotas = QuotaMetrics()
        self.registry.register(self.quotas)

    def count_command(self, name: str, outcome: str) -> None:
        """Count a command, button or modal."""
        self.commands.labels(name, outcome).inc()

    def count_call(self, service: str, status: str) -> None:
        """Count a call to a service."""
        self.service_calls.labels(service, status).inc()

    def show(self, status: Status, standings: Sequence[Standing] | None) -> None:
        """Show what was counted in the database; the old numbers stay while it is away."""
        if standings is not None:
            self.quotas.standings = standings
        self.database_up.set(status.is_database_well)
        if status.jobs is not None:
            self.jobs.labels("waiting").set(status.jobs.total)
            self.jobs.labels("due").set(status.jobs.due)
            self.jobs.labels("late").set(status.jobs.late)
        for name, count in status.counts.items():
            self.waiting.labels(name.lower().replace(" ", "_")).set(count)

    def page(self) -> bytes:
        """Return the Prometheus text."""
        return generate_latest(self.registry)
