"""Home tabs: who has one open, what it showed last, and the jobs that bring it up to date."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, delete, exists, literal, select, update

from bot.model.home import OPEN_FOR
from bot.store import jobs
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.tables import home_views

PUBLISH, SPREAD = "home", "homes"


@dataclass(frozen=True, slots=True)
class HomeView:
    """A person's Home tab.

    Attributes:
        slack_user_id: Whose.
        opened_at: When it was opened last.
        published_at: When it was published last, or that was tried; None: never.
        hash: Slack's name of what it shows, as far as is known.
        fingerprint: Of what it shows; "" where that is not known.
        unsure_until: A publish whose outcome is not known may arrive until then.
    """

    slack_user_id: str
    opened_at: datetime
    published_at: datetime | None = None
    hash: str | None = None
    fingerprint: str = ""
    unsure_until: datetime | None = None


async def opened(tx: Transaction, slack_user_id: str, *, is_empty: bool) -> None:
    """Note that somebody opened their Home tab, and have it published.

    Where it `is_empty`, nothing that was published before stands there any more.
    """
    insert = insert_into(home_views, is_postgres=tx.is_postgres)
    now = await tx.now()
    gone = {"hash": None, "fingerprint": ""} if is_empty else {}
    statement = insert.values(slack_user_id=slack_user_id, opened_at=now, fingerprint="")
    await tx.connection.execute(
        statement.on_conflict_do_update(
            index_elements=[home_views.c.slack_user_id], set_={"opened_at": now, **gone}
        )
    )
    job = jobs.Job(f"{PUBLISH}:{slack_user_id}", PUBLISH, slack_user_id, now)
    await jobs.put(tx, job)


async def load(tx: Transaction, slack_user_id: str) -> HomeView | None:
    """Return somebody's Home tab, or None when they never opened it."""
    query = select(home_views).where(home_views.c.slack_user_id == slack_user_id)
    row = (await tx.connection.execute(query)).first()
    return None if row is None else HomeView(**row._mapping)  # noqa: SLF001 - SQLAlchemy's documented name


async def published(tx: Transaction, view: HomeView) -> None:
    """Write what is known after a publish; when it was opened stays as it is."""
    values = {
        "published_at": view.published_at,
        "hash": view.hash,
        "fingerprint": view.fingerprint,
        "unsure_until": view.unsure_until,
    }
    mine = home_views.c.slack_user_id == view.slack_user_id
    await tx.connection.execute(update(home_views).where(mine).values(values))


async def mark_changed(tx: Transaction, subject: str) -> None:
    """Have every open Home tab brought up to date after this transaction; nothing, if none is.

    One job for each subject, whose rows are locked already: a job for every tab would have to wait
    for other transactions, and they for it.
    """
    key = f"{SPREAD}:{subject}"
    is_open = exists(select(home_views.c.slack_user_id).where(await _is_open(tx)))
    await jobs.put_selected(tx, SPREAD, select(literal(key), literal(subject)).where(is_open))


async def mark_all(tx: Transaction) -> None:
    """Have every open Home tab brought up to date: one job each."""
    key = literal(f"{PUBLISH}:") + home_views.c.slack_user_id
    query = select(key, home_views.c.slack_user_id).where(await _is_open(tx)).order_by(key)
    await jobs.put_selected(tx, PUBLISH, query)


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove Home tabs that were opened before a time; return how many."""
    old = delete(home_views).where(home_views.c.opened_at < before)
    return (await tx.connection.execute(old)).rowcount


async def _is_open(tx: Transaction) -> ColumnElement[bool]:
    return home_views.c.opened_at > await tx.now() - OPEN_FOR
