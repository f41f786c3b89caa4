"""What the bot did, and is about to do, to the lists of flows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import delete, func, select
from sqlalchemy.dialects import postgresql, sqlite

from bot.model.applying import Plan
from bot.model.requests import RecordedChange
from bot.model.testusers import Change, difference
from bot.store.engine import Transaction
from bot.store.tables import flow_changes, flow_plans

_PLAN = TypeAdapter(Plan)


@dataclass(frozen=True, slots=True)
class _Content:
    """A recorded change as it is stored: the lists themselves are in the audit."""

    additions: tuple[str, ...]
    removals: tuple[str, ...]
    request_ids: tuple[str, ...]
    ended: tuple[str, ...]


_CONTENT = TypeAdapter(_Content)


async def put_plan(tx: Transaction, flow_key: str, plan: Plan) -> None:
    """Store what is about to be sent, in the place of what was."""
    insert = postgresql.insert(flow_plans) if tx.is_postgres else sqlite.insert(flow_plans)
    values = {
        "id": plan.id,
        "planned_at": await tx.now(),
        "plan": _PLAN.dump_python(plan, mode="json"),
    }
    await tx.connection.execute(
        insert.values(flow_key=flow_key, **values).on_conflict_do_update(
            index_elements=[flow_plans.c.flow_key], set_=values
        )
    )


async def plan_of(tx: Transaction, flow_key: str) -> Plan | None:
    """Return what was about to be sent and is not settled."""
    query = select(flow_plans.c.plan).where(flow_plans.c.flow_key == flow_key)
    found = await tx.connection.scalar(query)
    return None if found is None else _PLAN.validate_python(found)


async def drop_plan(tx: Transaction, flow_key: str, plan_id: str) -> bool:
    """Remove the plan; return whether it was still there, so that one process settles it."""
    mine = (flow_plans.c.flow_key == flow_key) & (flow_plans.c.id == plan_id)
    return bool((await tx.connection.execute(delete(flow_plans).where(mine))).rowcount == 1)


async def record_change(tx: Transaction, flow_key: str, plan: Plan) -> None:
    """Note that the bot replaced the list."""
    change = difference(plan.before, plan.after)
    content = _Content(
        change.additions,
        change.removals,
        tuple(step.request_id for step in plan.steps),
        tuple(ending.identity for ending in plan.endings),
    )
    await tx.connection.execute(
        flow_changes.insert().values(
            flow_key=flow_key,
            at=await tx.now(),
            content=_CONTENT.dump_python(content, mode="json"),
        )
    )


async def latest_change_id(tx: Transaction, flow_key: str) -> int:
    """Return the id of the newest change of a flow, 0 when there is none."""
    query = select(func.max(flow_changes.c.id)).where(flow_changes.c.flow_key == flow_key)
    return int(await tx.connection.scalar(query) or 0)


async def changes_after(tx: Transaction, flow_key: str, change_id: int) -> list[Change]:
    """Return what the bot did to the list of a flow after a change, the first first."""
    later = (flow_changes.c.flow_key == flow_key) & (flow_changes.c.id > change_id)
    query = select(flow_changes).where(later).order_by(flow_changes.c.id)
    return [_recorded(row).change for row in await tx.connection.execute(query)]


async def latest_changes(tx: Transaction, flow_key: str, limit: int) -> Sequence[RecordedChange]:
    """Return the newest changes of a flow, newest first."""
    query = select(flow_changes).where(flow_changes.c.flow_key == flow_key)
    rows = await tx.connection.execute(query.order_by(flow_changes.c.id.desc()).limit(limit))
    return [_recorded(row) for row in rows]


def _recorded(row: Any) -> RecordedChange:  # noqa: ANN401 - a row of the table
    content = _CONTENT.validate_python(row.content)
    change = Change(content.additions, content.removals)
    return RecordedChange(row.id, row.at, change, content.request_ids, content.ended)
