"""How this Slack says no: by the names that Slack's own documentation lists."""

from typing import Any


class Refusal(Exception):
    """An answer `{"ok": false, "error": …}`.

    Args:
        error: Slack's name, such as `channel_not_found`.
        details: further fields of the answer, such as `needed`, or `response_metadata`.
    """

    def __init__(self, error: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.details = details

    def body(self) -> dict[str, Any]:
        """The JSON that the caller gets."""
        return {"ok": False, "error": self.error, **self.details}


def bad_blocks(problems: list[str], error: str = "invalid_blocks") -> Refusal:
    """A refusal that lists what is wrong, with JSON pointers, as Slack does."""
    return Refusal(error, errors=problems, response_metadata={"messages": problems})
