"""From which entry of the audit its key counts: the first start with a key, and each rotation.

Such an entry holds the digest of everything before it. So what was written with another key, or
with none, is known to be as it was then, although it cannot be verified entry by entry any more.
"""

from typing import Any

from sqlalchemy import select

from bot.model.audit import BOT, AuditEntry
from bot.model.signatures import Seal
from bot.store import seals
from bot.store.audit import KEY_ENTRIES, AuditStore, Content
from bot.store.engine import Transaction
from bot.store.tables import audit_entries, audit_head

BEGAN, ROTATED = KEY_ENTRIES
# What the old key signs, so that a rotation is the act of who had it.
HANDOVER = b"gatehouse: this audit goes on with another key"


class WrongAuditKey(Exception):
    """The audit was written with another key than `AUDIT_KEY`, or it cannot be trusted."""


async def begin(tx: Transaction, audit: AuditStore) -> None:
    """Have the key count from now on, if it does not yet: at the first start with it.

    What waits from before is signed then, once; later an unsigned row is nobody's of ours.

    Raises:
        WrongAuditKey: Another key counts, or the audit does not hold so that nothing is signed.
    """
    await tx.connection.execute(select(audit_head).with_for_update())
    last = await _last_key_entry(tx)
    if last is not None and audit.is_own(last):
        return
    if last is not None:
        raise WrongAuditKey(
            "AUDIT_KEY is not the key that this audit was written with. Set that one;"
            " to change it, stop all processes and run: python -m bot audit rotate-key"
        )
    if not audit.has_key:
        return
    verdict = await audit.verify(tx)
    if not verdict.is_intact and not (await AuditStore(None).verify(tx)).is_intact:
        raise WrongAuditKey(
            "The audit does not hold with this AUDIT_KEY, so what waits was not signed:"
            f" {verdict.reason}. Set the key that it was written with, or use a new database."
        )
    count = await seals.sign_all(tx)
    detail = {"content": await _content(tx), "signed_rows": count}
    await audit.append(tx, AuditEntry(BOT, BEGAN, "audit", detail))


async def rotate(tx: Transaction, old: AuditStore, new: AuditStore, old_seal: Seal) -> int:
    """Have the new key count from now on; return how many waiting rows were signed anew.

    Args:
        tx: Of a database with the new key's seal.
        old: The chain with the present key.
        new: The chain with the next one.
        old_seal: What holds under it is signed anew; what was edited stays so.

    Raises:
        WrongAuditKey: The audit does not hold with the old key.
    """
    head = (await tx.connection.execute(select(audit_head).with_for_update())).one()
    verdict = await old.verify(tx)
    if not verdict.is_intact:
        raise WrongAuditKey(f"The audit does not hold with the present key: {verdict.reason}.")
    count = await seals.sign_all(tx, old_seal)
    detail = {
        "content": await _content(tx),
        "signed_rows": count,
        "old_key": old.sign(HANDOVER + head.hash.encode()),
    }
    await new.append(tx, AuditEntry(BOT, ROTATED, "audit", detail))
    return count


async def _last_key_entry(tx: Transaction) -> Any:  # noqa: ANN401 - a row of the table
    query = select(audit_entries).where(audit_entries.c.action.in_(KEY_ENTRIES))
    newest = query.order_by(audit_entries.c.position.desc()).limit(1)
    return (await tx.connection.execute(newest)).first()


async def _content(tx: Transaction) -> str:
    content = Content()
    async for row in AuditStore(None).all(tx):
        content.add(row)
    return content.digest
