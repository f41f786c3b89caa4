"""The smallest valid settings of a bot."""

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "signing-secret-word",
    "ALERTS_CHANNEL": "C0ALERTS",
    "APPROVALS_CHANNEL": "G0APPROVALS",
}
