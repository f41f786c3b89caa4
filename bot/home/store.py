"""The people who opened the Home tab, and the jobs that publish their tabs."""

from datetime import datetime, timedelta

from sqlalchemy import exists, select, update

from bot.home.tables import home_views
from bot.store import jobs
from bot.store.engine import Transaction, insert_into, remove_some
from bot.store.jobs import Job

PUBLISH = "home"
# Contract, section 11: a tab is kept up to date for 24 hours after it was opened.
OPEN_FOR = timedelta(hours=24)
# The digest of a tab whose content isn't known.
UNKNOWN = ""


async def note_opened(tx: Transaction, slack_user_id: str) -> None:
    """Record that a person opened their Home tab, and schedule a job that publishes it."""
    now = await tx.now()
    insert = insert_into(home_views).values(
        slack_user_id=slack_user_id, opened_at=now, digest=UNKNOWN
    )
    key = [home_views.c.slack_user_id]
    opened = insert.on_conflict_do_update(index_elements=key, set_={"opened_at": now})
    await tx.connection.execute(opened)
    await jobs.put(tx, await _job(tx, slack_user_id))


async def refresh(tx: Transaction, slack_user_id: str) -> None:
    """If the person opened the tab in the last 24 hours, schedule a job that publishes it."""
    is_open = home_views.c.opened_at > await tx.now() - OPEN_FOR
    is_theirs = home_views.c.slack_user_id == slack_user_id
    await jobs.put_if(tx, await _job(tx, slack_user_id), exists().where(is_theirs, is_open))


async def open_views(tx: Transaction) -> list[tuple[str, str]]:
    """Return the user ID and the digest of each open tab, the least recently published first."""
    query = (
        select(home_views.c.slack_user_id, home_views.c.digest)
        .where(home_views.c.opened_at > await tx.now() - OPEN_FOR)
        .order_by(home_views.c.published_at.nulls_first(), home_views.c.slack_user_id)
    )
    return [(row.slack_user_id, row.digest) for row in await tx.connection.execute(query)]


async def note_published(tx: Transaction, slack_user_id: str, digest: str) -> None:
    """Record the content that Slack has accepted for a tab."""
    shown = {"digest": digest, "published_at": await tx.now()}
    is_theirs = home_views.c.slack_user_id == slack_user_id
    await tx.connection.execute(update(home_views).where(is_theirs).values(shown))


async def forget(tx: Transaction, before: datetime) -> int:
    """Delete a batch of Home tabs last opened before `before`, and return the number deleted."""
    return await remove_some(tx, home_views, home_views.c.opened_at < before)


async def _job(tx: Transaction, slack_user_id: str) -> Job:
    return Job(f"{PUBLISH}:{slack_user_id}", PUBLISH, slack_user_id, await tx.now())
