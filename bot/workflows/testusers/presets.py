"""Presets: saved and deleted by those who may ask, with an entry in the audit each time."""

from collections.abc import Sequence

from bot.errors import Meant, NotFound
from bot.model.audit import AuditEntry
from bot.model.spelling import closest
from bot.model.testusers.presets import Preset
from bot.permissions import Permission, Person
from bot.store import presets
from bot.workflows.testusers.setup import Setup, who

NAMED = 10


class Presets:
    """Lists, saves and deletes presets."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup

    async def every(self, person: Person) -> list[Preset]:
        """Return all presets by name.

        Raises:
            Refused: The person may not look.
        """
        await self._setup.people.require(person, Permission.READ)
        async with self._setup.database.read_only() as tx:
            return await presets.every(tx)

    async def names(self) -> list[str]:
        """Return the names of all presets, to choose from."""
        async with self._setup.database.read_only() as tx:
            return await presets.names(tx)

    async def save(self, person: Person, name: str, identities: Sequence[str]) -> Preset | None:
        """Save people under a name; return what it stood for before.

        Raises:
            Refused: The person may not.
        """
        await self._setup.people.require(person, Permission.REQUEST)
        async with self._setup.database.transaction() as tx:
            before = (await presets.load(tx, [name])).get(name)
            preset = Preset(name, tuple(identities), who(person), await tx.now())
            await presets.put(tx, preset)
            detail = {"before": before.identities if before else (), "after": preset.identities}
            entry = AuditEntry(person.slack_user_id, "preset.saved", name, detail)
            await self._setup.audit.append(tx, entry)
        return before

    async def delete(self, person: Person, name: str) -> Preset:
        """Delete a preset, and return it; requests that were made with it stay as they are.

        Raises:
            Refused: The person may not.
            NotFound: There is no such preset.
        """
        await self._setup.people.require(person, Permission.REQUEST)
        async with self._setup.database.transaction() as tx:
            preset = (await presets.load(tx, [name])).get(name)
            if preset is None or not await presets.drop(tx, name):
                raise unknown_preset(name, await presets.names(tx))
            detail = {"before": preset.identities}
            entry = AuditEntry(person.slack_user_id, "preset.deleted", name, detail)
            await self._setup.audit.append(tx, entry)
        return preset


def unknown_preset(name: str, names: Sequence[str], hint: str = "") -> NotFound:
    """Return the error that there is no such preset, with those that there are and the nearest."""
    close = closest(name, names)
    guess = f" Did you mean “@{close[0]}”?" if close else ""
    more = ", …" if len(names) > NAMED else ""
    known = f" (Presets: {', '.join(names[:NAMED])}{more})" if names else ""
    error = NotFound(f"There is no preset “@{name}”.{guess}{known}{hint}")
    return error.or_rather(*(Meant(name, one) for one in close))
