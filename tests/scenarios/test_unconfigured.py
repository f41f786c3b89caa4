"""A command whose service isn't configured tells the user which settings are missing.

Everything else works.
"""

import pytest

from tests.support.world import running_world

INVENTORY = {"inventory_data_centers": "", "inventory_base_url": ""}
FLOW = {"flow_base_url": "", "flow_account_sid": "", "flow_auth_token": "", "flow_aliases": ""}
EMAIL = {"email_base_url": "", "email_api_key": ""}
SID = f"FW{'0' * 31}1"


@pytest.mark.parametrize(
    ("settings", "needed", "unanswered", "answered"),
    [
        (
            INVENTORY,
            "INVENTORY_DATA_CENTERS",
            ["/orgs", "/orgs show 1", "/ratelimits", "/ratelimits 1", "/ratelimits check 1"],
            "/emailkey check",
        ),
        (
            FLOW,
            "FLOW_BASE_URL, FLOW_ACCOUNT_SID, FLOW_AUTH_TOKEN",
            [
                f"/testusers list {SID}",
                f"/testusers add {SID} +15550100",
                f"/testusers review {SID}",
            ],
            "/orgs",
        ),
        (
            EMAIL,
            "EMAIL_BASE_URL, EMAIL_API_KEY",
            ["/emailkey check", "/emailkey templates"],
            "/orgs",
        ),
    ],
)
async def test_commands_say_which_settings_they_need(
    sqlite_url, settings, needed, unanswered, answered
):
    async with running_world(sqlite_url, **settings) as world:
        for line in (*unanswered, answered):
            command, _, text = line.partition(" ")
            said = (await world.ask("U0OPERATOR", command, text)).text
            assert ("is not set up yet" in said) == (line != answered), line
            assert (needed in said) == (line != answered), line
