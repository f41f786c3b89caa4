"""Limits of everything one can press, choose or fill in.

Source: the reference pages of Slack's Block Kit elements and the checks of its Python SDK.
"""

from typing import Any

from sandbox.slack.checker import Checker, Rule
from sandbox.slack.messages import Json


def check_confirm(check: Checker, part: Json, at: str) -> None:
    """The optional question before an action."""
    confirm = part.get("confirm")
    if confirm is None:
        return
    place = f"{at}/confirm"
    check.keys(confirm, place, "title text confirm deny", "style")
    check.texts(confirm, place, title=100, confirm=30, deny=30)
    check.texts(confirm, place, plain=False, text=300)
    check.choice(confirm, place, "style", {"primary", "danger"})


def button(check: Checker, part: Json, at: str) -> None:
    """A button."""
    check.keys(part, at, "text action_id", "value url style confirm accessibility_label")
    check.texts(part, at, text=75)
    check.strings(part, at, action_id=255, value=2000, url=3000, accessibility_label=75)
    check.choice(part, at, "style", {"primary", "danger"})
    check_confirm(check, part, at)


def option(check: Checker, part: Json, at: str) -> None:
    """One thing to choose."""
    check.keys(part, at, "text value", "description url")
    check.texts(part, at, text=75, description=75)
    check.strings(part, at, value=150, url=3000)


def options(check: Checker, part: Json, at: str, most: int) -> None:
    """The things to choose from; their values differ."""
    found = check.objects(part, at, "options", 1, most)
    for place, item in found:
        option(check, item, place)
    values = [item.get("value") for _, item in found]
    if len(set(values)) != len(values):
        check.wrong("duplicate option values", f"{at}/options")


def select(kind: str, extra: str = "") -> Rule:
    """Return the rule of a select whose options Slack or the bot provides."""

    def rule(check: Checker, part: Json, at: str) -> None:
        optional = f"placeholder confirm focus_on_load {extra}"
        check.keys(part, at, "action_id", optional)
        check.strings(part, at, action_id=255)
        check.texts(part, at, placeholder=150)
        check.flag(part, at, "focus_on_load")
        check_confirm(check, part, at)
        check.number(part, at, "min_query_length", 0, 100)
        if kind == "static":
            static_options(check, part, at)

    return rule


def static_options(check: Checker, part: Json, at: str) -> None:
    """Options or groups of options, not both; what is chosen at first is among them."""
    if (part.get("options") is None) == (part.get("option_groups") is None):
        check.wrong("must define either options or option_groups", at)
        return
    if part.get("options") is not None:
        options(check, part, at, 100)
        offered = part["options"]
    else:
        groups = check.objects(part, at, "option_groups", 1, 100)
        for place, group in groups:
            check.keys(group, place, "label options")
            check.texts(group, place, label=75)
            options(check, group, place, 100)
        offered = [item for _, group in groups for item in group.get("options", [])]
    chosen(check, part, at, offered)


def chosen(check: Checker, part: Json, at: str, offered: list[Json]) -> None:
    """What is chosen at first has to be one of the options."""
    first = part.get("initial_option")
    if first and first not in offered:
        check.wrong("initial option is not among the options", at)


def overflow(check: Checker, part: Json, at: str) -> None:
    """The menu behind three dots."""
    check.keys(part, at, "action_id options", "confirm")
    check.strings(part, at, action_id=255)
    options(check, part, at, 5)
    check_confirm(check, part, at)


def plain_text_input(check: Checker, part: Json, at: str) -> None:
    """One or several lines of text."""
    optional = "initial_value multiline min_length max_length dispatch_action_config"
    check.keys(part, at, "action_id", f"{optional} focus_on_load placeholder")
    check.strings(part, at, action_id=255)
    check.texts(part, at, placeholder=150)
    check.flag(part, at, "multiline", "focus_on_load")
    check.number(part, at, "min_length", 0, 3000)
    check.number(part, at, "max_length", 1, 3000)
    if part.get("initial_value"):
        check.string(part["initial_value"], f"{at}/initial_value", part.get("max_length") or 3000)


def typed(required: str = "", optional: str = "initial_value") -> Rule:
    """The rule of an input of one line with a meaning: a date, an address, a number."""

    def rule(check: Checker, part: Json, at: str) -> None:
        more = "placeholder focus_on_load confirm dispatch_action_config"
        check.keys(part, at, f"action_id {required}", f"{optional} {more}")
        check.strings(part, at, action_id=255)
        check.texts(part, at, placeholder=150)
        check_confirm(check, part, at)

    return rule


PRESSED: dict[str, Rule] = {
    "button": button,
    "overflow": overflow,
    "datetimepicker": typed(optional="initial_date_time"),
    "datepicker": typed(optional="initial_date"),
    "timepicker": typed(optional="initial_time timezone"),
    "static_select": select("static", "options option_groups initial_option"),
    "external_select": select("external", "min_query_length initial_option"),
}
INPUTS: dict[str, Rule] = {
    **{name: rule for name, rule in PRESSED.items() if name not in {"button", "overflow"}},
    "plain_text_input": plain_text_input,
}


def check_element(check: Checker, rules: dict[str, Rule], part: Any, at: str) -> None:
    """Check one element by its type, and whether this surface may have it."""
    check.follow(rules, part, at, "element")
    if check.surface == "home" and isinstance(part, dict) and part.get("type") == "datetimepicker":
        check.wrong("unsupported element in a home: datetimepicker", at)
