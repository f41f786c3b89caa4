"""The audit is append-only: whatever else is forgotten, every entry stays as it was written."""

from bot.app import gatehouse
from bot.settings import read_settings
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.retention import RETAIN_KIND

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "a-secret-of-enough-length",
    "ALERTS_CHANNEL": "C1",
    "APPROVALS_CHANNEL": "C2",
    "RETAIN_DAYS": "1",
}
DAY = 86_400


async def test_what_is_old_is_forgotten_but_no_entry_of_the_audit(sqlite_url, clock):
    settings = read_settings({**LEAST, "DATABASE_URL": sqlite_url})
    async with gatehouse(settings, clock=clock) as bot:
        async with bot.database.transaction() as tx:
            await audit.append(tx, AuditEntry("U1", "request.approved", "r1"))
            before = await audit.latest(tx, 10)
        clock.advance(500 * DAY)
        job = Job(RETAIN_KIND, RETAIN_KIND, RETAIN_KIND, clock.now())
        await bot.jobs._runners[RETAIN_KIND](job, Lease(bot.database, "one", job))
        async with bot.database.read_only() as tx:
            assert await audit.latest(tx, 10) == before
            assert (await audit.verify(tx)).is_intact
