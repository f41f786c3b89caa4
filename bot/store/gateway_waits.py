"""The gateway's line: who waits for an organization, in any process, and what clients have used.

A row is a call that waits. It is renewed while its process lives, and counts for nothing a moment
after that has died.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, func, literal, select

from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.calls import caller_of, client_named
from bot.model.quotas.days import day_began_at, leaves_day_at
from bot.model.quotas.plans import Limits
from bot.model.quotas.quota import Full, Granted, Holdings, LimitKind, Terms
from bot.model.turns import (
    ClientCall,
    ClientTurn,
    ClientUse,
    LineStanding,
    OthersWait,
    Waiting,
    may_go,
    within_share,
)
from bot.store import accounts
from bot.store.accounts import Account, calls_held
from bot.store.engine import Transaction
from bot.store.inserts import insert_into
from bot.store.tables import gateway_waits as waits
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert

# A row of a process that died is out of everybody's way after this long.
LEASE_SECONDS = 2.0
# Rows that nobody renews any more are removed after this long.
KEEP_SECONDS = 10.0


async def load(
    tx: Transaction, key: OrganizationKey, terms: Terms, turn: ClientTurn
) -> tuple[Account, ClientUse]:
    """The organization as it is now and what a client holds of it, in one statement."""
    caller = caller_of(turn.client)
    row = await accounts.load_row(tx, key, terms, _with_use(tx.clock), caller=caller)
    if row is None:
        return await accounts.load_or_add(tx, key, terms), ClientUse(0, 0)
    use = ClientUse(row.its_minute, row.its_concurrent, bool(row.others_wait))
    return accounts.account_of(row, terms), use


@cache
def _with_use(clock: ColumnElement[float]) -> Select[Any]:
    its = calls.c.organization == organizations.c.id
    minute = (
        select(func.count())
        .where(its, calls.c.slot_free_at > clock, calls.c.slack_user_id == bindparam("caller"))
        .correlate(organizations)
    )
    line = (
        select(literal(1))
        .where(waits.c.organization == organizations.c.id, waits.c.until > clock)
        .correlate(organizations)
    )
    return accounts.one(clock).add_columns(
        minute.scalar_subquery().label("its_minute"),
        minute.where(calls.c.permit_until > clock).scalar_subquery().label("its_concurrent"),
        line.exists().label("others_wait"),
    )


async def decide(
    tx: Transaction,
    account: Account,
    turn: ClientTurn,
    use: ClientUse,
    granted: Granted,
    terms: Terms,
) -> Granted | Full | OthersWait:
    """Whether a call that fits beside all others is this client's to make now."""
    # All of its calls are among the organization's, so a share of 1 needs no count of the day.
    day = await count_day(tx, account, turn.client) if turn.share < 1 else 0
    full = within_share(limits_in_force(account), turn, use, day)
    if full is not None:
        return await _with_time(tx, account, turn, full, terms)
    return may_go(granted, turn, use)


def limits_in_force(account: Account) -> Limits:
    """The limits of now: of the day as reported, of calls at once one while the service stalls."""
    limits = replace(account.limits, day=account.day.limit)
    return replace(limits, concurrent=1) if account.in_use.is_stalled else limits


async def _with_time(
    tx: Transaction, account: Account, turn: ClientTurn, full: Full, terms: Terms
) -> Full:
    """The same with the time when the client's share has room again."""
    its_caller = caller_of(turn.client)
    if full.kind is LimitKind.DAY:
        its = (calls.c.organization == account.id) & (calls.c.slack_user_id == its_caller)
        query = select(calls.c.reserved_at).where(its, calls.c.reserved_at > account.day_began_at)
        nth = query.order_by(calls.c.reserved_at).offset(full.returning - 1).limit(1)
        reserved_at = (await tx.connection.execute(nth)).scalar()
        leaves_at = leaves_day_at(reserved_at or account.now, terms.hold_seconds)
        return replace(full, free_at=account.day.resets_at or leaves_at)
    mine = [call for call, caller in await calls_held(tx, account) if caller == its_caller]
    held = Holdings.of(mine, account.now)
    return replace(full, free_at=held.free_at(full.kind, full.allowed) or account.now)


async def count_day(tx: Transaction, account: Account, client: str) -> int:
    """A client's calls of the day."""
    its = (calls.c.organization == account.id) & (calls.c.slack_user_id == caller_of(client))
    query = select(func.count()).where(its, calls.c.reserved_at > account.day_began_at)
    return (await tx.connection.execute(query)).scalar_one()


