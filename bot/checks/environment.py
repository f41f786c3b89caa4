"""Findings from the settings alone: unknown names, incomplete services, weak secrets."""

import re
from collections.abc import Iterator, Mapping

from yarl import URL

from bot.checks.findings import Finding
from bot.ops.secrets import is_loopback
from bot.settings import AUDIT_KEY_UNUSED, EXAMPLES, Settings, revealed
from bot.settings.env_file import ENV_FILE
from bot.settings.names import unknown

SIGNING_SECRET = re.compile(r"[0-9a-f]{32}")
SIGNING_SECRET_OF_A_STAND_IN = re.compile(r"\S{16,}")
UNFINISHED = re.compile("…|\\.\\.\\.|changeme|example|<.*>", re.IGNORECASE)
OPEN_METRICS = (
    "is not set, so /metrics answers every caller on this machine, including a proxy or tunnel that"
    " hides the real client. Set it, or forward only /slack/events."
)


def examine_environment(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Return all findings that don't require a call."""
    names = [ENV_FILE, *(name.upper() for name in Settings.model_fields)]
    ignored = "is not a Gatehouse setting and is ignored. Check its spelling."
    found = [Finding(name, "setting_unknown", ignored) for name in unknown(environment, names)]
    if settings.audit_key is not None:
        found.append(Finding("AUDIT_KEY", "setting_unused", AUDIT_KEY_UNUSED))
    if settings.metrics_token is None and not is_loopback(settings.host):
        found.append(Finding("METRICS_TOKEN", "metrics_without_token", OPEN_METRICS))
    return [*found, *_secrets(settings)]


def _secrets(settings: Settings) -> Iterator[Finding]:
    for name, value in _named_secrets(settings).items():
        if value == EXAMPLES.get(name) or UNFINISHED.search(value):
            yield Finding(
                name, "example_secret", "is still the example value or a placeholder. Replace it."
            )
    secret = revealed(settings.slack_signing_secret)
    is_real = not is_loopback(URL(settings.slack_api_url).host)
    is_formed = SIGNING_SECRET.fullmatch if is_real else SIGNING_SECRET_OF_A_STAND_IN.fullmatch
    if secret and not is_formed(secret):
        yield Finding(
            "SLACK_SIGNING_SECRET",
            "signing_secret_form",
            "is not 32 hexadecimal digits, as Slack's are. Copy it from Basic Information.",
        )


def _named_secrets(settings: Settings) -> dict[str, str]:
    named = {
        "SLACK_BOT_TOKEN": settings.slack_bot_token,
        "SLACK_SIGNING_SECRET": settings.slack_signing_secret,
        "SLACK_APP_TOKEN": settings.slack_app_token,
        "METRICS_TOKEN": settings.metrics_token,
        "FLOW_AUTH_TOKEN": settings.flow_auth_token,
        "EMAIL_API_KEY": settings.email_api_key,
    }
    centers = {
        f"INVENTORY_DATA_CENTERS {name}": center.authtoken
        for name, center in settings.inventory_data_centers.items()
    }
    return {
        name: secret.get_secret_value()
        for name, secret in {**named, **centers}.items()
        if secret is not None
    }
