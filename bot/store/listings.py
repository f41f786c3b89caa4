"""The last good listing of each data center, so that names are known during a block.

Ten thousand organizations are seven megabytes: writing and reading them takes longer than anybody's
acknowledgement may wait, so `written` and `read` are for a thread.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

from pydantic_core import from_json
from sqlalchemy import Select, Text, cast, select, update

from bot.dataclass import dataclass
from bot.model.organizations.directory import Listing
from bot.model.organizations.organization import Organization, read_in_portions, write_in_portions
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.tables import listings
from bot.store.types import JsonText


@dataclass(frozen=True)
class Version:
    """Which listing of a data center is stored, and when it was last seen to be so."""

    fetched_at: datetime
    digest: str


@dataclass(frozen=True)
class StoredListing:
    """A listing as it stands in the database; `organizations` is JSON."""

    data_center: str
    version: Version
    organizations: str


@dataclass(frozen=True)
class Written:
    """Organizations as they are stored, and their digest."""

    organizations: JsonText
    digest: str


def written(organizations: Sequence[Organization]) -> Written:
    """Return the organizations as they are stored."""
    json = write_in_portions(organizations)
    return Written(JsonText(json), sha256(json.encode()).hexdigest())


def read(stored: StoredListing) -> Listing:
    """Return the listing, ready for look-ups."""
    organizations = tuple(read_in_portions(from_json(stored.organizations)))
    version = stored.version
    size = len(stored.organizations)
    listing = Listing(stored.data_center, organizations, version.fetched_at, version.digest, size)
    listing.contents  # noqa: B018 - worked out when it is first asked for
    return listing


async def confirm(tx: Transaction, data_center: str, digest: str) -> bool:
    """Note that the listing of that digest is the newest still; False when another is stored."""
    confirmed = await tx.connection.execute(
        update(listings)
        .where(listings.c.data_center == data_center, listings.c.digest == digest)
        .values(fetched_at=await tx.now())
    )
    return confirmed.rowcount == 1


async def save(tx: Transaction, data_center: str, new: Written) -> None:
    """Keep them, as of now, as their data center's last good listing."""
    insert = insert_into(listings, is_postgres=tx.is_postgres)
    values = {
        "fetched_at": await tx.now(),
        "digest": new.digest,
        "organizations": new.organizations,
    }
    statement = insert.values(data_center=data_center, **values)
    await tx.connection.execute(
        statement.on_conflict_do_update(
            index_elements=[listings.c.data_center],
            set_={name: statement.excluded[name] for name in values},
        )
    )


async def load(tx: Transaction, data_center: str) -> StoredListing | None:
    """Return the data center's last good listing, or None."""
    # As text: what reads JSON by itself does so where everybody waits.
    text = cast(listings.c.organizations, Text)
    query = select(listings.c.fetched_at, listings.c.digest, text)
    row = (await tx.connection.execute(query.where(listings.c.data_center == data_center))).first()
    return None if row is None else StoredListing(data_center, Version(row[0], row[1]), row[2])


async def versions(tx: Transaction) -> dict[str, Version]:
    """Return which listing of each data center is stored."""
    rows = await tx.connection.execute(_versions())
    return {row.data_center: Version(row.fetched_at, row.digest) for row in rows}


# Made once: to make a statement takes longer than to execute it.
@cache
def _versions() -> Select[Any]:
    return select(listings.c.data_center, listings.c.fetched_at, listings.c.digest)
