"""The metrics served at `/metrics`, without secrets, identities or people's names."""

from collections.abc import Collection, Iterable
from enum import StrEnum
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

# Omit each counter's `_created` series, which `increase` doesn't need.
disable_created_metrics()  # type: ignore[no-untyped-call]

SERVICES = ("inventory", "flow", "email", "oauth")
# Reasons why the gateway declines calls.
DECLINED = ("minute", "day", "concurrent", "blocked")
GATEWAY_BUCKETS = (0.005, 0.01, 0.025, 0.1, 0.5, 1, 2.5, 5, 10, 20, 30, 60)
ACK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)


class Refusal(StrEnum):
    """The reason for refusing a request from Slack. The values are metric labels."""

    UNSIGNED = "unsigned"
    STALE = "stale"
    WRONG_SIGNATURE = "wrong_signature"
    MALFORMED = "malformed"
    WRONG_PATH = "wrong_path"
    LONG_HEADER = "long_header"


class Metrics:
    """The bot's metrics, in their own registry."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.commands = counter(
            "gatehouse_commands", "Commands, buttons and modals", ["name", "outcome"]
        )
        self.ack_seconds = histogram(
            "gatehouse_ack_seconds",
            "Time taken to acknowledge a request from Slack",
            buckets=ACK_BUCKETS,
        )
        # `status` is an HTTP status or an error name. Slack's `outcome` is `ok` or an error name.
        calls = "Calls to the services"
        self.service_calls = counter("gatehouse_service_calls", calls, ["service", "status"])
        calls = "Slack Web API calls"
        self.slack_calls = counter("gatehouse_slack_calls", calls, ["method", "outcome"])
        refused = "Requests to /slack/events without valid proof that Slack sent them"
        self.refused = counter("gatehouse_slack_refused", refused, ["cause"])
        self.working = gauge("gatehouse_working", "1 if the part works, otherwise 0", ["part"])
        self.jobs = gauge("gatehouse_jobs", "Jobs that are waiting, due or late", ["state"])
        self.waiting = gauge(
            "gatehouse_waiting", "Work that is waiting for people or services", ["what"]
        )
        self.database_up = gauge("gatehouse_database_up", "1 if the database responds, otherwise 0")
        limit_labels = ["data_center", "organization", "limit"]
        used = "Calls that count against the limit"
        self.quota_used = gauge("gatehouse_quota_used", used, limit_labels)
        self.quota_limit = gauge("gatehouse_quota_limit", "The current limit", limit_labels)
        self.gateway_requests = counter(
            "gatehouse_gateway_requests", "Gateway requests", ["client", "data_center", "outcome"]
        )
        self.gateway_wait_seconds = histogram(
            "gatehouse_gateway_wait_seconds",
            "Time that gateway requests waited before their calls were allowed",
            ["client"],
            buckets=GATEWAY_BUCKETS,
        )
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        # Create the counters used in alerts, because `increase` misses a counter's first value.
        for refusal in Refusal:
            self.refused.labels(refusal)
        for service, status in product(SERVICES, ("401", "403")):
            self.service_calls.labels(service, status)
        for state in ("waiting", "due", "late"):
            self.jobs.labels(state)

    def expect_commands(self, names: Iterable[str]) -> None:
        """Create the error counter for each of the given commands, buttons and forms."""
        for name in names:
            self.commands.labels(name, "broken")

    def expect_gateway(self, clients: Collection[str], data_centers: Collection[str]) -> None:
        """Create the gateway counters that alerts use."""
        self.gateway_requests.labels("", "", "unauthorized")
        for client, data_center in product((*clients, ""), ("", *data_centers)):
            self.gateway_requests.labels(client, data_center, "broken")
        outcomes = ("ok", *(f"declined_{reason}" for reason in DECLINED))
        for series in product(clients, data_centers, outcomes):
            self.gateway_requests.labels(*series)

    def count_gateway(self, client: str, data_center: str, outcome: str, waited: float) -> None:
        """Record a gateway request and its wait in seconds. `client` is "" for an unknown token."""
        self.gateway_requests.labels(client, data_center, outcome).inc()
        if client:
            self.gateway_wait_seconds.labels(client).observe(waited)

    def count_command(self, name: str, outcome: str) -> None:
        """Count one use of a command, button or modal."""
        self.commands.labels(name, outcome).inc()

    def page(self) -> bytes:
        """Return the metrics in the Prometheus text format."""
        return generate_latest(self.registry)
