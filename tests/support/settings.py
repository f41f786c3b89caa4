"""Lists the required settings, and creates the example settings file."""

from collections.abc import Mapping

from bot.settings import Settings, settings_from
from bot.settings.files import example_of, find_sources, toml_text

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "signing-secret-word",
    "ALERTS_CHANNEL": "C0ALERTS",
    "APPROVALS_CHANNEL": "G0APPROVALS",
}


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read the settings from environment variables only, not from a file."""
    return settings_from(find_sources({**environment, "GATEHOUSE_CONFIG": ""}))


def example_file() -> str:
    """Return the content of `gatehouse.example.toml`.

    The example file lists all settings, but sets only the required ones.
    """
    fields = Settings.model_fields
    text = toml_text({name: example_of(name) for name in fields})
    in_force = ("#", *(f"{name} = " for name, field in fields.items() if field.is_required()))
    lines = [
        line if not line or line.startswith(in_force) else f"#{line}" for line in text.split("\n")
    ]
    return "\n".join(lines)
