"""A bot that takes over the database of version 0.2.0 goes on where that version stopped."""

import json

import pytest
from sqlalchemy import text

from bot.audit.reading import verify_audit
from bot.serve import CannotStartError
from bot.settings import read_settings
from sandbox.services.state import ServicesState
from sandbox.slack.messages import Message
from sandbox.slack.server import RunningSlack
from tests.support import revision_0015
from tests.support.world import World, running_world

WELCOME, SURVEY = "FW00000000000000000000000000000001", "FW00000000000000000000000000000002"
ENDED, APPROVED, CLICKED, UNPOSTED, PENDING, REFUSED, SCHEDULED, ENDLESS = (
    f"+1555000{number}" for number in (1, 2, 3, 4, 5, 6, 7, 9)
)


class Upgrade:
    """The old messages in Slack, and the old database."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.cards: dict[str, Message] = {}

    async def prepare(self, slack: RunningSlack) -> None:
        await revision_0015.write(self.url)
        workspace = slack.workspace
        for user, key in (await revision_0015.cards(self.url)).items():
            channel = "C0APPROVALS" if user else "C0ALERTS"
            post = Message(channel, workspace.next_ts(), workspace.bot_user_id, "as it was")
            post.blocks = [{"type": "actions", "elements": [approve(key.partition(":")[2])]}]
            self.cards[user] = workspace.post(post)
            await revision_0015.move_card(self.url, key, post.ts)


def approve(request_id: str) -> dict[str, object]:
    label = {"type": "plain_text", "text": "Approve"}
    action = "testusers.approve"
    return {"type": "button", "action_id": action, "text": label, "value": request_id}


async def test_everything_goes_on_after_an_upgrade(empty_database_url, capsys, caplog):
    upgrade, services = Upgrade(empty_database_url), ServicesState()
    services.edit_flow(WELCOME, ["+15550100001", ENDED])
    services.edit_flow(SURVEY, [ENDLESS])
    settings = {"inventory_watch": "off", "audit_key": "the-key-of-the-audit-in-tests-32"}
    async with running_world(
        empty_database_url, services=services, prepare=upgrade.prepare, **settings
    ) as world:
        await check_requests(world, upgrade.cards)
        await check_messages(world, upgrade.cards)
        await check_audit(world)
    # Another test of the same process may have sent the log to the standard library.
    said = capsys.readouterr().out + caplog.text
    assert "AUDIT_KEY is no longer used" in said
    assert "job.broken" not in said


async def check_requests(world: World, cards: dict[str, Message]) -> None:
    """The stored click is followed, old buttons answer, approved work is done, access ends."""
    slack, flows = world.slack, world.services.state.flows
    assert (await slack.click("U0APPROVER", cards[PENDING], "Approve")).status == 200
    expected = {"+15550100001", APPROVED, CLICKED, PENDING}
    await slack.until(lambda: set(flows[WELCOME].identities) == expected)
    await slack.until(lambda: set(flows[SURVEY].identities) == {ENDLESS, REFUSED})
    for user in (CLICKED, PENDING, REFUSED):
        await slack.until(lambda user=user: "Applied" in cards[user].all_text)
    await slack.until(lambda: "Access ended" in cards[ENDED].all_text)
    assert ENDLESS in (await world.ask("U0OPERATOR", "/testusers", "list survey")).all_text
    assert "demo" in (await world.ask("U0OPERATOR", "/testusers", "presets")).all_text


async def check_messages(world: World, cards: dict[str, Message]) -> None:
    """What was not sent is sent once, what was posted is edited, the incident is cleared."""
    slack, workspace = world.slack, world.slack.workspace
    await slack.until(lambda: "Cleared" in cards[""].all_text)
    old = {message.ts for message in cards.values()}

    def posted() -> list[str]:
        new = [message for message in workspace.messages("C0APPROVALS") if message.ts not in old]
        return [item.all_text for item in new if item.thread_ts is None]

    await slack.until(lambda: len(posted()) == 2)
    assert sorted(UNPOSTED in item for item in posted()) == [False, True]
    assert sorted(APPROVED in item for item in posted()) == [False, True]
    async with world.bot.database.read_only() as tx:
        waiting = await tx.connection.scalars(text("SELECT state FROM requests ORDER BY state"))
        assert waiting.all() == ["applied"] * 6 + ["pending"] * 2


async def check_audit(world: World) -> None:
    """The old entries are kept, and the new chain names the old head."""
    assert await verify_audit(read_settings(world.environment), None) == 0
    async with world.bot.database.read_only() as tx:
        rows = (
            await tx.connection.execute(
                text("SELECT position, hash, action, detail FROM audit_entries ORDER BY position")
            )
        ).all()
    (began,) = [row for row in rows if row.action == "audit.chain_began"]
    detail = json.loads(began.detail)
    assert detail["old_entries"] == began.position - 1
    assert detail["old_head"] == rows[began.position - 2].hash
    assert [row.action for row in rows[: began.position]].count("request.created") == 7


@pytest.mark.parametrize("revision", ["0003", "0014"])
async def test_older_database_is_refused_with_the_way_to_upgrade(
    empty_sqlite_url, revision, capsys
):
    await revision_0015.write(empty_sqlite_url)
    await revision_0015.set_revision(empty_sqlite_url, revision)
    with pytest.raises(CannotStartError, match=r"Run version 0\.2\.0 on it once"):
        async with running_world(empty_sqlite_url):
            pass
