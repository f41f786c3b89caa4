"""Checks buttons, menus and inputs against Slack's limits.

The limits come from Slack's reference pages for Block Kit elements, and from the checks in Slack's
Python SDK.
"""

from sandbox.slack.checker import Checker, Rule
from sandbox.slack.messages import Json


def check_confirm(check: Checker, part: Json, at: str) -> None:
    """Check the confirmation dialog, if there is one."""
    confirm = part.get("confirm")
    if confirm is None:
        return
    place = f"{at}/confirm"
    check.keys(confirm, place, "title text confirm deny", "style")
    check.texts(confirm, place, title=100, confirm=30, deny=30)
    check.texts(confirm, place, plain=False, text=300)
    check.choice(confirm, place, "style", {"primary", "danger"})


def button(check: Checker, part: Json, at: str) -> None:
    """Check a button."""
    check.keys(part, at, "text action_id", "value url style confirm accessibility_label")
    check.texts(part, at, text=75)
    check.strings(part, at, action_id=255, value=2000, url=3000, accessibility_label=75)
    check.choice(part, at, "style", {"primary", "danger"})
    check_confirm(check, part, at)


def option(check: Checker, part: Json, at: str) -> None:
    """Check an option in a menu."""
    check.keys(part, at, "text value", "description url")
    check.texts(part, at, text=75, description=75)
    check.strings(part, at, value=150, url=3000)


def options(check: Checker, part: Json, at: str, most: int) -> None:
    """Check a list of options. Each option must have a different value."""
    found = check.objects(part, at, "options", 1, most)
    for place, item in found:
        option(check, item, place)
    values = [item.get("value") for _, item in found]
    if len(set(values)) != len(values):
        check.wrong("duplicate option values", f"{at}/options")


def static_select(check: Checker, part: Json, at: str) -> None:
    """Check a menu that has fixed options. The initial option must be one of these options."""
    check.keys(part, at, "action_id options", "placeholder initial_option")
    check.strings(part, at, action_id=255)
    check.texts(part, at, placeholder=150)
    options(check, part, at, 100)
    if part.get("initial_option") and part["initial_option"] not in (part.get("options") or []):
        check.wrong("initial option is not among the options", at)


def external_select(check: Checker, part: Json, at: str) -> None:
    """Check a menu that gets its options from the bot while a person types."""
    check.keys(part, at, "action_id", "placeholder initial_option min_query_length")
    check.strings(part, at, action_id=255)
    check.texts(part, at, placeholder=150)
    check.number(part, at, "min_query_length", 0, 100)


def overflow(check: Checker, part: Json, at: str) -> None:
    """Check a three-dot menu."""
    check.keys(part, at, "action_id options", "confirm")
    check.strings(part, at, action_id=255)
    options(check, part, at, 5)
    check_confirm(check, part, at)


def plain_text_input(check: Checker, part: Json, at: str) -> None:
    """Check a single-line or multi-line text input."""
    check.keys(part, at, "action_id", "initial_value multiline max_length")
    check.strings(part, at, action_id=255)
    check.flag(part, at, "multiline")
    check.number(part, at, "max_length", 1, 3000)
    if part.get("initial_value"):
        check.string(part["initial_value"], f"{at}/initial_value", part.get("max_length") or 3000)


def datetimepicker(check: Checker, part: Json, at: str) -> None:
    """Check a date and time picker."""
    check.keys(part, at, "action_id", "initial_date_time")
    check.strings(part, at, action_id=255)


PRESSED: dict[str, Rule] = {
    "button": button,
    "overflow": overflow,
    "static_select": static_select,
}
INPUTS: dict[str, Rule] = {
    "datetimepicker": datetimepicker,
    "external_select": external_select,
    "plain_text_input": plain_text_input,
    "static_select": static_select,
}
