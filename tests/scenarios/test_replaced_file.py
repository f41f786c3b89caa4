"""A running bot accepts no requests or clicks after its database file is removed or replaced."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.scenarios.test_scopes import readiness
from tests.support.world import ADA, ADAM, OTTO, running_world


def put_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "take_away",
    [Path.unlink, lambda path: path.rename(path.with_name("moved.db")), put_folder],
    ids=["removed", "moved", "a folder"],
)
async def test_nothing_is_accepted_without_the_database_file(
    sqlite_url: str, take_away: Callable[[Path], object]
) -> None:
    async with running_world(sqlite_url, inventory_watch="off") as world:
        card = await world.asked("add welcome +15550001")
        take_away(Path(sqlite_url.removeprefix("sqlite:///")))
        answer = await world.ask(OTTO, "/testusers", "add welcome +15550002")
        assert "was removed or replaced" in answer.all_text
        assert "nothing was saved" in (await world.click(ADA, card, "Approve")).all_text
        await world.slack.until(world.bot.health.troubles)
        assert await readiness(world) == "database"
        status = await world.ask(ADAM, "/gatehouse", "status")
        assert "Needs attention:* the database" in status.all_text
        assert world.cards() == [card]
        assert world.flow.history == []
