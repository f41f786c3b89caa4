"""Presets, which people who may ask for changes save and delete; each change is audited."""

from collections.abc import Sequence

from bot.errors import Meant, NotFound
from bot.permissions import Permission, Person
from bot.spelling import closest
from bot.store.audit_entry import AuditEntry
from bot.testusers.rules.requests import Preset
from bot.testusers.setup import Setup, who
from bot.testusers.store import presets

NAMED = 10


async def every_preset(setup: Setup, person: Person) -> list[Preset]:
    """Return all presets by name.

    Raises:
        Refused: The person may not see this.
    """
    await setup.people.require(person, Permission.READ)
    async with setup.database.read_only() as tx:
        return await presets.every(tx)


async def names(setup: Setup) -> list[str]:
    """Return the names of all presets."""
    async with setup.database.read_only() as tx:
        return await presets.names(tx)


async def save_preset(
    setup: Setup, person: Person, name: str, identities: Sequence[str]
) -> Preset | None:
    """Save people under a name; return the people it had before.

    Raises:
        Refused: The person may not ask for changes.
    """
    await setup.people.require(person, Permission.REQUEST)
    async with setup.database.transaction() as tx:
        before = (await presets.load(tx, [name])).get(name)
        preset = Preset(name, tuple(identities), who(person), await tx.now())
        await presets.put(tx, preset)
        detail = {"before": before.identities if before else (), "after": preset.identities}
        entry = AuditEntry(person.slack_user_id, "preset.saved", name, detail)
        await setup.audit.append(tx, entry)
    return before


async def delete_preset(setup: Setup, person: Person, name: str) -> Preset:
    """Delete a preset and return it; requests that used it don't change.

    Raises:
        Refused: The person may not ask for changes.
        NotFound: The preset does not exist.
    """
    await setup.people.require(person, Permission.REQUEST)
    async with setup.database.transaction() as tx:
        preset = (await presets.load(tx, [name])).get(name)
        if preset is None or not await presets.drop(tx, name):
            raise unknown_preset(name, await presets.names(tx))
        detail = {"before": preset.identities}
        entry = AuditEntry(person.slack_user_id, "preset.deleted", name, detail)
        await setup.audit.append(tx, entry)
    return preset


def unknown_preset(name: str, names: Sequence[str], hint: str = "") -> NotFound:
    """Return the error for an unknown preset, with existing presets and the closest name."""
    close = closest(name, names)
    guess = f" Did you mean “@{close[0]}”?" if close else ""
    more = ", …" if len(names) > NAMED else ""
    known = f" (Presets: {', '.join(names[:NAMED])}{more})" if names else ""
    error = NotFound(f"There is no preset “@{name}”.{guess}{known}{hint}")
    return error.or_rather(*(Meant(name, preset) for preset in close))
