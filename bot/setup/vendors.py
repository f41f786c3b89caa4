"""Vendor presets, which apply to all accounts of a vendor. For sources, see docs/vendors.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.settings.model import ServiceName

DATA_CENTER = "{data_center}"


@dataclass(frozen=True)
class Vendor:
    """A service vendor, and the settings for all of its accounts.

    `token_url` is the URL for exchanging codes and renewing access tokens. It can contain the
    placeholder `{data_center}`. `token_urls` maps some data centers to different URLs.
    """

    settings: Mapping[str, str] = field(default_factory=dict)
    token_url: str = ""
    token_urls: Mapping[str, str] = field(default_factory=dict)
    advice: str = "Ask the vendor for these credentials."

    def token_url_of(self, data_center: str) -> str:
        """Return the URL for the data center's tokens."""
        url = self.token_urls.get(data_center, self.token_url)
        return url.replace(DATA_CENTER, data_center)


ZOHO = Vendor(
    {
        "inventory_base_url": "https://www.zohoapis.com/inventory/v1",
        "inventory_auth_header": "Zoho-oauthtoken {token}",
        "inventory_scope": "ZohoInventory.settings.READ",
    },
    token_url=f"https://accounts.zoho.{DATA_CENTER}/oauth/v2/token",
    token_urls={"ca": "https://accounts.zohocloud.ca/oauth/v2/token"},
    advice=(
        "In each data center's API console (https://api-console.zoho.com, or the same address with"
        " another suffix), open Self Client. Copy the client ID and secret. Under Generate Code,"
        " enter the scope ZohoInventory.settings.READ, choose ten minutes, and copy the code."
    ),
)
TWILIO = Vendor(
    {"flow_base_url": "https://studio.twilio.com", "flow_form_field": "TestUsers"},
    advice="The account SID and auth token are on the first page of https://console.twilio.com.",
)
SENDGRID = Vendor(
    {"email_base_url": "https://api.sendgrid.com"},
    advice=(
        "In SendGrid's console, open Settings → API Keys, and create a key with read access to"
        " templates. To sign in, you need a phone that can receive a code by SMS."
    ),
)
OTHER = Vendor()
PRESETS: Mapping[ServiceName, Mapping[str, Vendor]] = {
    "inventory": {"zoho": ZOHO, "other": OTHER},
    "flow": {"twilio": TWILIO, "other": OTHER},
    "email": {"sendgrid": SENDGRID, "other": OTHER},
}
