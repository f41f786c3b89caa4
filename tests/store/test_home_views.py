"""Home tabs: when each may be published again, and what is known of it."""

from dataclasses import replace
from datetime import timedelta

from bot.model.home import BETWEEN
from bot.store import home_views, jobs

ADA, OTTO, VERA = "U0APPROVER", "U0OPERATOR", "U0VIEWER"


async def opened(database, *people, is_empty=False):
    async with database.transaction() as tx:
        return await home_views.opened(tx, dict.fromkeys(people, is_empty))


async def views(database, *people):
    async with database.read_only() as tx:
        return await home_views.load(tx, people)


async def published(database, *people):
    known = await views(database, *people)
    async with database.transaction() as tx:
        now = await tx.now()
        shown = [
            replace(known[one], published_at=now, hash=f"hash of {one}", fingerprint=one)
            for one in people
        ]
        await home_views.published(tx, shown)


async def due(database):
    async with database.read_only() as tx:
        rows = await tx.connection.execute(jobs.jobs.select().order_by(jobs.jobs.c.key))
        return {row.key: row.due_at for row in rows}


async def test_tab_never_published_is_due_at_once(database, clock):
    assert await opened(database, OTTO, ADA) == [clock.now()] * 2
    assert await due(database) == dict.fromkeys(("home:U0APPROVER", "home:U0OPERATOR"), clock.now())


async def test_tab_is_due_when_it_may_be_published_again(database, clock):
    await opened(database, OTTO, ADA, VERA)
    await published(database, OTTO)
    may_be = clock.now() + BETWEEN
    clock.advance(1)
    assert await opened(database, OTTO) == [may_be]
    async with database.transaction() as tx:
        times = await home_views.mark_all(tx)
    assert sorted(times) == [clock.now(), clock.now(), may_be]
    clock.advance(2.5)
    assert await opened(database, OTTO) == [clock.now()]


async def test_what_many_tabs_show_is_written_at_once(database, clock):
    await opened(database, OTTO, ADA, VERA)
    await published(database, VERA, OTTO)
    known = await views(database, OTTO, ADA, VERA, "U0NOBODY")
    assert {one: view.hash for one, view in known.items()} == {
        OTTO: f"hash of {OTTO}",
        ADA: None,
        VERA: f"hash of {VERA}",
    }
    assert known[VERA].published_at == clock.now()


async def test_opening_an_empty_tab_forgets_what_stood_there(database, clock):
    await opened(database, OTTO, ADA)
    await published(database, OTTO, ADA)
    clock.advance(60)
    async with database.transaction() as tx:
        await home_views.opened(tx, {OTTO: True, ADA: False})
    known = await views(database, OTTO, ADA)
    assert (known[OTTO].hash, known[OTTO].fingerprint) == (None, "")
    assert (known[ADA].hash, known[ADA].fingerprint) == (f"hash of {ADA}", ADA)
    assert known[OTTO].opened_at == known[ADA].opened_at == clock.now()
    assert known[OTTO].published_at == clock.now() - timedelta(seconds=60)
