"""Collects the problems that validation finds, each with a JSON pointer to its location."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sandbox.slack.messages import Json

Rule = Callable[["Checker", Json, str], None]


@dataclass
class Checker:
    """Collects the problems in the blocks of a message, a modal or a Home tab.

    `special` holds the names of specific errors, such as `only_one_table_allowed`. `total` is the
    number of visible characters.
    """

    surface: str
    problems: list[str] = field(default_factory=list)
    special: list[str] = field(default_factory=list)
    total: int = 0

    def wrong(self, what: str, at: str) -> None:
        """Record a problem."""
        self.problems.append(f"[ERROR] {what} [json-pointer:{at}]")

    def keys(self, part: Json, at: str, required: str, optional: str = "") -> None:
        """Check that all required fields are present, and that there are no unknown fields.

        `required` and `optional` contain field names separated by spaces.
        """
        allowed = {"type", *required.split(), *optional.split()}
        for key in required.split():
            if part.get(key) is None:
                self.wrong(f"missing required field: {key}", at)
        for key in part:
            if key not in allowed:
                self.wrong(f"invalid additional property: {key}", at)

    def string(self, value: Any, at: str, most: int, least: int = 1) -> None:
        """Check that a value is a string, and that its length is within the limits."""
        if not isinstance(value, str):
            self.wrong("must be a string", at)
        elif len(value) > most:
            self.wrong(f"must be less than {most + 1} characters", at)
        elif len(value) < least:
            self.wrong(f"must be more than {least - 1} characters", at)

    def strings(self, part: Json, at: str, **most: int) -> None:
        """Check optional fields that contain strings.

        `most` maps each field to its maximum length.
        """
        for key, limit in most.items():
            if part.get(key) is not None:
                self.string(part[key], f"{at}/{key}", limit)

    def number(self, part: Json, at: str, key: str, least: int, most: int) -> None:
        """Check an optional whole number."""
        value = part.get(key)
        if value is None:
            return
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            self.wrong(f"must be a whole number from {least} to {most}", f"{at}/{key}")

    def flag(self, part: Json, at: str, *names: str) -> None:
        """Check optional booleans."""
        for key in names:
            if not isinstance(part.get(key, False), bool):
                self.wrong("must be a boolean", f"{at}/{key}")

    def choice(self, part: Json, at: str, key: str, allowed: Iterable[str]) -> None:
        """Check that an optional field has one of the allowed values."""
        if part.get(key) is not None and part[key] not in set(allowed):
            self.wrong(f"must be one of {', '.join(sorted(allowed))}", f"{at}/{key}")

    def text(self, value: Any, at: str, most: int, *, plain: bool = False) -> None:
        """Check a text object and count its characters."""
        if not isinstance(value, dict):
            self.wrong("must provide an object", at)
            return
        self.choice(value, at, "type", {"plain_text"} if plain else {"plain_text", "mrkdwn"})
        if value.get("type") == "mrkdwn":
            self.keys(value, at, "text", "verbatim")
        else:
            self.keys(value, at, "text", "emoji")
        self.string(value.get("text"), f"{at}/text", most)
        self.count(value.get("text"))

    def texts(self, part: Json, at: str, *, plain: bool = True, **most: int) -> None:
        """Check optional fields that contain text objects.

        `most` maps each field to its maximum length.
        """
        for key, limit in most.items():
            if part.get(key) is not None:
                self.text(part[key], f"{at}/{key}", limit, plain=plain)

    def count(self, value: Any) -> None:
        """Add a text's length to the total, because Slack limits the total length of a message."""
        self.total += len(value) if isinstance(value, str) else 0

    def items(self, part: Json, at: str, key: str, least: int, most: int) -> list[tuple[str, Any]]:
        """Check the length of a list, and return each item together with its JSON pointer."""
        value = part.get(key)
        if not isinstance(value, list):
            self.wrong("must be an array", f"{at}/{key}")
            return []
        if len(value) > most:
            self.wrong(f"no more than {most} items allowed", f"{at}/{key}")
        if len(value) < least:
            self.wrong(f"no less than {least} items allowed", f"{at}/{key}")
        return [(f"{at}/{key}/{index}", item) for index, item in enumerate(value)]

    def objects(
        self, part: Json, at: str, key: str, least: int, most: int
    ) -> list[tuple[str, Json]]:
        """Check a list of objects, and return each object together with its JSON pointer."""
        found = self.items(part, at, key, least, most)
        for place, item in found:
            if not isinstance(item, dict):
                self.wrong("must provide an object", place)
        return [(place, item) for place, item in found if isinstance(item, dict)]

    def follow(self, rules: dict[str, Rule], part: Any, at: str, what: str) -> None:
        """Look up the rule for a part's type, and apply the rule to the part."""
        if not isinstance(part, dict) or part.get("type") not in rules:
            kind = part.get("type") if isinstance(part, dict) else part
            self.wrong(f"unsupported type: {kind} {what}", at)
            return
        rules[part["type"]](self, part, at)
