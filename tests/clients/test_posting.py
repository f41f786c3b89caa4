"""What Slack takes is sent as it is, and nothing else is written for it."""

from bot.errors import SlackRefused
from bot.slack import posting
from bot.slack.messages.message import Message

TABLE = {"type": "table", "rows": [[{"type": "raw_text", "text": "Northwind"}]]}
MESSAGE = Message("1 organization", [TABLE])


async def test_table_that_slack_takes_is_not_written_as_text_too(monkeypatch):
    written = []
    monkeypatch.setattr(posting, "_cell", lambda cell: written.append(cell) or "")
    sent = []

    async def send(message):
        sent.append(message)

    await posting.in_plain_if_need_be(MESSAGE, send)
    assert (sent, written) == ([MESSAGE], [])


async def test_table_that_slack_refuses_goes_as_text_and_then_not_at_all():
    sent = []

    async def send(message):
        sent.append([block["type"] for block in message.slack_blocks])
        if message.slack_blocks:
            raise SlackRefused("invalid_blocks")

    await posting.in_plain_if_need_be(MESSAGE, send)
    assert sent == [["table"], ["section"], []]
