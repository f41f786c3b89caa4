"""Flows, and finding one by its alias or SID."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.flows.rules.identities import plain
from bot.ids import FLOW_SID
from bot.spelling import visible


@dataclass(frozen=True)
class Flow:
    """A flow's SID, as typed or configured, and its alias if it has one."""

    sid: str
    alias: str | None = None

    @property
    def key(self) -> str:
        """The SID in uppercase, for comparing flows. SIDs aren't case-sensitive."""
        return self.sid.upper()

    @property
    def name(self) -> str:
        """The alias, or the SID if the flow has no alias."""
        return self.alias or self.sid


def find_flow(typed: str, aliases: Mapping[str, str]) -> Flow | None:
    """Return the flow with this alias or SID, or None if the text is neither.

    Differences in case, Unicode form and characters that can't be seen are ignored.
    """
    if typed in aliases:
        return Flow(aliases[typed], typed)
    for alias, sid in aliases.items():
        if plain(typed) in (plain(alias), plain(sid)):
            return Flow(sid, alias)
    sid = visible(typed)
    return Flow(sid) if is_flow_sid(sid) else None


def is_flow_sid(text: str) -> bool:
    """Return True if the text is a flow's SID: `FW` followed by 32 hexadecimal digits."""
    return re.fullmatch(FLOW_SID, text) is not None
