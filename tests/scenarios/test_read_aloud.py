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
