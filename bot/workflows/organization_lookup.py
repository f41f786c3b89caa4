"""Finding the organization that was typed, or those that were probably meant."""

import asyncio
from collections.abc import Callable

from bot.errors import Meant, NotFound
from bot.model.organizations.directory import Directory, Place

# Organizations offered instead of one that is not there.
MEANT = 3


async def look_up(
    directory: Directory, typed: str, how: Callable[[Directory, str], Place] = Directory.find
) -> Place:
    """Return the organization that was typed.

    Raises:
        NotFound: There is none; it offers those with the nearest names.
        Ambiguous: There are several.
    """
    try:
        return how(directory, typed)
    except NotFound as none:
        raise none.or_rather(*await nearest(directory, typed)) from None


async def nearest(directory: Directory, typed: str) -> list[Meant]:
    """Return the organizations with names near to what was typed, to be offered instead."""
    found = await asyncio.to_thread(directory.nearest, typed, MEANT)
    return [Meant(typed, place.key.path, place.label) for place in found]
