"""Print the unpaid invoices of an accounting API, through the gateway.

The API is set as `xero` in `APIS`, and named among the client's `organizations`. The gateway adds
the credential and keeps the API's limits, so the calls are made like those of `restock.py`.

    export GATEWAY_TOKEN=…      # gatehouse gateway-token
    python examples/invoices.py
"""

import os

from restock import call, session


def main() -> None:
    """Print one line for each invoice that isn't paid yet."""
    session.headers["Authorization"] = f"Bearer {os.environ['GATEWAY_TOKEN']}"
    for invoice in call("/xero/Invoices", Statuses="AUTHORISED")["Invoices"]:
        print(f"{invoice['InvoiceNumber']}: {invoice['AmountDue']}")


if __name__ == "__main__":
    main()
