"""Flows, and finding one by its alias or SID."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from bot.ids import FLOW_SID


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
    """Return the flow with this alias or SID, ignoring case, or None if the text is neither."""
    for alias, sid in aliases.items():
        if typed == alias or typed.casefold() in (alias.casefold(), sid.casefold()):
            return Flow(sid, alias)
    return Flow(typed) if is_flow_sid(typed) else None


def is_flow_sid(text: str) -> bool:
    """Return True if the text is a flow's SID: `FW` followed by 32 hexadecimal digits."""
    return re.fullmatch(FLOW_SID, text) is not None
