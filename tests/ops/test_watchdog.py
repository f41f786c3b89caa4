"""What has work and does not move is noticed, counted and named."""

import asyncio

from structlog.testing import capture_logs

from bot.tasks import Watchdog


async def test_loop_that_stands_still_is_told_once_and_named_until_it_moves():
    counted = []
    dog = Watchdog(lambda: counted.append(1))
    with capture_logs() as lines, dog.watch("a line", 0.01) as move:
        while not counted:
            await asyncio.wait([asyncio.ensure_future(asyncio.sleep(0.01))])
        assert [*dog.stuck.values()] == ["a line"]
        move()
        assert not dog.stuck
    assert [(line["event"], line["log_level"]) for line in lines[:1]] == [
        ("watchdog.stuck", "error")
    ]
    assert counted == [1]


async def test_loop_that_moves_is_let_alone():
    dog = Watchdog()
    with capture_logs() as lines, dog.watch("a line", 60.0) as move:
        move()
    assert not lines
    assert not dog.stuck
