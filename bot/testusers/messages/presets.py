"""`/testusers presets`, and the answers to saving and deleting a preset."""

from collections.abc import Sequence

from bot.slack.messages import block_kit, text
from bot.slack.messages.message import Message
from bot.testusers.messages.phrases import brief, how_many, in_full, masked, who
from bot.testusers.rules.presets import Preset

SHOWN = 50
EXAMPLE = "/testusers preset save demo-team +15550100 +15550101"


def listing(presets: Sequence[Preset], *, sees_identities: bool, flow: str = "") -> Message:
    """Return all presets, with the first few people of each."""
    if not presets:
        line = f"There are no presets yet. Save one: {text.code(EXAMPLE)}"
        return Message(line, (block_kit.section(line),))
    show = in_full if sees_identities else masked
    use = text.code(f"/testusers add {flow or 'welcome'} @{presets[0].name}")
    title = f"*{text.count(len(presets), 'preset')}*. Use them like this: {use}"
    lines = [
        f"• {_name(preset.name)} ({how_many(len(preset.identities))}): "
        f"{brief(preset.identities, show)}"
        f" · saved by {who(preset.saved_by)} {text.time(preset.saved_at)}"
        for preset in presets[:SHOWN]
    ]
    more = [f"And {len(presets) - SHOWN} more."] if len(presets) > SHOWN else []
    shown = [title, *lines, *more]
    return Message("\n".join(shown), block_kit.sections(shown))


def saved(name: str, identities: Sequence[str], before: Preset | None) -> Message:
    """Return the answer to saving a preset, with its previous people."""
    replaced = f" It was {brief(before.identities)} before." if before else ""
    return _line(f"Saved: {_name(name)} stands for {brief(identities)}.{replaced}")


def deleted(preset: Preset) -> Message:
    """Return the answer to deleting a preset, with the people in it."""
    return _line(f"Deleted {_name(preset.name)}. It stood for {brief(preset.identities)}.")


def _name(name: str) -> str:
    return text.code(f"@{name}", 60)


def _line(markup: str) -> Message:
    return Message(markup, (block_kit.section(markup),))
