"""Finds weak secrets, which are too short or were published as examples."""

import ipaddress
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from yarl import URL

from bot.ids import FLOW_SID

SHORTEST_KEY = 16
# Examples from Slack's and Gatehouse's documentation. Anyone could sign requests with them.
EXAMPLES = frozenset({"8f742231b10e8888abcd99yyyzzz85a5", "a-long-random-word"})
SANDBOX = re.compile(r"(xoxb-|xapp-)?sandbox\b|demo-|SG\.demo-")
# Anyone who guesses these secrets could sign requests or read the metrics.
KEYS = ("slack_signing_secret", "metrics_token")
# The beginning of a token, or 16 letters and digits in a row of which some are lowercase.
SECRET = re.compile(
    r"^(xox|xapp-|SG\.|sk-)|(?=[A-Za-z0-9]{16})(?=[A-Z0-9]{0,15}[a-z])(?=[a-z]{0,15}[A-Z0-9])"
)
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


def looks_secret(text: str) -> bool:
    """Return True if text that should be a name or an ID looks like a secret."""
    return bool(SECRET.search(text)) and not re.fullmatch(FLOW_SID, text)


def secret_problems(given: Mapping[str, object], slack_api_url: str) -> Iterator[tuple[str, str]]:
    """Yield a setting's name and the problem for each weak secret.

    If Slack is simulated on this machine, any secret is accepted.
    """
    if is_loopback(URL(slack_api_url).host):
        return
    for name in (*KEYS, *SENT):
        value = str(given.get(name, ""))
        if SANDBOX.match(value):
            yield name, "is the sandbox's secret, which is public"
        elif name in KEYS and value in EXAMPLES:
            yield name, "is the example from the documentation, which is public"
        elif name in KEYS and 0 < len(value) < SHORTEST_KEY:
            yield name, f"is too short: it must have at least {SHORTEST_KEY} characters"
