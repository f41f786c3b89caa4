"""The stored state of Home tabs, and the jobs that update the tabs."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import null, select, update

from bot.store import jobs
from bot.store.engine import Transaction, insert_into, remove_some
from bot.store.jobs import Job
from bot.store.tables import home_views

PUBLISH, SPREAD = "home", "homes"
# Contract, section 11: a tab is kept up to date for 24 hours after it is opened, and published at
# most once every three seconds.
OPEN_FOR = timedelta(hours=24)
BETWEEN = timedelta(seconds=3)


@dataclass(frozen=True)
class HomeView:
    """The stored state of a person's Home tab.

    `hash` is Slack's hash of the tab. `fingerprint` identifies the published content, or is "" if
    the content is unknown. Until `unsure_until`, a publish call with an unknown outcome might still
    take effect.
    """

    slack_user_id: str
    opened_at: datetime
    published_at: datetime | None = None
    hash: str | None = None
    fingerprint: str = ""
    unsure_until: datetime | None = None


async def opened(tx: Transaction, slack_user_id: str, *, is_empty: bool) -> None:
    """Record that a person opened their Home tab, and schedule a job that publishes it.

    If `is_empty` is True, the tab is blank, so also forget the content published earlier.
    """
    now = await tx.now()
    insert = insert_into(home_views)
    statement = insert.values(slack_user_id=slack_user_id, opened_at=now, fingerprint="")
    cleared = {"hash": null(), "fingerprint": ""} if is_empty else {}
    key, changed = [home_views.c.slack_user_id], {"opened_at": now, **cleared}
    await tx.connection.execute(statement.on_conflict_do_update(index_elements=key, set_=changed))
    view = await load(tx, slack_user_id)
    await _put_job(tx, slack_user_id, view.published_at if view else None)


async def load(tx: Transaction, slack_user_id: str) -> HomeView | None:
    """Return the stored state of a person's Home tab, or None if no state is stored."""
    query = select(home_views).where(home_views.c.slack_user_id == slack_user_id)
    row = (await tx.connection.execute(query)).first()
    return HomeView(**row._mapping) if row else None  # noqa: SLF001 - SQLAlchemy's documented name


async def published(tx: Transaction, view: HomeView) -> None:
    """Store the result of publishing a Home tab without changing its `opened_at` time."""
    changed = {name: value for name, value in vars(view).items() if name != "opened_at"}
    own = update(home_views).where(home_views.c.slack_user_id == view.slack_user_id)
    await tx.connection.execute(own.values(changed))


async def mark_changed(tx: Transaction, subject: str) -> None:
    """If any Home tabs are open, add one job that updates all of them.

    The caller must have locked `subject`. If this function added a job per tab, concurrent
    transactions would wait for each other.
    """
    now = await tx.now()
    query = select(home_views.c.slack_user_id).where(home_views.c.opened_at > now - OPEN_FOR)
    if (await tx.connection.execute(query.limit(1))).first():
        await jobs.put(tx, Job(f"{SPREAD}:{subject}", SPREAD, subject, now))


async def mark_all(tx: Transaction) -> None:
    """Add a separate update job for each open Home tab."""
    open_since = await tx.now() - OPEN_FOR
    query = select(home_views.c.slack_user_id, home_views.c.published_at)
    query = query.where(home_views.c.opened_at > open_since).order_by(home_views.c.slack_user_id)
    for row in (await tx.connection.execute(query)).all():
        await _put_job(tx, row.slack_user_id, row.published_at)


async def _put_job(tx: Transaction, slack_user_id: str, published_at: datetime | None) -> None:
    now = await tx.now()
    due_at = max(now, published_at + BETWEEN) if published_at else now
    await jobs.put(tx, Job(f"{PUBLISH}:{slack_user_id}", PUBLISH, slack_user_id, due_at))


async def forget(tx: Transaction, before: datetime) -> int:
    """Delete a batch of Home tabs last opened before `before`, and return the number deleted."""
    return await remove_some(tx, home_views, home_views.c.opened_at < before)
