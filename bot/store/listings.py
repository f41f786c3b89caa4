"""The last good listing of each data center, so that names are known during a block.

Ten thousand organizations are seven megabytes: writing and reading them takes longer than anybody's
acknowledgement may wait, so `written` and `read` are for a thread.
"""

from dataclasses import dataclass
from datetime import datetime

from pydantic_core import from_json
from sqlalchemy import Text, cast, select
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.directory import Listing
from bot.model.organization import Organization, read_in_portions, write_in_portions
from bot.store.engine import JsonText, Transaction
from bot.store.tables import listings


@dataclass(frozen=True)
class StoredListing:
    """A listing as it stands in the database; `organizations` is JSON."""

    data_center: str
    fetched_at: datetime
    organizations: str


def written(organizations: list[Organization]) -> JsonText:
    """Return the organizations as they are stored."""
    return JsonText(write_in_portions(organizations))


def read(stored: StoredListing) -> Listing:
    """Return the listing, ready for look-ups."""
    organizations = read_in_portions(from_json(stored.organizations))
    listing = Listing(stored.data_center, tuple(organizations), stored.fetched_at)
    listing.prepare()
    return listing


async def save(tx: Transaction, data_center: str, organizations: JsonText) -> None:
    """Keep them, as of now, as their data center's last good listing."""
    insert = postgresql.insert(listings) if tx.is_postgres else sqlite.insert(listings)
    statement = insert.values(
        data_center=data_center, fetched_at=await tx.now(), organizations=organizations
    )
    new = statement.excluded
    await tx.connection.execute(
        statement.on_conflict_do_update(
            index_elements=[listings.c.data_center],
            set_={"fetched_at": new.fetched_at, "organizations": new.organizations},
        )
    )


async def load(tx: Transaction, data_center: str) -> StoredListing | None:
    """Return the data center's last good listing, or None."""
    # As text: what reads JSON by itself does so where everybody waits.
    text = cast(listings.c.organizations, Text)
    query = select(listings.c.fetched_at, text).where(listings.c.data_center == data_center)
    row = (await tx.connection.execute(query)).first()
    return None if row is None else StoredListing(data_center, row[0], row[1])


async def fetched_at(tx: Transaction) -> dict[str, datetime]:
    """Return when each data center's last good listing was made."""
    rows = await tx.connection.execute(select(listings.c.data_center, listings.c.fetched_at))
    return {row.data_center: row.fetched_at for row in rows}
