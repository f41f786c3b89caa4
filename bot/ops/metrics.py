"""What `/metrics` tells: numbers by name and outcome; never a secret, an identity or a person."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import product
from typing import ClassVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)

from bot import __version__
from bot.model.health import Part, Refusal
from bot.model.quotas.quota import LimitKind
from bot.model.quotas.standing import Standing
from bot.model.status import Status
from bot.ops.clock import Clock
from bot.ops.portions import in_portions, with_pauses

SERVICES = ("inventory", "flow", "email", "oauth")
GATEWAY_BUCKETS = (0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
# Organizations, in about a millisecond.
WRITTEN_AT_ONCE = 200
ACK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)


class QuotaMetrics:
    """What is used of each organization's limits, as it was written down last.

    By hand: the library takes a second for ten thousand organizations.
    """

    USED, LIMIT = "gatehouse_quota_used", "gatehouse_quota_limit"
    HELP: ClassVar = {USED: "Calls that count against a limit now", LIMIT: "The limit in force"}

    def __init__(self) -> None:
        self.text = b""

    async def show(self, standings: Sequence[Standing], clock: Clock) -> None:
        """Write down use and limit; the organization is "" for a data center's own account."""
        text = {
            name: [f"# HELP {name} {say}\n# TYPE {name} gauge\n".encode()]
            for name, say in self.HELP.items()
        }
        async for portion in with_pauses(in_portions(standings, WRITTEN_AT_ONCE), clock):
            lines: dict[str, list[str]] = {name: [] for name in self.HELP}
            for standing in portion:
                self._write(standing, lines)
            for name, its in lines.items():
                text[name].append("".join(its).encode())
        self.text = b"".join(part for its in text.values() for part in its)

    def _write(self, standing: Standing, lines: Mapping[str, list[str]]) -> None:
        center = _escaped(standing.key.data_center)
        organization = _escaped(standing.key.organization_id)
        for kind in LimitKind:
            labels = f'{{data_center="{center}",limit="{kind}",organization="{organization}"}}'
            meter = standing.meter(kind)
            lines[self.USED].append(f"{self.USED}{labels} {meter.used}.0\n")
            lines[self.LIMIT].append(f"{self.LIMIT}{labels} {meter.limit}.0\n")


def _escaped(label: str) -> str:
    """A label's value, as the exposition format wants it."""
    return label.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


class GatewayMetrics:
    """Who asks the gateway for what, and how long they wait."""

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
        """Let the worst counters exist at 0, so that the first event raises an alert."""
        self.requests.labels("", "", "unauthorized")
        for client, data_center in product((*clients, ""), ("", *data_centers)):
            self.requests.labels(client, data_center, "broken")

    def count(self, client: str, data_center: str, outcome: str, waited: float) -> None:
        """Count a request; the client is empty where none is known by its token."""
        self.requests.labels(client, data_center, outcome).inc()
        if client:
            self.wait_seconds.labels(client).observe(waited)


class Metrics:
    """The bot's metrics, in a registry of their own."""

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
        self.database_up = gauge("gatehouse_database_up", "1 while the database answers")
        self.gateway = GatewayMetrics(self.registry)
        self.quotas = QuotaMetrics()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._start_at_zero()

    def _start_at_zero(self) -> None:
        """Make what alerts look at before it happens: a counter born with 1 shows no increase."""
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
        """Make the counters of faults of these commands, buttons and forms."""
        for name in names:
            self.commands.labels(name, "broken")

    def count_refused(self, refusal: Refusal) -> None:
        """Count a request that was not Slack's, or not seen to be."""
        self.refused.labels(refusal.value).inc()

    def count_slack(self, method: str, error: str | None) -> None:
        """Count a call of the Web API."""
        self.slack_calls.labels(method.replace("_", "."), error or "ok").inc()

    def count_command(self, name: str, outcome: str) -> None:
        """Count a command, button or modal."""
        self.commands.labels(name, outcome).inc()

    def count_http(self, reason: str) -> None:
        """Count a request that is no HTTP, or that Slack never sends."""
        self.http_rejected.labels(reason).inc()

    def count_call(self, service: str, status: str) -> None:
        """Count a call to a service."""
        self.service_calls.labels(service, status).inc()

    async def show(
        self, status: Status, standings: Sequence[Standing] | None, clock: Clock
    ) -> None:
        """Show what was counted in the database; the old numbers stay while it is away."""
        if standings is not None:
            await self.quotas.show(standings, clock)
        self.database_up.set(status.is_database_well)
        broken = {trouble.part for trouble in status.broken}
        for part in Part:
            self.working.labels(part.value).set(part not in broken)
        if status.jobs is not None:
            self.jobs.labels("waiting").set(status.jobs.total)
            self.jobs.labels("due").set(status.jobs.due)
            self.jobs.labels("late").set(status.jobs.late)
        for name, count in status.counts.items():
            self.waiting.labels(name.value).set(count)

    def names(self) -> set[str]:
        """Return the names of all."""
        return {metric.name for metric in self.registry.collect()} | set(QuotaMetrics.HELP)

    def page(self) -> bytes:
        """Return the Prometheus text."""
        return generate_latest(self.registry) + self.quotas.text
