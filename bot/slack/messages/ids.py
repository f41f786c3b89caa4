"""All action, block and view IDs."""

import re

ORGS_PAGE = "orgs.page"
ORGS_REFRESH = "orgs.refresh"
ORGS_SHOW = "orgs.show"

EMAILKEY_PAGE = "emailkey.page"
# Buttons that run the command in their value. IDs in a row must differ, so each has an ending.
RUN_COMMAND = "command.run"
SHARE = "answer.share"

HOME_TESTUSERS = "home.testusers"

# The callback ID of the shortcut, which is also in the manifest.
CHANGE_TEST_USERS = "change_test_users"

# The prefix of the action IDs of `Approve`, `Deny`, `Cancel`, `Retry` and `Undo`.
TESTUSERS_ACT = "testusers."
TESTUSERS_FORM = "testusers.form"
TESTUSERS_DENIAL = "testusers.denial"
TESTUSERS_FLOW = "testusers.flow"
TESTUSERS_CHANGE = "testusers.change"
TESTUSERS_IDENTITIES = "testusers.identities"
TESTUSERS_FOR = "testusers.for"
TESTUSERS_UNTIL = "testusers.until"
TESTUSERS_EXTEND = "testusers.extend"
TESTUSERS_FILL = "testusers.fill"
TESTUSERS_REASON = "testusers.reason"

RATELIMITS_PAGE = "ratelimits.page"
RATELIMITS_SHOW = "ratelimits.show"
RATELIMITS_REFRESH = "ratelimits.refresh"
RATELIMITS_CHECK = "ratelimits.check"

INCIDENT_MUTE = "incident.mute"


def row_of(action_id: str) -> re.Pattern[str]:
    """Return a pattern for the action IDs of a row of buttons, such as `orgs.page.next`."""
    return re.compile(rf"^{re.escape(action_id)}(\.\w+)?$")


def testusers_page(form: str) -> str:
    """Return the action ID prefix for the page buttons of `/testusers <form>`."""
    return f"testusers.{form}_page"
