"""At a start every open card is shown as the settings of now have it."""

from bot.approvals.rules import Act, State
from bot.testusers.rendering import RequestMessages
from tests.support.testusers import WELCOME, World


async def test_start_shows_open_cards_anew_and_no_others(world: World) -> None:
    pending = await world.ask("add welcome +1")
    failed = await world.ask("add welcome +2")
    applied = await world.ask("add welcome +3")
    denied = await world.ask("add welcome +4")
    await world.decide(Act.DENY, denied)
    await world.decide(Act.APPROVE, applied)
    await world.work()
    del world.service.lists[WELCOME]
    await world.decide(Act.APPROVE, failed)
    for _ in range(4):
        await world.pass_time(5)
    assert (await world.stored(failed)).state is State.FAILED
    world.messages.clear()
    async with world.database.transaction() as tx:
        await RequestMessages(world).plan(tx)
    await world.work()
    assert {message.subject for message in world.messages} == {pending.id, failed.id}
