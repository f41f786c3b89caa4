"""Types for the IDs in the settings. pydantic checks values against them."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field

FLOW_SID = r"FW[0-9a-fA-F]{32}"


def like(pattern: str, problem: str) -> BeforeValidator:
    """Return a validator that reports `problem` if a string doesn't match the pattern."""

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(pattern, value):
            raise ValueError(problem)
        return value

    return BeforeValidator(check)


ChannelId = Annotated[
    str,
    like(
        r"[CGD][A-Za-z0-9_]+",
        "is not a channel ID (C…). A name isn't an ID: copy the ID from the channel's details",
    ),
]
SlackId = Annotated[
    str, like(r"\*|[UWS]\w*", "is not a user ID (U…, W…), a group ID (S…) or *. A name isn't an ID")
]
NamedId = Annotated[SlackId, like(r"(?!\*$).*", "can't be *, so list people or groups")]
NamedIds = Annotated[tuple[NamedId, ...], Field(min_length=1)]
FlowSid = Annotated[str, Field(pattern=f"^{FLOW_SID}$")]
