"""Presets: people under a name, which operators save and delete."""

from collections.abc import Collection
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import delete, select

from bot.store.engine import Transaction
from bot.store.statements import upsert
from bot.store.tables import presets
from bot.testusers.rules.requests import Preset, Who

_WHO = TypeAdapter(Who)


async def put(tx: Transaction, preset: Preset) -> None:
    """Store the preset, replacing an earlier preset with the same name."""
    values = {
        "name": preset.name,
        "identities": list(preset.identities),
        "saved_by": _WHO.dump_python(preset.saved_by, mode="json"),
        "saved_at": preset.saved_at,
    }
    await upsert(tx, presets, values)


async def drop(tx: Transaction, name: str) -> bool:
    """Remove the preset; return True if it existed."""
    result = await tx.connection.execute(delete(presets).where(presets.c.name == name))
    return bool(result.rowcount)


async def load(tx: Transaction, names: Collection[str]) -> dict[str, Preset]:
    """Return the existing presets with these names."""
    rows = await tx.connection.execute(select(presets).where(presets.c.name.in_(names)))
    return {row.name: _preset(row) for row in rows}


async def every(tx: Transaction) -> list[Preset]:
    """Return all presets by name."""
    rows = await tx.connection.execute(select(presets).order_by(presets.c.name))
    return [_preset(row) for row in rows]


async def names(tx: Transaction) -> list[str]:
    """Return the names of all presets, in order."""
    rows = await tx.connection.execute(select(presets.c.name).order_by(presets.c.name))
    return [row.name for row in rows]


def _preset(row: Any) -> Preset:  # noqa: ANN401 - a row of the table
    return Preset(row.name, tuple(row.identities), _WHO.validate_python(row.saved_by), row.saved_at)
