"""The bot's past and next changes to flows' lists."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import bindparam, delete, func, select

from bot.store.engine import Transaction
from bot.store.statements import remove_some, upsert
from bot.store.tables import flow_changes, flow_posts
from bot.testusers.rules.applying import Post
from bot.testusers.rules.changes import Change
from bot.testusers.rules.requests import RecordedChange

_POST = TypeAdapter(Post)


# Made once: building a statement takes longer than executing it.
_POSTS = (
    select(flow_posts)
    .where(flow_posts.c.flow_key == bindparam("its_flow"))
    .order_by(flow_posts.c.sent_at, flow_posts.c.id)
)


async def post(tx: Transaction, flow_key: str) -> Post | None:
    """Return a flow's POST in doubt, if any."""
    rows = (await tx.connection.execute(_POSTS, {"its_flow": flow_key})).all()
    # An earlier version kept several; the last one counts.
    return _POST.validate_python(rows[-1].content) if rows else None


async def keep_post(tx: Transaction, flow_key: str, post: Post | None) -> None:
    """Store a flow's POST, about to be sent or sent; drop it if it is None, so not in doubt."""
    if post is None:
        await tx.connection.execute(delete(flow_posts).where(flow_posts.c.flow_key == flow_key))
        return
    content = _POST.dump_python(post, mode="json")
    stored = {"id": post.plan.id, "flow_key": flow_key, "sent_at": post.sent_at, "content": content}
    await upsert(tx, flow_posts, stored)


async def record_change(
    tx: Transaction,
    flow_key: str,
    change: Change,
    request_ids: Sequence[str],
    ended: Sequence[str],
) -> None:
    """Record a change to the list, with its requests and ended grants."""
    content = {
        "additions": change.additions,
        "removals": change.removals,
        "request_ids": request_ids,
        "ended": ended,
    }
    await tx.connection.execute(
        flow_changes.insert().values(flow_key=flow_key, at=await tx.now(), content=content)
    )


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove some changes from before a time; return their number. The latest change is kept."""
    last = select(func.max(flow_changes.c.id)).scalar_subquery()
    return await remove_some(
        tx, flow_changes, (flow_changes.c.at < before) & (flow_changes.c.id < last)
    )


async def latest_change_id(tx: Transaction, flow_key: str) -> int:
    """Return the id of a flow's latest change, 0 if there is none."""
    query = select(func.max(flow_changes.c.id)).where(flow_changes.c.flow_key == flow_key)
    return int(await tx.connection.scalar(query) or 0)


async def changes_after(tx: Transaction, flow_key: str, change_id: int) -> list[Change]:
    """Return the bot's changes to a flow's list after a change, oldest first."""
    later = (flow_changes.c.flow_key == flow_key) & (flow_changes.c.id > change_id)
    query = select(flow_changes).where(later).order_by(flow_changes.c.id)
    return [_recorded(row).change for row in await tx.connection.execute(query)]


async def latest_changes(tx: Transaction, flow_key: str, limit: int) -> Sequence[RecordedChange]:
    """Return a flow's latest changes, newest first."""
    query = select(flow_changes).where(flow_changes.c.flow_key == flow_key)
    rows = await tx.connection.execute(query.order_by(flow_changes.c.id.desc()).limit(limit))
    return [_recorded(row) for row in rows]


def _recorded(row: Any) -> RecordedChange:  # noqa: ANN401 - a row of the table
    stored = {name: tuple(identities) for name, identities in row.content.items()}
    change = Change(stored["additions"], stored["removals"])
    return RecordedChange(row.id, row.at, change, stored["request_ids"], stored["ended"])
