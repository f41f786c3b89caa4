"""Print the items of an organization that need to be reordered, through the gateway.

A script needs no inventory credential and no limits of its own: the gateway holds each call until
there is room for it, and this script only does what the response says.

    export GATEWAY_TOKEN=…      # gatehouse gateway-token
    python examples/restock.py eu 20077314
"""

import os
import sys
import time
from typing import Any

import requests

GATEWAY_URL = os.environ.get("GATEWAY_URL", "http://127.0.0.1:3001")
TRIES = 10
MAX_PAUSE_SECONDS = 120
# The gateway waits up to 30 s for the call's turn, and the service can take another 10 s.
PATIENCE_SECONDS = 45
# These last for hours, so there is no point in trying again.
GIVE_UP = {"day", "blocked"}

session = requests.Session()
session.headers["Prefer"] = "wait=30"


def call(path: str, **query: str) -> Any:
    """Make one call, and return the response's JSON.

    Raises:
        requests.HTTPError: The call failed, or the limits left no room for it.
    """
    for _ in range(TRIES):
        response = session.get(f"{GATEWAY_URL}{path}", params=query, timeout=PATIENCE_SECONDS)
        if response.status_code not in {429, 503}:
            break
        if response.headers.get("Gatehouse-Declined") in GIVE_UP:
            break
        time.sleep(min(int(response.headers.get("Retry-After", "1")), MAX_PAUSE_SECONDS))
    response.raise_for_status()
    return response.json()


def main() -> None:
    """Print one line for each item that is below its reorder level."""
    data_center, organization_id = sys.argv[1:]
    session.headers["Authorization"] = f"Bearer {os.environ['GATEWAY_TOKEN']}"
    answer = call(f"/{data_center}/inventory/v1/items", organization_id=organization_id)
    for item in answer["items"]:
        missing = item["reorder_level"] - item["stock_on_hand"]
        if missing > 0:
            print(f"{item['name']}: order {missing}")


if __name__ == "__main__":
    main()
