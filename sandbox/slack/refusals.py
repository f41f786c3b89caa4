"""Refusals, with the error names from Slack's documentation."""

from typing import Any


class Refusal(Exception):
    """A response `{"ok": false, "error": …}`.

    Args:
        error: Slack's name for the error, such as `channel_not_found`.
        details: Further fields in the response, such as `needed` or `response_metadata`.
    """

    def __init__(self, error: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.details = details

    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        return {"ok": False, "error": self.error, **self.details}


def bad_blocks(problems: list[str], error: str = "invalid_blocks") -> Refusal:
    """Return a refusal that lists the problems with JSON pointers, as Slack does."""
    return Refusal(error, errors=problems, response_metadata={"messages": problems})
