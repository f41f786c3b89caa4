"""Keeps the state of the stand-in services, and lets tests change that state."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from sandbox.patience import LOOK_SECONDS, PATIENCE_SECONDS
from sandbox.services.calls import Call, CallLog
from sandbox.services.faults import Faults
from sandbox.services.limits import LimitRules, Limits
from sandbox.services.oauth_tokens import TokenIssuer
from sandbox.services.organizations import DataCenter, Organization, demo_data_centers

FLOW_ACCOUNT_SID = "AC00000000000000000000000000000001"
FLOW_AUTH_TOKEN = "demo-flow-token"
WELCOME_FLOW = "FW00000000000000000000000000000001"
SURVEY_FLOW = "FW00000000000000000000000000000002"
EMAIL_KEY = "SG.demo-key"
LIMITED_EMAIL_KEY = "SG.limited-key"


@dataclass
class Flow:
    """A flow with its list of test users. `history` contains all lists stored by POST requests."""

    sid: str
    identities: list[str] = field(default_factory=list)
    history: list[list[str]] = field(default_factory=list)
    name: str = ""


def inventory_token(data_center: str) -> str:
    """Return the authtoken that a data center accepts."""
    return f"demo-{data_center}"


class ServicesState:
    """The state of the three services.

    The services call `now` to get the time and `sleep` to wait. Each call to a service takes at
    least `latency_seconds`, and is counted as in flight during that time.

    Three fields allow for differences between real services. `flow_fields` contains the names of
    the form fields that an update may use. `inventory_scheme` is the only `Authorization` scheme
    that the inventory accepts. If `inventory_scheme` is None, the inventory accepts any scheme, and
    also a token in the query string. If a call doesn't specify any generations, the email service
    uses `default_generations`.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        rules: LimitRules | None = None,
        latency_seconds: float = 0.0,
    ) -> None:
        self.now = now
        self.sleep = sleep
        self.latency_seconds = latency_seconds
        self.data_centers = demo_data_centers()
        self.limits = Limits(now, rules or LimitRules())
        self.faults = Faults(self.changed)
        self.log = CallLog(now, self.changed)
        self.oauth = TokenIssuer(now)
        self.flows = _demo_flows()
        self.flow_fields: tuple[str, ...] = ("testUsers", "TestUsers")
        self.inventory_scheme: str | None = None
        self.default_generations = "legacy,dynamic"
        self._waiting: set[asyncio.Event] = set()

    def behave_as_vendors(self) -> None:
        """Make the services behave like Zoho Inventory, Twilio Studio and SendGrid."""
        self.flow_fields = ("TestUsers",)
        self.inventory_scheme = "Zoho-oauthtoken"
        self.default_generations = "legacy"
        self.oauth.refuses_with_200 = True

    @property
    def calls(self) -> list[Call]:
        """All calls, oldest first."""
        return self.log.calls

    @property
    def refused(self) -> list[Call]:
        """The calls that received a 429 response."""
        return [call for call in self.calls if call.status == 429]

    def set_organizations(self, data_center: str, organizations: Iterable[Organization]) -> None:
        """Replace the organizations in a data center."""
        self.data_centers[data_center] = DataCenter(data_center, organizations)

    def edit_flow(self, sid: str, identities: Iterable[str]) -> None:
        """Change a flow's list directly, without a call or a `history` entry."""
        flow = self.flows.setdefault(sid, Flow(sid))
        flow.identities = list(identities)
        self.changed()

    def changed(self) -> None:
        """Wake up all tasks that are waiting in `until`."""
        for event in self._waiting:
            event.set()

    async def until(self, is_true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        """Wait until `is_true()` returns True.

        The condition is checked whenever an API call starts or ends, a fault takes effect, or a
        list changes. The condition is also checked ten times a second, because events outside the
        services can make it true.

        Raises:
            TimeoutError: `is_true()` did not return True within `seconds` seconds. The error
                message lists the most recent calls.
        """
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            async with asyncio.timeout(seconds):
                while not is_true():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(LOOK_SECONDS):
                            await event.wait()
                    event.clear()
        except TimeoutError:
            raise TimeoutError(f"still not true; the last calls: {self.calls[-5:]}") from None
        finally:
            self._waiting.discard(event)


def _demo_flows() -> dict[str, Flow]:
    return {
        WELCOME_FLOW: Flow(
            WELCOME_FLOW, ["+15550100001", "whatsapp:+15550100002"], name="Welcome call"
        ),
        SURVEY_FLOW: Flow(SURVEY_FLOW, ["ada@example.com"], name="Survey"),
    }
