"""A screen reader gets what an answer shows: it reads the text and not the blocks."""

import pytest

from sandbox.services.faults import Fault, FaultKind
from sandbox.slack.messages import Message, texts
from tests.support.world import ADAM, OTTO

ASKED = [
    *[("/testusers", text) for text in ("list welcome", "history welcome", "requests")],
    *[("/testusers", text) for text in ("mine", "review", "presets", "help", "nonsense")],
    *[("/orgs", text) for text in ("", "northwind", "show 10234695", "show 20077314", "nobody")],
    *[("/ratelimits", text) for text in ("", "10234695", "check 10234695")],
    *[("/emailkey", text) for text in ("check", "templates")],
    *[("/gatehouse", text) for text in ("help", "whoami", "status", "audit")],
]


def unread(message: Message) -> list[str]:
    """Return the lines of a message's sections and footers that its text doesn't have."""
    blocks = [block for block in message.blocks if block["type"] in ("section", "context")]
    plain = [{**block, "accessory": {}} for block in blocks]
    lines = [line for text in texts(plain) for line in text.splitlines()]
    return [line for line in lines if bare(line) not in bare(message.text)]


def bare(text: str) -> str:
    return "".join(letter for letter in text if letter not in "*`>\u2060").strip()


@pytest.mark.parametrize(("command", "text"), ASKED)
async def test_an_answer_read_aloud_says_what_its_blocks_say(world, command, text):
    await world.applied("add welcome +15550142 for 2h because demo")
    await world.asked("add welcome ann@example.com because demo")
    await world.ask(OTTO, "/orgs")
    world.services.state.faults.add(Fault(FaultKind.CODE, "inventory", "eu"))
    world.services.state.limits.block(("com", "10234695"), 44)
    assert unread(await world.ask(ADAM, command, text)) == []


@pytest.mark.parametrize("text", ["list welcome", "history welcome", "requests", "review"])
async def test_a_page_read_aloud_says_which_it_is(world, text):
    world.flow.identities[:] = [f"+155502{number:02}" for number in range(17)]
    for number in range(6):
        await world.asked(f"add welcome +1555010{number}")
    answer = await world.ask(ADAM, "/testusers", text)
    assert "\nPage 1 of " in answer.text
    assert unread(answer) == []


async def test_a_shared_answer_read_aloud_says_who_shared_it(world):
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    await world.slack.click(OTTO, answer, "Share in channel")
    shared = await world.slack.until(lambda: world.slack.workspace.messages("C0GENERAL")[0])
    assert "Shared by Otto Operator" in shared.text
    assert unread(shared) == []
