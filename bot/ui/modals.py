"""What comes back from a modal: typed values, and the ids that the bot put into it itself."""

import json
from collections.abc import Mapping
from typing import Any


def typed_value(view: Mapping[str, Any], block_id: str) -> str:
    """What was typed or chosen at an input; empty when nothing was."""
    values = ((view.get("state") or {}).get("values") or {}).get(block_id) or {}
    for element in values.values():
        chosen = element.get("selected_option") or {}
        return storable(str(element.get("value") or chosen.get("value") or ""))
    return ""


def hidden(view: Mapping[str, Any], name: str) -> str:
    """An id that the bot put into its own view."""
    try:
        found = json.loads(view.get("private_metadata") or "{}")
    except ValueError:
        return ""
    return storable(str(found.get(name, ""))) if isinstance(found, dict) else ""


def storable(text: str) -> str:
    """The text without NUL, which PostgreSQL cannot store, not even to look for it."""
    return text.replace("\0", "\ufffd")
