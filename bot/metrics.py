"""The numbers in `/metrics`, by name and outcome; no secrets, identities or people."""

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from itertools import product

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from bot import __version__
from bot.checks.rules.health import Part, Refusal
from bot.checks.rules.status import Status
from bot.quotas.rules.quota import LimitKind
from bot.quotas.rules.standing import Standing

# `increase` doesn't need a `_created` series beside every counter.
disable_created_metrics()  # type: ignore[no-untyped-call]

SERVICES = ("inventory", "flow", "email", "oauth")
GATEWAY_BUCKETS = (0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
ACK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)


class QuotaCollector(Collector):
    """Usage and limit per organization; the organization is "" for a data center's account."""

    def __init__(self) -> None:
        self.standings: Sequence[Standing] = ()

    def collect(self) -> Iterable[Metric]:
        """Return the two families of series."""
        labels = ("data_center", "organization", "limit")
        used = GaugeMetricFamily(
            "gatehouse_quota_used", "Calls that count against a limit now", labels=labels
        )
        limit = GaugeMetricFamily("gatehouse_quota_limit", "The limit in force", labels=labels)
        for standing in self.standings:
            for kind in LimitKind:
                meter = standing.meter(kind)
                where = (standing.key.data_center, standing.key.organization_id, str(kind))
                used.add_metric(where, meter.used)
                limit.add_metric(where, meter.limit)
        return used, limit


class GatewayMetrics:
    """The gateway's requests by client, and their waiting times."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "gatehouse_gateway_requests",
            "Requests to the gateway by client, data center and outcome",
            ["client", "data_center", "outcome"],
            registry=registry,
        )
        self.wait_seconds = Histogram(
            "gatehouse_gateway_wait_seconds",
            "Time that granted requests to the gateway have waited for their turn",
            ["client"],
            buckets=GATEWAY_BUCKETS,
            registry=registry,
        )

    def expect(self, clients: Iterable[str], data_centers: Collection[str]) -> None:
        """Create the counters used in alerts at 0, so that the first event triggers them."""
        self.requests.labels("", "", "unauthorized")
        for client, data_center in product((*clients, ""), ("", *data_centers)):
            self.requests.labels(client, data_center, "broken")
        declined = (f"declined_{word}" for word in (*LimitKind, "blocked"))
        for series in product(clients, data_centers, ("ok", *declined)):
            self.requests.labels(*series)

    def count(self, client: str, data_center: str, outcome: str, waited: float) -> None:
        """Count a request; the client is empty if the token is unknown."""
        self.requests.labels(client, data_center, outcome).inc()
        if client:
            self.wait_seconds.labels(client).observe(waited)


class Metrics:
    """The bot's metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.commands = counter(
            "gatehouse_commands",
            "Commands, buttons and modals by name and outcome",
            ["name", "outcome"],
        )
        self.ack_seconds = histogram(
            "gatehouse_ack_seconds", "Time until Slack has our acknowledgement", buckets=ACK_BUCKETS
        )
        self.service_calls = counter(
            "gatehouse_service_calls",
            "Calls to the services by service and status (a number, or what went wrong)",
            ["service", "status"],
        )
        self.http_rejected = counter(
            "gatehouse_http_rejected",
            "Requests over HTTP that were none, or of a kind that Slack never sends",
            ["reason"],
        )
        self.refused = counter(
            "gatehouse_slack_refused",
            "Requests to /slack/events that were not Slack's, or not seen to be, by cause",
            ["cause"],
        )
        self.slack_calls = counter(
            "gatehouse_slack_calls",
            "Calls of Slack's Web API by method and outcome: ok, or what went wrong",
            ["method", "outcome"],
        )
        self.working = gauge(
            "gatehouse_working",
            "1 while a part works: the token, the channels, the socket, signatures, the database",
            ["part"],
        )
        self.socket_connected = gauge(
            "gatehouse_socket_connected", "1 while Socket Mode is connected, or not used"
        )
        self.build = gauge("gatehouse_build_info", "Always 1", ["version"])
        self.jobs = gauge(
            "gatehouse_jobs",
            "Jobs: all that wait, those due, those due or failing for more than a minute",
            ["state"],
        )
        self.waiting = gauge(
            "gatehouse_waiting",
            "What waits for people or services: pending requests, open incidents",
            ["what"],
        )
        self.standstills = counter(
            "gatehouse_standstills", "Loops and jobs that had work and did not move"
        )
        self.database_up = gauge("gatehouse_database_up", "1 while the database answers")
        self.gateway = GatewayMetrics(self.registry)
        self.quotas = QuotaCollector()
        self.registry.register(self.quotas)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Create the counters used in alerts: `increase` misses a counter's first value."""
        self.build.labels(__version__).set(1)
        self.socket_connected.set(1)
        for refusal in Refusal:
            self.refused.labels(refusal.value)
        for service in SERVICES:
            for status in ("401", "403"):
                self.service_calls.labels(service, status)
        for part in Part:
            self.working.labels(part.value).set(1)
        for state in ("waiting", "due", "late"):
            self.jobs.labels(state)

    def expect_commands(self, names: Iterable[str]) -> None:
        """Create the fault counters of these commands, buttons and forms."""
        for name in names:
            self.commands.labels(name, "broken")

    def count_refused(self, refusal: Refusal) -> None:
        """Count a request without a valid signature from Slack."""
        self.refused.labels(refusal.value).inc()

    def count_slack(self, method: str, error: str | None) -> None:
        """Count a call of the Web API."""
        self.slack_calls.labels(method.replace("_", "."), error or "ok").inc()

    def count_command(self, name: str, outcome: str) -> None:
        """Count a command, button or modal."""
        self.commands.labels(name, outcome).inc()

    def count_http(self, reason: str) -> None:
        """Count a request that isn't HTTP, or that Slack never sends."""
        self.http_rejected.labels(reason).inc()

    def count_call(self, service: str, status: str) -> None:
        """Count a call to a service."""
        self.service_calls.labels(service, status).inc()

    def show_broken(self, broken: Collection[Part]) -> None:
        """Show which parts work."""
        for part in Part:
            self.working.labels(part.value).set(part not in broken)

    def show(self, status: Status, standings: Sequence[Standing] | None) -> None:
        """Show the database's counts; the old numbers stay while it is unavailable."""
        if standings is not None:
            self.quotas.standings = standings
        self.database_up.set(status.is_database_well)
        if status.jobs is not None:
            self.jobs.labels("waiting").set(status.jobs.total)
            self.jobs.labels("due").set(status.jobs.due)
            self.jobs.labels("late").set(status.jobs.late)
        for name, count in status.counts.items():
            self.waiting.labels(name.value).set(count)

    def names(self) -> set[str]:
        """Return the names of all metrics."""
        return {metric.name for metric in self.registry.collect()}

    def page(self, *, is_openmetrics: bool = False) -> bytes:
        """Return the page for Prometheus, in its own format or in OpenMetrics."""
        generate = openmetrics.generate_latest if is_openmetrics else generate_latest
        return generate(self.registry)
