"""Stores each data center's last successful listing, so that names are known during a block."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256

from pydantic import TypeAdapter
from sqlalchemy import Text, cast, select

from bot.organizations.rules import Listing, Organization
from bot.store.engine import Transaction
from bot.store.statements import upsert
from bot.store.tables import listings

ORGANIZATIONS = TypeAdapter(tuple[Organization, ...])


def listing_of(
    data_center: str, organizations: Sequence[Organization], fetched_at: datetime
) -> Listing:
    """Return a listing with the digest and size of its stored form."""
    stored = ORGANIZATIONS.dump_json(tuple(organizations))
    digest = sha256(stored).hexdigest()
    return Listing(data_center, tuple(organizations), fetched_at, digest, len(stored))


async def save(tx: Transaction, listing: Listing) -> None:
    """Store the data center's last successful listing."""
    values = {
        "data_center": listing.data_center,
        "fetched_at": listing.fetched_at,
        "digest": listing.digest,
        "organizations": ORGANIZATIONS.dump_python(listing.organizations, mode="json"),
    }
    await upsert(tx, listings, values)


async def load(tx: Transaction, data_center: str) -> Listing | None:
    """Return the data center's last successful listing, or None."""
    text = cast(listings.c.organizations, Text)
    query = select(listings.c.fetched_at, listings.c.digest, text)
    row = (await tx.connection.execute(query.where(listings.c.data_center == data_center))).first()
    if row is None:
        return None
    fetched_at, digest, stored = row
    organizations = ORGANIZATIONS.validate_json(stored)
    return Listing(data_center, organizations, fetched_at, digest, len(stored))


async def versions(tx: Transaction) -> dict[str, tuple[datetime, str]]:
    """Return the date and digest of each data center's stored listing."""
    query = select(listings.c.data_center, listings.c.fetched_at, listings.c.digest)
    rows = await tx.connection.execute(query)
    return {row.data_center: (row.fetched_at, row.digest) for row in rows}
