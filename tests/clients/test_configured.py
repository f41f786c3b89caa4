"""From the settings to clients."""

import base64
import json

from bot.configured import redactor_of
from bot.settings import Settings, read_settings

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "signing-secret-word",
    "ALERTS_CHANNEL": "C1",
    "APPROVALS_CHANNEL": "C2",
}
OAUTH = {
    "client_id": "c",
    "client_secret": "client-secret",
    "refresh_token": "refresh",
    "token_url": "https://accounts.example.jp/token",
}


def settings(**more: object) -> Settings:
    texts = {name: one if isinstance(one, str) else json.dumps(one) for name, one in more.items()}
    return read_settings({**LEAST, **texts})


def test_every_secret_is_known_to_the_redactor() -> None:
    redactor = redactor_of(
        settings(
            FLOW_BASE_URL="https://f.example",
            FLOW_ACCOUNT_SID="AC1",
            FLOW_AUTH_TOKEN="flow-token",
            EMAIL_API_KEY="SG.email-key",
            EMAIL_BASE_URL="https://e.example",
            METRICS_TOKEN="metrics-token-word",
            SLACK_APP_TOKEN="xapp-app-token",
            DATABASE_URL="postgresql://me:data-word@db.example/x",
            INVENTORY_BASE_URL="https://inventory.example.com/inventory/v1",
            INVENTORY_DATA_CENTERS={"com": {"authtoken": "auth-token"}, "jp": {"oauth": OAUTH}},
        )
    )
    secrets = [
        "xoxb-1",
        "signing-secret-word",
        "xapp-app-token",
        "flow-token",
        "SG.email-key",
        "metrics-token-word",
        "data-word",
        "auth-token",
        "client-secret",
        "refresh",
        base64.b64encode(b"AC1:flow-token").decode(),
        base64.b64encode(b"apikey:SG.email-key").decode(),
    ]
    cleaned = redactor.clean(" ".join(secrets)).split(" ")
    assert cleaned == ["[secret]"] * len(secrets)
