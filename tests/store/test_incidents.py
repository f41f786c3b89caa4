"""Incidents as other versions of the bot have stored them."""

import pytest
from sqlalchemy import update

from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.blocks import IncidentDetail
from bot.quotas.rules.limits import Plan
from bot.quotas.rules.quota import Terms
from bot.quotas.store import accounts, incidents
from bot.store.tables import incidents as incidents_table

TERMS = Terms(lambda _key: Plan.FREE, timeout_seconds=10.0)
OWN = {"minute": [1, 100]}


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ({"own": OWN, "words": "no", "is_lowered": True}, {"words": "no", "is_lowered": True}),
        ({"own": OWN, "of_a_later_version": 1}, {}),
        ({}, {"own": {}}),
    ],
)
async def test_one_incident_that_says_less_keeps_no_other_from_being_read(database, stored, read):
    async with database.transaction() as tx:
        for name, refused_at in (("1", 10.0), ("2", 20.0)):
            account = await accounts.load_locked(tx, OrganizationKey("eu", name), TERMS)
            detail = IncidentDetail(OWN, words=name)
            await incidents.count_one(tx, account.id, 44, detail, refused_at, refused_at)
        first = incidents_table.c.id == 1
        await tx.connection.execute(update(incidents_table).where(first).values(detail=stored))
    async with database.read_only() as tx:
        one, other = await incidents.all_open(tx)
    assert one.detail == IncidentDetail(**{"own": OWN, **read})
    assert other.detail == IncidentDetail(OWN, words="2")
