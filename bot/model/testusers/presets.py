"""Presets: a name that stands for people."""

from datetime import datetime

from bot.dataclass import dataclass
from bot.model.testusers.requests import Who


@dataclass(frozen=True, slots=True)
class Preset:
    """People under one name, without its `@`, and who saved them last."""

    name: str
    identities: tuple[str, ...]
    saved_by: Who
    saved_at: datetime
