"""Database queries for flows' lists."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, select

from bot.flows.rules import FlowList
from bot.flows.tables import flow_lists
from bot.store.engine import Transaction
from bot.store.tables import UtcDateTime

# The start of the name that stands for a flow. Its key follows.
FLOW = "flow:"
OF_FLOW = flow_lists.c.flow_key == bindparam("its_flow")
# The last list at or before a time.
_EARLIER = flow_lists.alias()
LAST_BEFORE = (
    select(func.max(_EARLIER.c.id))
    .where(
        _EARLIER.c.flow_key == bindparam("its_flow"),
        _EARLIER.c.at <= bindparam("since", type_=UtcDateTime),
    )
    .scalar_subquery()
)
_FROM = (
    select(flow_lists)
    .where(OF_FLOW, flow_lists.c.id >= bindparam("first"))
    .order_by(flow_lists.c.id)
)
_LATEST = select(flow_lists).where(OF_FLOW).order_by(flow_lists.c.id.desc()).limit(1)
_ADD = flow_lists.insert().inline()
_ADD_FOR_ID = flow_lists.insert().returning(flow_lists.c.id)


async def lock_flow(tx: Transaction, flow_key: str, *before: str) -> None:
    """Let no other transaction change this flow's lists and requests until this one ends.

    The names in `before` are serialised first.
    """
    await tx.serialise(*before, f"{FLOW}{flow_key}")


async def lists_from(tx: Transaction, flow_key: str, list_id: int) -> list[FlowList]:
    """Return a flow's lists from the one with this ID to the latest."""
    rows = await tx.execute(_FROM, {"its_flow": flow_key, "first": list_id})
    return [list_of(row) for row in rows]


def list_of(row: Any) -> FlowList:  # noqa: ANN401 - a row of the table
    """Return a row's list."""
    return FlowList(row.id, row.at, tuple(row.identities), row.is_own)


async def add_list(tx: Transaction, flow_key: str, identities: Sequence[str]) -> FlowList:
    """Store a flow's list that was read, and return it. The caller has called `lock_flow`."""
    row = _row(flow_key, await tx.now(), identities, is_own=False)
    list_id = (await tx.execute(_ADD_FOR_ID, row)).scalar_one()
    return FlowList(list_id, row["at"], tuple(identities), is_own=False)


async def note_list(
    tx: Transaction, flow_key: str, identities: Sequence[str], *, is_own: bool
) -> None:
    """Store a flow's list, as `add_list` does. If `is_own` is True, the bot has sent it."""
    await tx.write(_ADD, _row(flow_key, await tx.now(), identities, is_own=is_own))


def _row(flow_key: str, at: datetime, identities: Sequence[str], *, is_own: bool) -> dict[str, Any]:
    return {
        "flow_key": flow_key,
        "at": at,
        "size": len(identities),
        "identities": list(identities),
        "is_own": is_own,
    }


async def see_list(
    tx: Transaction, flow_key: str, identities: Sequence[str], known_id: int
) -> FlowList:
    """Return the flow's latest list, after storing the one that was just read if it's newer.

    `known_id` is the ID of the latest list before the service was asked. If there's another one by
    now, nobody can tell which of the two is newer, so the list that was read isn't stored. The
    caller has called `lock_flow`.
    """
    latest = (await tx.execute(_LATEST, {"its_flow": flow_key})).first()
    if latest and (latest.id != known_id or latest.identities == list(identities)):
        return list_of(latest)
    return await add_list(tx, flow_key, identities)
