"""The flow service: its client, its flows by alias or SID, and reading an up-to-date list."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from http import HTTPStatus

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr
from yarl import URL

from bot.errors import NotConfigured, NotFound
from bot.flows.rules import Flow, FlowList, find_flow, is_before
from bot.services.calls import ServiceCall
from bot.services.credentials import basic
from bot.services.errors import ResponseUnreadable, model_in, wrong_form
from bot.services.http import OpenPermit, Permit, ServiceHttp, unlimited
from bot.spelling import closest

ADVICE: Mapping[int, str] = {
    HTTPStatus.UNAUTHORIZED: "Check FLOW_ACCOUNT_SID and FLOW_AUTH_TOKEN.",
    HTTPStatus.FORBIDDEN: "Give the account in FLOW_ACCOUNT_SID access to the flow.",
    HTTPStatus.NOT_FOUND: "Check the flow's SID and FLOW_BASE_URL.",
}
# With a wrong field, the service reads an update without a list. Only an update could show that.
UPDATE_ADVICE: Mapping[int, str] = {
    **ADVICE,
    HTTPStatus.BAD_REQUEST: "If the service refuses every change, correct FLOW_FORM_FIELD.",
}
CHECK_ALIASES = "Choose another flow, or ask whoever runs Gatehouse to check FLOW_ALIASES."
LABEL = "the flow service"
MOST_FLOWS = 200
FLOWS_NAMED = 20
FLOWS_MEANT = 3
STALE = "The list doesn't show a change that I made less than a minute ago. Try again in a minute."
NO_SUCH_FLOW = "FW" + "0" * 32
_FLOW_IN_URL = re.compile(r"/Flows/(FW[0-9a-fA-F]{32})(?![0-9a-fA-F])", re.IGNORECASE)


class _FlowAnswer(BaseModel):
    """A flow in a response. Only the list of test users, under any known name, is required.

    If a missing list were treated as empty, the next update would remove everybody.
    """

    model_config = ConfigDict(strict=True, extra="ignore")

    sid: str | None = None
    test_users: list[str] = Field(
        validation_alias=AliasChoices("test_users", "testUsers", "TestUsers"),
        # Reading all the errors of a large list would delay everyone.
        fail_fast=True,
    )
    url: str | None = None


class _FlowName(BaseModel):
    sid: str
    friendly_name: str = ""


class _FlowNames(BaseModel):
    flows: list[_FlowName]


@dataclass(frozen=True)
class FlowClient:
    """A client that reads and replaces flows' test users, using HTTP Basic authentication.

    `form_field` is the name of the form field that holds the list in updates. The name
    differs between deployments.
    """

    http: ServiceHttp
    base_url: URL
    account_sid: str
    auth_token: SecretStr
    form_field: str = "testUsers"

    async def read(self, flow_sid: str) -> list[str]:
        """Return the flow's test users in the service's order, or raise a ServiceError."""
        return await self._request(flow_sid)

    async def replace(
        self,
        flow_sid: str,
        identities: Sequence[str],
        may_send: Callable[[], bool] = lambda: True,
    ) -> list[str]:
        """Replace the flow's whole list and return the list from the service's response.

        The call is never retried. If it raises ServiceUnreachable or ServiceTimeout, the list may
        have been replaced anyway. `may_send` is called after connecting, right before the list is
        sent. If it returns False, nothing is sent.
        """
        # A form can't contain a field without values, so one empty value means an empty list.
        form = [(self.form_field, identity) for identity in identities or [""]]
        return await self._request(flow_sid, form, lambda: nullcontext(Permit(may_send)))

    async def names(self) -> dict[str, str]:
        """Return the names of the account's flows by SID, or raise a ServiceError.

        Only setup makes this call, because not every account can list its flows.
        """
        url = (self.base_url / "v2" / "Flows").with_query(PageSize=MOST_FLOWS)
        call = ServiceCall(
            "flow", LABEL, "GET", url, headers=basic(self.account_sid, self.auth_token)
        )
        listed = await self.http.request(call, lambda body: model_in(call, body, _FlowNames))
        return {flow.sid: flow.friendly_name for flow in listed.flows}

    async def _request(
        self,
        flow_sid: str,
        form: Sequence[tuple[str, str]] | None = None,
        permits: OpenPermit = unlimited,
    ) -> list[str]:
        call = ServiceCall(
            service="flow",
            label=LABEL,
            method="POST" if form else "GET",
            url=self.base_url / "v2" / "Flows" / flow_sid / "TestUsers",
            headers=basic(self.account_sid, self.auth_token),
            form=form,
            advice=UPDATE_ADVICE if form else ADVICE,
            missing=f"The flow service can't find the flow {flow_sid}. {CHECK_ALIASES}",
        )

        def listed(body: bytes) -> list[str]:
            sent = model_in(call, body, _FlowAnswer)
            for sid in (sent.sid, *_FLOW_IN_URL.findall(sent.url or "")):
                if sid and sid.upper() != flow_sid.upper():
                    raise wrong_form(call, "for another flow")
            return [identity for identity in sent.test_users if identity]

        return await self.http.request(call, listed, permits)


class OutdatedList(ResponseUnreadable):
    """A list is older than the bot's own changes."""

    is_passing = True


async def read_current(
    service: FlowClient, flow: Flow, recent: Sequence[FlowList], in_doubt: Collection[str]
) -> tuple[str, ...]:
    """Read a list, and read it once more if it's older than the bot's changes in `recent`.

    Raise OutdatedList if it's still outdated. `in_doubt` are the people in a POST in doubt.
    """
    for _ in range(2):
        listed = tuple(await service.read(flow.sid))
        if not is_before(recent, in_doubt, listed):
            return listed
    raise OutdatedList("flow", STALE)


@dataclass(frozen=True)
class Flows:
    """A lookup of flows by alias or SID.

    `sids` maps aliases to SIDs. `client` is None if the settings in `missing` are missing.
    """

    sids: Mapping[str, str]
    client: FlowClient | None
    missing: Sequence[str]

    @property
    def names(self) -> dict[str, str]:
        """The aliases, keyed by SID in uppercase."""
        return {sid.upper(): alias for alias, sid in self.sids.items()}

    def named(self, typed: str) -> Flow:
        """Return the flow with this alias or SID, or raise NotFound and suggest similar aliases."""
        if flow := find_flow(typed, self.sids):
            return flow
        self.service()
        aliases = sorted(self.sids)
        names = ", ".join(aliases[:FLOWS_NAMED]) or "an alias"
        hint = f"Use {names}, or a SID, which is FW followed by 32 hexadecimal digits."
        error = NotFound(f"I don't know a flow called “{typed[:80]}”. {hint}")
        raise error.suggesting(typed, dict.fromkeys(closest(typed, aliases, FLOWS_MEANT), ""))

    def now(self, flow: Flow) -> Flow:
        """Return the flow, with its alias if the current settings contain one."""
        names = [name for name, sid in self.sids.items() if sid.upper() == flow.key]
        return Flow(flow.sid, flow.alias if flow.alias in names else next(iter(names), None))

    def service(self) -> FlowClient:
        """Return the client, or raise NotConfigured if the flow service isn't configured."""
        if self.client is None:
            raise NotConfigured("the flow service", self.missing)
        return self.client
