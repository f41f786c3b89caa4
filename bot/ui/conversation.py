"""What is said in direct messages only."""

from bot.ui import block_kit, ids
from bot.ui.message import Message

NOT_A_COMMAND = "I only understand commands. Here they can be written without the slash."
OPEN_FORM = "Choose the flow and the people in a form."


def not_a_command(forms: Message) -> Message:
    """The answer to any text that is no command: what the person can do."""
    shown = (block_kit.section(NOT_A_COMMAND), *forms.slack_blocks)
    return Message(f"{NOT_A_COMMAND}\n{forms.text}", shown)


def form_button() -> Message:
    """The way to the form, where Slack opens none: only a click gives the right to."""
    button = block_kit.button("Change test users", ids.HOME_TESTUSERS, "form", style="primary")
    return Message(OPEN_FORM, (block_kit.section(OPEN_FORM), block_kit.actions(button)))
