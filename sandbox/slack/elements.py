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


def option(check: Checker, part: Json, at: str, *, plain: bool = True) -> None:
    """One thing to choose."""
    check.keys(part, at, "text value", "description url")
    check.texts(part, at, plain=plain, text=75, description=75)
    check.strings(part, at, value=150, url=3000)


def options(check: Checker, part: Json, at: str, most: int, *, plain: bool = True) -> None:
    """The things to choose from; their values differ."""
    found = check.objects(part, at, "options", 1, most)
    for place, item in found:
        option(check, item, place, plain=plain)
    values = [item.get("value") for _, item in found]
    if len(set(values)) != len(values):
        check.wrong("duplicate option values", f"{at}/options")


def select(kind: str, extra: str = "") -> Rule:
    """The rule of a select (or multi-select) whose options Slack or the bot provides."""

    def rule(check: Checker, part: Json, at: str) -> None:
        optional = f"placeholder confirm focus_on_load max_selected_items {extra}"
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
    first = [part["initial_option"]] if part.get("initial_option") else []
    for item in first + list(part.get("initial_options") or []):
        if item not in offered:
            check.wrong("initial option is not among the options", at)


def choices(kind: str) -> Rule:
    """The rule of radio buttons and checkboxes."""

    def rule(check: Checker, part: Json, at: str) -> None:
        check.keys(part, at, "action_id options", f"{kind} confirm focus_on_load")
        check.strings(part, at, action_id=255)
        options(check, part, at, 10, plain=False)
        chosen(check, part, at, part.get("options") or [])
        check_confirm(check, part, at)

    return rule


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


def image(check: Checker, part: Json, at: str) -> None:
    """A small picture beside text."""
    check.keys(part, at, "alt_text", "image_url slack_file")
    check.strings(part, at, alt_text=2000, image_url=3000)


def feedback_buttons(check: Checker, part: Json, at: str) -> None:
    """Thumbs up, thumbs down."""
    check.keys(part, at, "positive_button negative_button", "action_id")


def icon_button(check: Checker, part: Json, at: str) -> None:
    """A small button with an icon."""
    optional = "value confirm accessibility_label visible_to_user_ids"
    check.keys(part, at, "icon text action_id", optional)
    check.texts(part, at, text=75)
    check.strings(part, at, action_id=255, value=2000, accessibility_label=75)


def selects() -> dict[str, Rule]:
    """Every select and multi-select."""
    rules: dict[str, Rule] = {
        "static_select": select("static", "options option_groups initial_option"),
        "multi_static_select": select("static", "options option_groups initial_options"),
        "external_select": select("external", "min_query_length initial_option"),
        "multi_external_select": select("external", "min_query_length initial_options"),
    }
    for name in ("user", "channel", "conversation"):
        extra = "response_url_enabled filter default_to_current_conversation"
        rules[f"{name}s_select"] = select(name, f"initial_{name} {extra}")
        rules[f"multi_{name}s_select"] = select(name, f"initial_{name}s {extra}")
    return rules


PRESSED: dict[str, Rule] = {
    "button": button,
    "overflow": overflow,
    "datepicker": typed(optional="initial_date"),
    "timepicker": typed(optional="initial_time timezone"),
    "datetimepicker": typed(optional="initial_date_time"),
    "checkboxes": choices("initial_options"),
    "radio_buttons": choices("initial_option"),
    **selects(),
}
INPUTS: dict[str, Rule] = {
    **{name: rule for name, rule in PRESSED.items() if name not in {"button", "overflow"}},
    "plain_text_input": plain_text_input,
    "rich_text_input": typed(),
    "email_text_input": typed(),
    "url_text_input": typed(),
    "number_input": typed("is_decimal_allowed", "initial_value min_value max_value"),
    "file_input": typed(optional="filetypes max_files"),
}
ONLY_IN_MODALS = {"email_text_input", "url_text_input", "number_input", "file_input"}
NOT_IN_HOME = {"datetimepicker"}
NOT_IN_MESSAGES = {"rich_text_input"}


def check_element(check: Checker, rules: dict[str, Rule], part: Any, at: str) -> None:
    """Check one element by its type, and whether this surface may have it."""
    check.follow(rules, part, at, "element")
    kind = part.get("type") if isinstance(part, dict) else None
    wrong_place = {
        "message": ONLY_IN_MODALS | NOT_IN_MESSAGES,
        "home": ONLY_IN_MODALS | NOT_IN_HOME,
    }
    if kind in wrong_place.get(check.surface, set()):
        check.wrong(f"unsupported element in a {check.surface}: {kind}", at)
