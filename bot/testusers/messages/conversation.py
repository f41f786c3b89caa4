"""Answers that are only used in direct messages."""

from bot.permissions import Permission
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.help import May
from bot.slack.messages.message import Message
from bot.testusers.messages.buttons import Prefilled
from bot.testusers.messages.phrases import brief, flow_name
from bot.testusers.rules.changes import Flow

NOT_UNDERSTOOD = "I didn't understand that. Here are things you can ask me (no slash needed):"
OPEN_FORM = "Open the form to pick a flow and people."
HELLO = (
    "Hi! I look after test users, organizations and their API limits."
    "\nPick one of these, or write `help` for everything I can do."
)
TOO_LONG = "That's too much for one button. Please send it as a command: `testusers add …`."


def not_understood(forms: Message) -> Message:
    """Return the answer to text that isn't a command: a list of possible requests."""
    shown = (block_kit.section(NOT_UNDERSTOOD), *forms.slack_blocks)
    return Message(f"{NOT_UNDERSTOOD}\n{forms.text}", shown)


def greeting(may: May) -> Message:
    """Return two lines and the most frequently used buttons."""
    form = block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")
    buttons = [
        *([form] if may(Permission.REQUEST) else []),
        block_kit.button("Organizations", ids.HOME_ORGS, "dm"),
        block_kit.button("Rate limits", ids.HOME_RATELIMITS, "dm"),
        block_kit.button("Open requests", f"{ids.RUN_COMMAND}.0", "/testusers requests"),
    ]
    return Message(HELLO, (block_kit.section(HELLO), block_kit.actions(*buttons)))


def form_button() -> Message:
    """Return a button that opens the form: Slack opens forms only after a click."""
    button = block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")
    return Message(OPEN_FORM, (block_kit.section(OPEN_FORM), block_kit.actions(button)))


def filled_form(flow: Flow, filled: Prefilled) -> Message:
    """Return a button that opens the form with the values from the message."""
    is_adding = filled.kind != "remove"
    people = brief(filled.identities) if filled.identities else "everybody of the preset"
    start = f" from {text.time(filled.start)}" if filled.start else ""
    end = f" until {text.time(filled.until)}" if filled.until else ""
    term = f" for {text.escape(filled.duration)}" if filled.duration else end
    verb, preposition = ("Add", "to") if is_adding else ("Remove", "from")
    line = (
        f"{verb} {people} {preposition} {flow_name(flow)}{start}{term}: check the form and send it."
    )
    value = filled.value()
    if len(value) > block_kit.VALUE_CHARACTERS:
        return Message(TOO_LONG)
    button = block_kit.button("Open the form", ids.TESTUSERS_EXTEND, value, style="primary")
    return Message(line, (block_kit.section(line), block_kit.actions(button)))
