"""Vendor presets: the settings that all accounts of a vendor share. Sources: docs/vendors.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field

DATA_CENTER = "{data_center}"


@dataclass(frozen=True, slots=True)
class Vendor:
    """A vendor of one service.

    Attributes:
        base_url: The API root; other data centers replace the suffix `com`.
        token_url: Where a code is exchanged and an access token renewed; `{data_center}` stands
            for the suffix.
        token_urls: The same for data centers whose address differs.
        settings: Further settings, by name.
        advice: How to get the credentials, for a person at a terminal.
        has_flow_listing: `GET /v2/Flows` lists the flows by name.
    """

    base_url: str | None = None
    token_url: str | None = None
    token_urls: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    advice: str = ""
    has_flow_listing: bool = False


OTHER = Vendor()
INVENTORY = {
    "zoho": Vendor(
        base_url="https://www.zohoapis.com/inventory/v1",
        token_url=f"https://accounts.zoho.{DATA_CENTER}/oauth/v2/token",
        token_urls={"ca": "https://accounts.zohocloud.ca/oauth/v2/token"},
        settings={
            "INVENTORY_AUTH_HEADER": "Zoho-oauthtoken {token}",
            "INVENTORY_SCOPE": "ZohoInventory.settings.READ",
        },
        advice=(
            "In each data center's API console (https://api-console.zoho.com, or with its suffix)"
            " open Self Client. Copy the client ID and secret; under Generate Code enter the scope"
            " ZohoInventory.settings.READ and ten minutes, and copy the code."
        ),
    ),
    "other": OTHER,
}
FLOW = {
    "twilio": Vendor(
        base_url="https://studio.twilio.com",
        settings={"FLOW_FORM_FIELD": "TestUsers"},
        advice="Account SID and auth token are on the first page of https://console.twilio.com.",
        has_flow_listing=True,
    ),
    "other": OTHER,
}
EMAIL = {
    "sendgrid": Vendor(
        base_url="https://api.sendgrid.com",
        advice=(
            "Make the key in the console under Settings, API Keys, with read access to templates."
            " Signing in takes a phone: the code comes by SMS."
        ),
    ),
    "other": OTHER,
}
