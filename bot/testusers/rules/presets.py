"""Presets: a name that stands for people."""

from dataclasses import dataclass
from datetime import datetime

from bot.testusers.rules.requests import Who


@dataclass(frozen=True, slots=True)
class Preset:
    """People under one name, without its `@`, and the person who saved them last."""

    name: str
    identities: tuple[str, ...]
    saved_by: Who
    saved_at: datetime
