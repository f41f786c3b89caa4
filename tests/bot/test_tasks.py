"""Running work is waited for, and not for ever."""

import asyncio

from bot.tasks import Tasks


async def test_what_runs_is_waited_for_and_what_it_starts_too():
    tasks, done = Tasks(), []

    async def second() -> None:
        await asyncio.sleep(0)
        done.append("second")

    async def first() -> None:
        await asyncio.sleep(0)
        tasks.start(second(), "second")
        done.append("first")

    tasks.start(first(), "first")
    await tasks.drain(5)
    assert done == ["first", "second"]


async def test_what_does_not_end_is_cancelled():
    tasks, ended = Tasks(), []

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    task = tasks.start(stuck(), "stuck")
    await asyncio.sleep(0)
    await tasks.drain(0.01)
    assert (task.cancelled(), ended) == (True, [True])
