"""What `/metrics` tells: numbers by name and outcome; never a secret, an identity or a person."""

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

from bot.model.status import Status

ACK_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 3)


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

    def count_command(self, name: str, outcome: str) -> None:
        """Count a command, button or modal."""
        self.commands.labels(name, outcome).inc()

    def count_call(self, service: str, status: str) -> None:
        """Count a call to a service."""
        self.service_calls.labels(service, status).inc()

    def show(self, status: Status) -> None:
        """Show what was counted in the database; the old numbers stay while it is away."""
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
