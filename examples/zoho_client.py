"""Use pyzohoapi, a public client library for Zoho Inventory, through the gateway.

The library is unchanged. A subclass names the gateway's address instead of Zoho's, and the
gateway token takes the place of the access token. The library sends its token as
`Authorization: Zoho-oauthtoken …`, so the bot needs this setting:

    INVENTORY_AUTH_HEADER='Zoho-oauthtoken {token}'

It also needs the service's `X-Rate-Limit` headers, which the sandbox doesn't send.

To run this example, install `pyzohoapi`, set GATEWAY_TOKEN, and name an organization:

    python examples/zoho_client.py eu 20077314
"""

import os
import sys

from pyzohoapi import ZohoInventory

GATEWAY_URL = os.environ.get("GATEWAY_URL", "http://127.0.0.1:3001")
NEVER_SECONDS = 10**9  # Gateway tokens don't expire.


class GuardedInventory(ZohoInventory):
    """Zoho Inventory behind Gatehouse."""

    def get_endpoint(self, region: str) -> str:
        """Return the API root of a data center."""
        return f"{GATEWAY_URL}/{self._regionmap[region]}/inventory/v1"


def main() -> None:
    """Print the organizations of a data center."""
    data_center, organization_id = sys.argv[1:]
    inventory = GuardedInventory(
        organization_id,
        data_center,
        access_token=os.environ["GATEWAY_TOKEN"],
        expires_in=NEVER_SECONDS,
    )
    for organization in inventory.get("organizations", "")["organizations"]:
        print(organization["organization_id"], organization["name"])


if __name__ == "__main__":
    main()
