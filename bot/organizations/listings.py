"""Stores the last good listing of each data center, so that names are known during a block."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import Select, Text, cast, select, update

from bot.organizations.rules import Listing, Organization
from bot.store.engine import Transaction
from bot.store.statements import upsert
from bot.store.tables import listings
from bot.store.types import JsonText

ORGANIZATIONS = TypeAdapter(tuple[Organization, ...])


@dataclass(frozen=True)
class Version:
    """The digest of a stored listing, and when it was last confirmed."""

    fetched_at: datetime
    digest: str


@dataclass(frozen=True)
class Written:
    """Organizations as stored, and their digest."""

    organizations: JsonText
    digest: str


def written(organizations: Sequence[Organization]) -> Written:
    """Return the organizations as they are stored."""
    json = ORGANIZATIONS.dump_json(tuple(organizations))
    return Written(JsonText(json.decode()), sha256(json).hexdigest())


async def confirm(tx: Transaction, data_center: str, digest: str) -> bool:
    """Record that the listing is still current; return False if another digest is stored."""
    confirmed = await tx.connection.execute(
        update(listings)
        .where(listings.c.data_center == data_center, listings.c.digest == digest)
        .values(fetched_at=await tx.now())
    )
    return confirmed.rowcount == 1


async def save(tx: Transaction, data_center: str, new: Written) -> None:
    """Store the organizations as the data center's last good listing, dated now."""
    values = {
        "data_center": data_center,
        "fetched_at": await tx.now(),
        "digest": new.digest,
        "organizations": new.organizations,
    }
    await upsert(tx, listings, values)


async def load(tx: Transaction, data_center: str) -> Listing | None:
    """Return the data center's last good listing, or None."""
    text = cast(listings.c.organizations, Text)
    query = select(listings.c.fetched_at, listings.c.digest, text)
    row = (await tx.connection.execute(query.where(listings.c.data_center == data_center))).first()
    if row is None:
        return None
    fetched_at, digest, stored = row
    organizations = ORGANIZATIONS.validate_json(stored)
    return Listing(data_center, organizations, fetched_at, digest, len(stored))


async def versions(tx: Transaction) -> dict[str, Version]:
    """Return the version of each data center's stored listing."""
    rows = await tx.connection.execute(_versions())
    return {row.data_center: Version(row.fetched_at, row.digest) for row in rows}


# Cached, because building the statement takes longer than executing it.
@cache
def _versions() -> Select[Any]:
    return select(listings.c.data_center, listings.c.fetched_at, listings.c.digest)
