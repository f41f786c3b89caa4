"""The contents of a modal: typed values, and ids that the bot embedded."""

import json
import re
from collections.abc import Mapping
from typing import Any

NUL, MARK = "\0", "\ufffd"
# PostgreSQL can neither store nor search for NUL. Lone surrogates are valid in JSON, but can't be
# encoded.
_UNSTORABLE = re.compile(f"[{NUL}\ud800-\udfff]")


def typed_value(view: Mapping[str, Any], block_id: str) -> str:
    """Return the value of an input; empty if there is none.

    Lone surrogates are kept: the request is then refused rather than changed.
    """
    values = ((view.get("state") or {}).get("values") or {}).get(block_id) or {}
    for element in values.values():
        chosen = element.get("selected_option") or {}
        value = element.get("value") or chosen.get("value") or element.get("selected_date_time")
        return str(value or "").replace(NUL, MARK)
    return ""


def hidden(view: Mapping[str, Any], name: str) -> str:
    """Return an id that the bot embedded in its view."""
    try:
        found = json.loads(view.get("private_metadata") or "{}")
    except (ValueError, RecursionError):
        return ""
    return storable(str(found.get(name, ""))) if isinstance(found, dict) else ""


def storable(text: str) -> str:
    """Return the text with a mark in place of every character that can't be stored."""
    return _UNSTORABLE.sub(MARK, text)
