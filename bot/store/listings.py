"""The last good listing of each data center, so that names are known during a block."""

from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.directory import Listing
from bot.model.organization import Organization
from bot.store.engine import Transaction
from bot.store.tables import listings


async def save(tx: Transaction, listing: Listing) -> None:
    """Keep the listing as its data center's last good one."""
    insert = postgresql.insert(listings) if tx.is_postgres else sqlite.insert(listings)
    values: dict[str, Any] = {
        "fetched_at": listing.fetched_at,
        "organizations": listing.organizations,
    }
    statement = insert.values(data_center=listing.data_center, **values)
    await tx.connection.execute(
        statement.on_conflict_do_update(index_elements=[listings.c.data_center], set_=values)
    )


async def load(tx: Transaction, data_center: str) -> Listing | None:
    """Return the data center's last good listing, or None."""
    query = select(listings).where(listings.c.data_center == data_center)
    row = (await tx.connection.execute(query)).first()
    if row is None:
        return None
    organizations = tuple(Organization.model_validate(one) for one in row.organizations)
    return Listing(data_center, organizations, row.fetched_at)


async def fetched_at(tx: Transaction, data_center: str) -> datetime | None:
    """Return when the data center's last good listing was made, or None."""
    query = select(listings.c.fetched_at).where(listings.c.data_center == data_center)
    return (await tx.connection.execute(query)).scalar()
