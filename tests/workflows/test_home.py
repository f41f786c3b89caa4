"""Tests that a regular job keeps Home tabs up to date."""

from datetime import timedelta

import pytest

from bot.home import store as home_views
from bot.home.publishing import PUBLISHED_AT_ONCE, SWEEP_EVERY, Home
from bot.slack.messages import block_kit
from bot.store import jobs
from bot.store.jobs import Job
from tests.conftest import BOTH
from tests.support.testusers import World

PEOPLE = [f"U{number:03}" for number in range(PUBLISHED_AT_ONCE + 10)]


class RoleOrNot(Home):
    """Draws a Home tab that contains only the person's ID."""

    async def draw(self, slack_user_id):
        return {"type": "home", "blocks": [slack_user_id]}


async def due(database) -> list[Job]:
    async with database.transaction() as tx:
        return await jobs.claim(tx, "me", 99)


async def finish(database, done: list[Job]) -> None:
    async with database.transaction() as tx:
        for job in done:
            await jobs.finish(tx, "me", job, None)


@pytest.mark.parametrize("database_url", BOTH, indirect=True)
async def test_at_most_sixty_homes_a_minute_are_published_in_turn(database, clock):
    world = World(database, clock)
    home = RoleOrNot(database, clock, world.people, None, None, None, "C0APPROVALS")
    async with database.transaction() as tx:
        for user in PEOPLE:
            await home_views.note_opened(tx, user)
        await home.plan(tx)
        await home.plan(tx)
    everything = await due(database)
    assert [job.kind for job in everything].count("homes") == 1
    (sweep,) = [job for job in everything if job.kind == "homes"]
    await finish(database, everything)
    published = []
    for _ in range(3):
        assert await home.sweep(sweep, None) == sweep.due_at + SWEEP_EVERY
        found = await due(database)
        async with database.transaction() as tx:
            for job in found:
                view = await home.draw(job.subject)
                await home_views.note_published(tx, job.subject, block_kit.digest(view))
        await finish(database, found)
        published.append({job.subject for job in found})
        clock.advance(1)
    assert [len(users) for users in published] == [PUBLISHED_AT_ONCE, 10, 0]
    assert published[0] | published[1] == set(PEOPLE)


@pytest.mark.parametrize(("minutes", "is_kept"), [(24 * 60 - 1, True), (24 * 60 + 1, False)])
async def test_a_home_is_kept_up_to_date_for_24_hours(database, clock, minutes, is_kept):
    async with database.transaction() as tx:
        await home_views.note_opened(tx, "U1")
    await finish(database, await due(database))
    clock.advance(timedelta(minutes=minutes).total_seconds())
    async with database.transaction() as tx:
        await home_views.refresh(tx, "U1")
        assert bool(await home_views.open_views(tx)) == is_kept
    assert bool(await due(database)) == is_kept
