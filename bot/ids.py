"""Types for the IDs in the settings. pydantic checks values against them."""

import re
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

FLOW_SID = r"FW[0-9a-fA-F]{32}"


def like(pattern: str, problem: str) -> BeforeValidator:
    """Return a validator that reports `problem` if a string doesn't match the pattern."""

    def check(value: object) -> object:
        if isinstance(value, str) and not re.fullmatch(pattern, value):
            raise ValueError(problem)
        return value

    return BeforeValidator(check)


def _filled(value: tuple[object, ...]) -> tuple[object, ...]:
    if not value:
        raise ValueError("must not be empty")
    return value


# Unlike a minimum length, this doesn't count an entry that is wrong as one that is missing.
NotEmpty = AfterValidator(_filled)
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
NamedIds = Annotated[tuple[NamedId, ...], NotEmpty]
FlowSid = Annotated[str, Field(pattern=f"^{FLOW_SID}$")]
