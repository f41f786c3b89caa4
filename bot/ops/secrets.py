"""Checks for weak secrets: too short, published examples, or not to be sent."""

import ipaddress
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from yarl import URL

SHORTEST = 16
# Examples from Slack's or our documentation: anyone who reads it could sign requests.
EXAMPLES = frozenset({"8f742231b10e8888abcd99yyyzzz85a5", "32 random bytes in hex"})
SANDBOX = re.compile(r"(xoxb-|xapp-)?sandbox\b|demo-|SG\.demo-")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
# Secrets that the installer makes up: anyone who guesses one can sign, or read.
KEYS = ("slack_signing_secret", "metrics_token")
SENT = ("slack_bot_token", "slack_app_token", "email_api_key", "flow_auth_token")


@lru_cache(maxsize=64)
def is_loopback(host: str | None) -> bool:
    """Return True if the host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def secret_problem(value: str) -> str | None:
    """Describe the problem with one of our keys, to follow its name; None if it is fine."""
    if CONTROL.search(value):
        return "has a control character, such as a line feed"
    if value in EXAMPLES:
        return "is the example of the documentation, which everybody knows"
    if SANDBOX.match(value):
        return "is the sandbox's, which everybody knows"
    return f"is too short: at least {SHORTEST} characters" if len(value) < SHORTEST else None


def secret_problems(
    given: Mapping[str, str], slack_api_url: str, credentials: Iterable[str]
) -> Iterator[tuple[str, str]]:
    """Yield each weak secret's setting with the problem; `credentials` are the inventory's.

    With Slack on this machine (a stand-in), any secret is strong enough.
    """
    is_real = not is_loopback(URL(slack_api_url).host)
    for name in (*KEYS, *SENT):
        value = given.get(name, "")
        if is_real and value and name in KEYS and (problem := secret_problem(value)):
            yield name.upper(), problem
        elif is_real and name in SENT and SANDBOX.match(value):
            yield name.upper(), "is the sandbox's, which everybody knows"
    if any(map(CONTROL.search, credentials)):
        yield "INVENTORY_DATA_CENTERS", "has a control character in a credential"
