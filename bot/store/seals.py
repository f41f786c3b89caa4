"""Signed rows: which columns of which tables decide, and which rows somebody else wrote."""

import hashlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from sqlalchemy import ColumnElement, Table, select, true, update

from bot.dataclass import dataclass
from bot.model.signatures import Seal
from bot.model.testusers.approval import OVER
from bot.store.engine import Transaction
from bot.store.tables import flow_posts, grants, jobs, requests
from bot.store.types import Unreadable

# Of a job what is to be done, not when: it is postponed and tried again without being put anew.
SIGNED: Mapping[Table, tuple[str, ...]] = {
    requests: tuple(column.name for column in requests.c if column.name != "signature"),
    grants: tuple(column.name for column in grants.c if column.name != "signature"),
    flow_posts: tuple(column.name for column in flow_posts.c if column.name != "signature"),
    jobs: ("key", "kind", "subject", "payload"),
}
# Jobs that show what is stored, and decide nothing: made by one statement for many people at once.
SHOWING_KINDS = frozenset({"home", "homes", "send"})
PORTION = 100
NOUNS: Mapping[Table, str] = {
    requests: "request",
    grants: "grant",
    flow_posts: "list to be sent",
    jobs: "job",
}


@dataclass(frozen=True, slots=True)
class EditedRow:
    """A row that the bot did not write as it stands: `noun` and `name` say which, to people.

    `mark` is another one whenever the row is edited again.
    """

    noun: str
    name: str
    mark: str


def signed(tx: Transaction, table: Table, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a row with their signature."""
    return {**values, "signature": tx.seal.sign(table.name, _signed_part(table, values))}


def is_genuine(tx: Transaction, table: Table, row: Any) -> bool:  # noqa: ANN401 - a row of a table
    """Return whether the row is as the bot wrote it."""
    return not tx.seal.is_set or _holds(tx.seal, table, row)


def is_readable(row: Any) -> bool:  # noqa: ANN401 - a row of a table
    """Return whether every column of the row is of its form."""
    return not any(isinstance(value, Unreadable) for value in row)


async def edited(tx: Transaction, *, all_requests: bool = True) -> list[EditedRow]:
    """Return every row that decides and that the bot did not write as it stands.

    Without `all_requests` those that are over are left out: nothing is done with them unasked. One
    that still has time, or that nobody decided, is none of them: it may have been made to look so.
    """
    if not tx.seal.is_set:
        return []
    is_open = requests.c.state.not_in(map(str, OVER)) | requests.c.decided_at.is_(None)
    live = is_open | (requests.c.expires_at > await tx.now())
    found: list[EditedRow] = []
    for table in SIGNED:
        where = live if table is requests and not all_requests else true()
        async for row in _rows(tx, table, where):
            is_shown_only = table is jobs and row.kind in SHOWING_KINDS
            if not is_shown_only and not is_genuine(tx, table, row):
                found.append(edited_row(table, row))
    return found


async def _rows(tx: Transaction, table: Table, where: ColumnElement[bool]) -> AsyncIterator[Any]:
    """Yield rows in portions: many of them hold nobody up."""
    order = tuple(table.primary_key)
    offset = 0
    while True:
        page = select(table).where(where).order_by(*order).limit(PORTION).offset(offset)
        rows = (await tx.connection.execute(page)).all()
        for row in rows:
            yield row
        if len(rows) < PORTION:
            return
        offset += PORTION


def edited_row(table: Table, row: Any) -> EditedRow:  # noqa: ANN401 - a row of a table
    """Return how an edited row is told of."""
    values = row._mapping  # noqa: SLF001 - SQLAlchemy's documented name
    keys = [str(values[column.name]) for column in table.primary_key]
    name = " ".join(keys)[:200]
    text = repr([values[name] for name in SIGNED[table]])
    return EditedRow(
        NOUNS[table], name, hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    )


async def sign_all(tx: Transaction, only: Seal | None = None) -> int:
    """Sign the rows that stand there now; return how many that were.

    With `only`, those that hold under that seal: a key is changed, and what was edited stays so.
    """
    count = 0
    for table in SIGNED:
        for row in (await tx.connection.execute(select(table))).all():
            values = row._mapping  # noqa: SLF001 - SQLAlchemy's documented name
            part = _signed_part(table, values)
            if only is not None and not _holds(only, table, row):
                continue
            this = [table.c[one.name] == values[one.name] for one in table.primary_key]
            signature = tx.seal.sign(table.name, part)
            await tx.connection.execute(update(table).where(*this).values(signature=signature))
            count += 1
    return count


def _holds(seal: Seal, table: Table, row: Any) -> bool:  # noqa: ANN401 - a row of a table
    values = row._mapping  # noqa: SLF001 - SQLAlchemy's documented name
    part = _signed_part(table, values)
    return is_readable(row) and seal.holds(table.name, part, values["signature"])


def _signed_part(table: Table, values: Any) -> dict[str, Any]:  # noqa: ANN401 - a mapping, or a row's
    return {name: values[name] for name in SIGNED[table]}
