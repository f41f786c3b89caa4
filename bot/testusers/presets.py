"""Presets: named lists of people. Anyone who can request changes can save and delete presets."""

from collections.abc import Collection, Sequence
from dataclasses import asdict

from sqlalchemy import delete, select

from bot.errors import NotFound
from bot.flows.rules import plain
from bot.permissions import Permission, Person
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction
from bot.testusers.parse.command import ChangeRequest
from bot.testusers.parts import Parts
from bot.testusers.rules.requests import Preset, Who
from bot.testusers.tables import presets


async def saved_presets(tx: Transaction, names: Collection[str] | None = None) -> dict[str, Preset]:
    """Return the presets with these names, or all presets, keyed by name in alphabetical order."""
    query = select(presets).order_by(presets.c.name)
    if names is not None:
        query = query.where(presets.c.name.in_(names))
    return {
        row.name: Preset(row.name, tuple(row.identities), Who(**row.saved_by), row.saved_at)
        for row in await tx.execute(query)
    }


async def every_preset(bot: Parts) -> list[Preset]:
    """Return all presets in alphabetical order."""
    async with bot.database.read_only() as tx:
        return list((await saved_presets(tx)).values())


async def save_preset(bot: Parts, person: Person, name: str, identities: Sequence[str]) -> None:
    """Save a preset. It replaces an earlier one with this name."""
    await bot.people.require(person, Permission.REQUEST)
    by = Who.of(person)
    async with bot.database.transaction() as tx:
        before = await _held(tx, name)
        values = {"name": name, "identities": list(identities), "saved_by": asdict(by)}
        await tx.upsert(presets, {**values, "saved_at": await tx.now()})
        detail = {"before": before.identities if before else (), "after": identities}
        await audit.append(tx, AuditEntry(by.slack_user_id, "preset.saved", name, detail))


async def delete_preset(bot: Parts, person: Person, name: str) -> Preset:
    """Delete a preset and return it. Requests that used the preset keep their identities."""
    await bot.people.require(person, Permission.REQUEST)
    async with bot.database.transaction() as tx:
        preset = await _held(tx, name)
        if preset is None:
            raise _unknown_preset(name)
        await tx.write(delete(presets).where(presets.c.name == name))
        detail = {"before": preset.identities}
        await audit.append(tx, AuditEntry(person.slack_user_id, "preset.deleted", name, detail))
    return preset


async def _held(tx: Transaction, name: str) -> Preset | None:
    """Return the preset, if there is one, which nobody else changes in the meantime."""
    await tx.serialise(f"preset:{name}")
    return (await saved_presets(tx, [name])).get(name)


async def identities_of(bot: Parts, requested: ChangeRequest) -> tuple[str, ...]:
    """Return all requested identities, including those in the requested presets.

    Raises:
        NotFound: A preset doesn't exist.
    """
    if not requested.presets:
        return requested.identities
    async with bot.database.read_only() as tx:
        saved = await saved_presets(tx, requested.presets)
    identities = list(requested.identities)
    for name in requested.presets:
        if name not in saved:
            raise _unknown_preset(name, f" If “@{name}” is a test user, put it in quotes.")
        identities += saved[name].identities
    people = dict[str, str]()
    for identity in identities:
        people.setdefault(plain(identity), identity)
    return tuple(people.values())


def _unknown_preset(name: str, advice: str = "") -> NotFound:
    return NotFound(f"There's no preset “@{name}”. See /testusers presets.{advice}")
