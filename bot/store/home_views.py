"""Home tabs: who has one open, what it showed last, and the jobs that bring it up to date."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Select,
    String,
    bindparam,
    case,
    exists,
    literal,
    null,
    select,
    type_coerce,
    update,
)
from sqlalchemy.sql.dml import ReturningInsert

from bot.dataclass import dataclass
from bot.model.home import BETWEEN, OPEN_FOR
from bot.store import jobs
from bot.store.engine import Transaction
from bot.store.inserts import in_few_sizes, insert_into
from bot.store.pruning import remove_some
from bot.store.tables import home_views
from bot.store.types import UtcDateTime, to_microseconds

PUBLISH, SPREAD = "home", "homes"
KNOWN_BY_PUBLISHING = ("published_at", "hash", "fingerprint", "unsure_until")
MICROSECOND = timedelta(microseconds=1)


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


async def opened(tx: Transaction, is_empty: Mapping[str, bool]) -> list[datetime]:
    """Note that people opened their Home tabs, and have them published; return when that is due.

    Where somebody's `is_empty`, nothing that was published before stands there any more.
    """
    insert = insert_into(home_views, is_postgres=tx.is_postgres)
    is_gone = bindparam("is_gone", type_=Boolean)
    statement = insert.on_conflict_do_update(
        index_elements=[home_views.c.slack_user_id],
        set_={
            "opened_at": insert.excluded.opened_at,
            "hash": case((is_gone, null()), else_=home_views.c.hash),
            "fingerprint": case((is_gone, ""), else_=home_views.c.fingerprint),
        },
    )
    now = await tx.now()
    rows = [
        {"slack_user_id": one, "opened_at": now, "fingerprint": "", "is_gone": is_empty[one]}
        for one in sorted(is_empty)
    ]
    await tx.connection.execute(statement, rows)
    return await _put_jobs(tx, _publishing_some(tx.is_postgres), people=in_few_sizes(is_empty))


async def load(tx: Transaction, people: Collection[str]) -> dict[str, HomeView]:
    """Return people's Home tabs; of who never opened it there is none."""
    rows = await tx.connection.execute(_some(), {"people": in_few_sizes(people)})
    return {row.slack_user_id: HomeView(**row._mapping) for row in rows}  # noqa: SLF001 - SQLAlchemy's documented name


async def published(tx: Transaction, views: Sequence[HomeView]) -> None:
    """Write what is known after publishing; when a tab was opened stays as it is."""
    statement = (
        update(home_views)
        .where(home_views.c.slack_user_id == bindparam("whose"))
        .values({name: bindparam(f"new_{name}") for name in KNOWN_BY_PUBLISHING})
    )
    rows = [
        {"whose": view.slack_user_id}
        | {f"new_{name}": getattr(view, name) for name in KNOWN_BY_PUBLISHING}
        for view in sorted(views, key=lambda view: view.slack_user_id)
    ]
    await tx.connection.execute(statement, rows)


async def mark_changed(tx: Transaction, subject: str) -> None:
    """Have every open Home tab brought up to date after this transaction; nothing, if none is.

    One job for each subject, whose rows are locked already: a job for every tab would have to wait
    for other transactions, and they for it.
    """
    now = await tx.now()
    its = {"its_key": f"{SPREAD}:{subject}", "its_subject": subject, "now": now}
    await jobs.put_selected(tx, _spreading(tx.is_postgres), {**its, "open_since": now - OPEN_FOR})


async def mark_all(tx: Transaction) -> list[datetime]:
    """Have every open Home tab brought up to date: one job each; return when they are due."""
    open_since = await tx.now() - OPEN_FOR
    return await _put_jobs(tx, _publishing_open(tx.is_postgres), open_since=open_since)


async def _put_jobs(
    tx: Transaction, publishing: ReturningInsert[datetime], **whose: object
) -> list[datetime]:
    now = to_microseconds(await tx.now())
    return await jobs.put_selected(tx, publishing, {**whose, "microseconds": now})


# Made once: to make a statement takes longer than to execute it.
@cache
def _some() -> Select[Any]:
    return select(home_views).where(_is_of_some())


def _is_of_some() -> ColumnElement[bool]:
    return home_views.c.slack_user_id.in_(bindparam("people", expanding=True))


def _is_open() -> ColumnElement[bool]:
    return home_views.c.opened_at > bindparam("open_since")


@cache
def _spreading(is_postgres: bool) -> ReturningInsert[datetime]:  # noqa: FBT001
    is_any_open = exists(select(home_views.c.slack_user_id).where(_is_open()))
    key, subject = (bindparam(name, type_=String) for name in ("its_key", "its_subject"))
    job = select(key, subject, bindparam("now", type_=UtcDateTime)).where(is_any_open)
    return jobs.putting_selected(SPREAD, job, is_postgres=is_postgres)


@cache
def _publishing_some(is_postgres: bool) -> ReturningInsert[datetime]:  # noqa: FBT001
    return _publishing(_is_of_some(), is_postgres=is_postgres)


@cache
def _publishing_open(is_postgres: bool) -> ReturningInsert[datetime]:  # noqa: FBT001
    return _publishing(_is_open(), is_postgres=is_postgres)


def _publishing(whose: ColumnElement[bool], *, is_postgres: bool) -> ReturningInsert[datetime]:
    """A job for each of these tabs, due as soon as it may be published again."""
    key = literal(f"{PUBLISH}:") + home_views.c.slack_user_id
    now = bindparam("microseconds", type_=BigInteger)
    may_be = type_coerce(home_views.c.published_at, BigInteger) + BETWEEN // MICROSECOND
    due_at = type_coerce(case((may_be > now, may_be), else_=now), UtcDateTime)
    tabs = select(key, home_views.c.slack_user_id, due_at).where(whose).order_by(key)
    return jobs.putting_selected(PUBLISH, tabs, is_postgres=is_postgres)


async def forget(tx: Transaction, before: datetime) -> int:
    """Remove some Home tabs that were opened before a time; return how many."""
    return await remove_some(tx, home_views, home_views.c.opened_at < before)
