"""Finds flows by alias or SID."""

from collections.abc import Mapping, Sequence

from bot.errors import NotConfigured, NotFound
from bot.flows.client import FlowClient
from bot.flows.rules import Flow, find_flow
from bot.spelling import closest

FLOWS_NAMED = 20
FLOWS_MEANT = 3


class Flows:
    """A lookup of flows by alias or SID. `client` is None if the flow service isn't configured."""

    def __init__(
        self,
        aliases: Mapping[str, str],
        client: FlowClient | None,
        missing: Sequence[str],
    ) -> None:
        self.names = {sid.upper(): alias for alias, sid in aliases.items()}
        self.sids = aliases
        self._client = client
        self._missing = missing

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
        if self._client is None:
            raise NotConfigured("the flow service", self._missing)
        return self._client
