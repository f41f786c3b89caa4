"""Reads the parts of the app manifest that the sandbox uses, such as commands and scopes."""

import json
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

from sandbox.bot_process import ROOT

# The sandbox ignores the address in the manifest.
PRINT_MANIFEST = (sys.executable, "-m", "bot", "manifest", "--url", "https://bot.example.com")


@dataclass(frozen=True)
class Command:
    """A slash command in the message composer's list of commands."""

    name: str
    description: str
    usage_hint: str


@dataclass(frozen=True)
class Shortcut:
    """A shortcut. `type` is either `global` or `message`."""

    name: str
    type: str
    callback_id: str
    description: str


@dataclass(frozen=True)
class Manifest:
    """The parts of the app manifest that the sandbox uses."""

    commands: tuple[Command, ...]
    shortcuts: tuple[Shortcut, ...]
    scopes: tuple[str, ...]
    should_escape: bool


@cache
def read_manifest() -> Manifest:
    """Read the app manifest that `python -m bot manifest` prints."""
    printed = subprocess.run(PRINT_MANIFEST, cwd=ROOT, check=True, capture_output=True)  # noqa: S603
    text: dict[str, Any] = json.loads(printed.stdout)
    listed = text["features"]["slash_commands"]
    commands = tuple(
        Command(item["command"], item["description"], item.get("usage_hint", "")) for item in listed
    )
    shortcuts = tuple(Shortcut(**item) for item in text["features"].get("shortcuts", []))
    scopes = tuple(text["oauth_config"]["scopes"]["bot"])
    return Manifest(
        commands, shortcuts, scopes, all(item.get("should_escape", False) for item in listed)
    )
