"""What comes back from a modal: typed values, and the ids that the bot put into it itself."""

import json
import re
from collections.abc import Mapping
from typing import Any

NUL, MARK = "\0", "\ufffd"
# PostgreSQL cannot store NUL, not even look for it. Half of a surrogate pair JSON can say, and it
# has no bytes.
_UNSTORABLE = re.compile(f"[{NUL}\ud800-\udfff]")


def typed_value(view: Mapping[str, Any], block_id: str) -> str:
    """What was typed or chosen at an input; empty when nothing was.

    Half a character is left in it: what is asked for is refused with it, rather than changed.
    """
    values = ((view.get("state") or {}).get("values") or {}).get(block_id) or {}
    for element in values.values():
        chosen = element.get("selected_option") or {}
        return str(element.get("value") or chosen.get("value") or "").replace(NUL, MARK)
    return ""


def hidden(view: Mapping[str, Any], name: str) -> str:
    """An id that the bot put into its own view."""
    try:
        found = json.loads(view.get("private_metadata") or "{}")
    except (ValueError, RecursionError):
        return ""
    return storable(str(found.get(name, ""))) if isinstance(found, dict) else ""


def storable(text: str) -> str:
    """The text with a mark in the place of every character that cannot be stored."""
    return _UNSTORABLE.sub(MARK, text)
