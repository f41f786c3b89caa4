"""What the app's manifest tells Slack: the commands with their hints, and the scopes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MANIFEST = Path(__file__).resolve().parent.parent / "manifest.yml"


@dataclass(frozen=True)
class Command:
    """A slash command as the composer offers it."""

    name: str
    description: str
    usage_hint: str


@dataclass(frozen=True)
class Manifest:
    """The part of `manifest.yml` that Slack acts on here."""

    commands: tuple[Command, ...]
    scopes: tuple[str, ...]
    should_escape: bool


def read_manifest() -> Manifest:
    """Read `manifest.yml`."""
    text: dict[str, Any] = yaml.safe_load(MANIFEST.read_text(encoding="utf-8"))
    listed = text["features"]["slash_commands"]
    commands = tuple(
        Command(one["command"], one["description"], one.get("usage_hint", "")) for one in listed
    )
    scopes = tuple(text["oauth_config"]["scopes"]["bot"])
    return Manifest(commands, scopes, all(one.get("should_escape", False) for one in listed))
