"""Error responses that use the error names from Slack's documentation."""

from typing import Any


class Refusal(Exception):
    """Raised to refuse a call with the response `{"ok": false, "error": …}`.

    Args:
        error: Slack's name for the error, such as `channel_not_found`.
        details: Additional fields in the response, such as `needed` or `response_metadata`.
    """

    def __init__(self, error: str, **details: Any) -> None:
        super().__init__(error)
        self.error = error
        self.details = details

    def body(self) -> dict[str, Any]:
        """The JSON body of the response."""
        return {"ok": False, "error": self.error, **self.details}


def bad_blocks(problems: list[str], error: str = "invalid_blocks") -> Refusal:
    """Return a refusal that lists these problems in the format that Slack uses."""
    return Refusal(error, errors=problems, response_metadata={"messages": problems})
