"""A bot that takes over the database of version 0.1.0 goes on where that one died."""

import time

import pytest
from sqlalchemy import text

from bot.ops.audit_cli import verify_audit
from bot.ops.clock import SystemClock
from bot.settings import read_settings
from bot.store.engine import Database
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack
from tests.support.version_0_1_0 import (
    CLICKED,
    DENIED,
    GRANTED,
    INCIDENT,
    PENDING,
    WELCOME,
    OldDatabase,
)
from tests.support.world import World, running_world

KEY = "the-key-of-the-audit-in-tests-32"


def button(text_: str, request: str) -> dict[str, object]:
    label = {"type": "plain_text", "text": text_}
    return {
        "type": "button",
        "action_id": f"testusers.{text_.lower()}",
        "text": label,
        "value": request,
    }


def old_message(slack: RunningSlack, channel: str, request: str = "") -> Message:
    """A card as the old version posted it, with the buttons that people see."""
    workspace = slack.workspace
    names = ("Approve", "Deny", "Cancel") if request else ()
    blocks = [{"type": "actions", "elements": [button(name, request) for name in names]}]
    post = Message(channel, workspace.next_ts(), workspace.bot_user_id, "as it was")
    post.blocks = blocks if names else []
    return workspace.post(post)


class Upgrade:
    """The old messages in Slack, the old database, and the new bot in between."""

    def __init__(self, url: str, key: str | None) -> None:
        self.url, self.key = url, key
        self.cards: dict[str, Message] = {}

    async def prepare(self, slack: RunningSlack) -> None:
        for name in (GRANTED, CLICKED, DENIED, PENDING):
            self.cards[name] = old_message(slack, "C0APPROVALS", name)
        self.cards[INCIDENT] = old_message(slack, "C0ALERTS")
        secret = slack.workspace.new_response_url("C0APPROVALS", "U0APPROVER", self.cards[CLICKED])
        stamps = {name: message.ts for name, message in self.cards.items()}
        reply_to = f"{slack.address}/response/{secret}"
        key = self.key.encode() if self.key else None
        database = Database(self.url, SystemClock())
        self.database = OldDatabase(time.time(), stamps, reply_to, key)
        async with database.migrating() as tx:
            await self.database.write(tx.connection)
        await database.close()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request) -> str:
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.mark.parametrize("key", [None, KEY], ids=["plain", "keyed"])
async def test_everything_goes_on_after_an_upgrade(url, key, capsys):
    upgrade, services = Upgrade(url, key), ServicesState()
    services.edit_flow(WELCOME, ["+15550100001", "+15550001"])
    settings = {"inventory_watch": "off"} | ({"audit_key": key} if key else {})
    async with running_world(url, services=services, prepare=upgrade.prepare, **settings) as world:
        await check_requests(world, upgrade.cards)
        await check_messages(world, upgrade.cards)
        async with world.bot.database.read_only() as tx:
            kept = await tx.connection.execute(text("SELECT hash FROM audit_entries"))
            hashes = {row.hash for row in kept}
        assert await verify_audit(read_settings(world.environment), None) == 0
    assert {row["hash"] for row in upgrade.database.audit} <= hashes
    assert len(hashes) > len(upgrade.database.audit)


async def check_requests(world: World, cards: dict[str, Message]) -> None:
    """The stored click is followed, the old card's button answers, the grant ends on time."""
    slack, flow = world.slack, world.services.state.flows[WELCOME]
    await slack.until(lambda: "+15550002" in flow.identities)
    await slack.until(lambda: "Applied" in cards[CLICKED].all_text)
    assert (await slack.click("U0APPROVER", cards[PENDING], "Approve")).status == 200
    await slack.until(lambda: "Applied" in cards[PENDING].all_text)
    await slack.until(lambda: "+15550001" not in flow.identities)
    await slack.until(lambda: "Access ended" in cards[GRANTED].all_text)
    assert flow.identities == ["+15550100001", "+15550002", "+15550005"]


async def check_messages(world: World, cards: dict[str, Message]) -> None:
    """What was not sent is sent once, what was posted is edited, the incident is cleared."""
    slack, workspace = world.slack, world.slack.workspace
    await slack.until(lambda: "Cleared" in cards[INCIDENT].all_text)

    def told(word: str) -> list[str]:
        return [one.all_text for one in workspace.dm("U0OPERATOR") if word in one.all_text]

    outcomes = ("not this week", "+15550002", "+15550005", "+15550001")
    await slack.until(lambda: all(told(word) for word in outcomes))
    old = {message.ts for message in cards.values()}
    (posted,) = [one for one in workspace.messages("C0APPROVALS") if one.ts not in old]
    assert "+15550004" in posted.all_text
    assert len(workspace.messages("C0ALERTS")) == 1
    assert [len(told(word)) for word in outcomes] == [1, 1, 1, 1]
