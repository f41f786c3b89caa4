"""`/testusers presets`, and what becomes of saving and deleting one."""

from collections.abc import Sequence

from bot.model.testusers.presets import Preset
from bot.ui import block_kit, text
from bot.ui.message import Message
from bot.ui.testusers.phrases import brief, how_many, in_full, masked, who

SHOWN = 50
EXAMPLE = "/testusers preset save demo-team +15550100 +15550101"


def listing(presets: Sequence[Preset], *, sees_identities: bool) -> Message:
    """All presets, with the first few people of each."""
    if not presets:
        line = f"There are no presets yet. Save one: {text.code(EXAMPLE)}"
        return Message(line, (block_kit.section(line),))
    show = in_full if sees_identities else masked
    title = f"*{text.count(len(presets), 'preset')}*, to use as `@name` in `add` and `remove`"
    lines = [
        f"• {_name(one.name)} ({how_many(len(one.identities))}): {brief(one.identities, show)}"
        f" · saved by {who(one.saved_by)} {text.time(one.saved_at)}"
        for one in presets[:SHOWN]
    ]
    more = [f"And {len(presets) - SHOWN} more."] if len(presets) > SHOWN else []
    shown = [title, *lines, *more]
    return Message("\n".join(shown), block_kit.sections(shown))


def saved(name: str, identities: Sequence[str], before: Preset | None) -> Message:
    """What a preset stands for now, and that it stood for something else."""
    replaced = f" It was {brief(before.identities)} before." if before else ""
    return _line(f"Saved: {_name(name)} stands for {brief(identities)}.{replaced}")


def deleted(preset: Preset) -> Message:
    """What the preset stood for."""
    return _line(f"Deleted {_name(preset.name)}. It stood for {brief(preset.identities)}.")


def _name(name: str) -> str:
    return text.code(f"@{name}", 60)


def _line(markup: str) -> Message:
    return Message(markup, (block_kit.section(markup),))
