"""Every action, block and view id, in one place. They read like paths."""

ORGS_PAGE = "orgs.page"
ORGS_REFRESH = "orgs.refresh"
ORGS_SHOW = "orgs.show"

EMAILKEY_PAGE = "emailkey.page"