async def use_by_client(tx: Transaction, account: Account, at: float) -> dict[str, list[int]]:
    """What each client had used then of the minute and of the day, by its name; most first."""
    began_at = day_began_at(account.reported, at)
    minute = await _count_by_client(tx, account, at, calls.c.slot_free_at > at)
    day = await _count_by_client(tx, account, at, calls.c.reserved_at > began_at)
    names = sorted({*minute, *day}, key=lambda name: (-minute[name], -day[name], name))
    return {name: [minute[name], day[name]] for name in names}


async def _count_by_client(
    tx: Transaction, account: Account, up_to: float, which: ColumnElement[bool]
) -> Counter[str]:
    who = calls.c.slack_user_id
    query = (
        select(who, func.count())
        .where(calls.c.organization == account.id, calls.c.reserved_at <= up_to, which)
        .where(who.startswith(caller_of("")))
        .group_by(who)
    )
    rows = await tx.connection.execute(query)
    return Counter({client_named(caller) or "": count for caller, count in rows})


async def count_held(tx: Transaction) -> int:
    """Slots of the minute that clients hold, of all organizations."""
    now = (await tx.now()).timestamp()
    query = (
        select(func.count())
        .select_from(calls)
        .where(calls.c.slot_free_at > now, calls.c.slack_user_id.startswith(caller_of("")))
    )
    return (await tx.connection.execute(query)).scalar_one()


async def join(tx: Transaction, key: OrganizationKey, client: str, now: float) -> int:
    """Take a place at the end of the line; return its ticket."""
    organization = await _id_of(tx, key)
    old = (waits.c.organization == organization) & (waits.c.until < now - KEEP_SECONDS)
    await tx.connection.execute(delete(waits).where(old))
    values = {"organization": organization, "client": client, "until": now + LEASE_SECONDS}
    taken = await tx.connection.execute(waits.insert().values(**values).returning(waits.c.ticket))
    return int(taken.scalar_one())


async def _id_of(tx: Transaction, key: OrganizationKey) -> int:
    its = {"data_center": key.data_center, "organization_id": key.organization_id}
    # Whoever waits has asked before, and so the organization has a row.
    return int((await tx.connection.execute(_id(), its)).scalar_one())


# Made once: it is asked for every half second while anybody waits.
@cache
def _id() -> Select[Any]:
    return select(organizations.c.id).where(
        organizations.c.data_center == bindparam("data_center"),
        organizations.c.organization_id == bindparam("organization_id"),
    )


async def renew(tx: Transaction, key: OrganizationKey, mine: Mapping[int, str], now: float) -> None:
    """Keep the places of this process for a while, by their tickets; put back what was removed."""
    organization = await _id_of(tx, key)
    rows = [
        {
            "ticket": ticket,
            "organization": organization,
            "client": client,
            "until": now + LEASE_SECONDS,
        }
        for ticket, client in mine.items()
    ]
    await tx.connection.execute(_kept(is_postgres=tx.is_postgres), rows)


@cache
def _kept(*, is_postgres: bool) -> "Insert":
    insert = insert_into(waits, is_postgres=is_postgres)
    until = {"until": insert.excluded.until}
    return insert.on_conflict_do_update(index_elements=[waits.c.ticket], set_=until)


async def leave(tx: Transaction, tickets: Collection[int]) -> None:
    """Give places up."""
    await tx.connection.execute(delete(waits).where(waits.c.ticket.in_(tickets)))


async def standing(tx: Transaction, account: Account) -> LineStanding:
    """What the line is judged by now."""
    its = {"its_organization": account.id, "now": account.now}
    waiting = [Waiting(*row) for row in await tx.connection.execute(_line(), its)]
    held = [
        ClientCall(call, client_named(caller)) for call, caller in await calls_held(tx, account)
    ]
    limits = limits_in_force(account)
    is_stalled = account.in_use.is_stalled
    return LineStanding(account.now, limits, account.day.used, held, waiting, is_stalled)


@cache
def _line() -> Select[Any]:
    return select(waits.c.ticket, waits.c.client).where(
        waits.c.organization == bindparam("its_organization"), waits.c.until > bindparam("now")
    )


async def count_waiting(tx: Transaction) -> int:
    """How many calls wait, in all processes."""
    now = (await tx.now()).timestamp()
    query = select(func.count()).select_from(waits).where(waits.c.until > now)
    return (await tx.connection.execute(query)).scalar_one()
