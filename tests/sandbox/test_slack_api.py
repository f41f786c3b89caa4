"""The stand-in Slack as the bot sees it: its Web API and its refusals."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from sandbox.manifest import read_manifest
from sandbox.slack.server import RunningSlack, running_slack
from sandbox.slack.workspace import DEFAULT_SCOPES, Workspace


@pytest.fixture
async def slack() -> AsyncIterator[RunningSlack]:
    more = ("chat:write.public", "im:write", "team:read")
    async with running_slack(Workspace(scopes=(*DEFAULT_SCOPES, *more))) as running:
        yield running


@pytest.fixture
async def client(slack: RunningSlack) -> AsyncIterator[AsyncWebClient]:
    async with aiohttp.ClientSession() as session:
        yield AsyncWebClient(
            slack.workspace.bot_token, slack.api_url, session=session, retry_handlers=[]
        )


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


async def refused(call: Any) -> str:
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])


async def test_arguments_come_by_query_by_json_and_by_form(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    assert (await client.users_info(user="U0VIEWER"))["user"]["real_name"] == "Vera Viewer"
    assert (await client.chat_postMessage(channel="C0ALERTS", text="json"))["ok"]
    async with aiohttp.ClientSession() as session:
        form = {"token": "xoxb-sandbox", "channel": "C0ALERTS", "text": "form"}
        form["blocks"] = json.dumps([section("inside")])
        async with session.post(slack.api_url + "chat.postMessage", data=form) as answer:
            assert (await answer.json())["ok"]
    said = [(m.text, m.all_text) for m in slack.workspace.messages("C0ALERTS")]
    assert said == [("json", "json"), ("form", "form\ninside")]


async def test_the_start_of_a_bot_is_told_its_team_and_scopes(client: AsyncWebClient) -> None:
    answer = await client.auth_test()
    assert answer["team_id"] == "T0GATEHOUSE"
    assert "chat:write" in answer.headers["X-OAuth-Scopes"].split(",")


async def test_a_wrong_token_is_refused(slack: RunningSlack, client: AsyncWebClient) -> None:
    client.token = "xoxb-other"
    assert await refused(client.auth_test()) == "invalid_auth"


async def test_people_groups_and_channels_tell_what_the_bot_asks(client: AsyncWebClient) -> None:
    stranger = (await client.users_info(user="U0STRANGER"))["user"]
    guest = (await client.users_info(user="U0GUEST"))["user"]
    members = await client.usergroups_users_list(usergroup="S0APPROVERS")
    approvals = (await client.conversations_info(channel="C0APPROVALS"))["channel"]
    assert stranger["team_id"] == "T0OTHER"
    assert guest["is_restricted"]
    assert members["users"] == ["U0APPROVER2"]
    assert approvals["is_private"]
    assert approvals["is_member"]
    assert await refused(client.usergroups_users_list(usergroup="S0NONE")) == "no_such_subteam"
    assert await refused(client.users_info(user="U0NONE")) == "user_not_found"


async def test_a_message_to_a_person_arrives_in_the_direct_messages(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    answer = await client.chat_postMessage(channel="U0OPERATOR", text="hello")
    opened = await client.conversations_open(users="U0OPERATOR")
    assert answer["channel"] == opened["channel"]["id"] == "D0OPERATOR"
    assert [m.text for m in slack.workspace.dm("U0OPERATOR")] == ["hello"]


async def test_the_same_client_message_id_posts_once(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    first = await client.chat_postMessage(channel="C0ALERTS", text="a", client_msg_id="1")
    second = await client.chat_postMessage(channel="C0ALERTS", text="a", client_msg_id="1")
    elsewhere = await client.chat_postMessage(channel="C0GENERAL", text="a", client_msg_id="1")
    assert first["ts"] == second["ts"] != elsewhere["ts"]
    assert len(slack.workspace.messages("C0ALERTS")) == 1


async def test_an_update_changes_the_message_in_place(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    posted = await client.chat_postMessage(channel="C0ALERTS", text="old", blocks=[section("old")])
    message = slack.workspace.messages("C0ALERTS")[0]
    await client.chat_update(channel="C0ALERTS", ts=posted["ts"], text="new")
    assert (message.text, message.blocks, message.is_edited) == ("new", [], True)


async def test_threads_ephemerals_and_deletions_are_kept_apart(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    parent = await client.chat_postMessage(channel="C0ALERTS", text="parent")
    await client.chat_postMessage(channel="C0ALERTS", text="reply", thread_ts=parent["ts"])
    await client.chat_postEphemeral(channel="C0ALERTS", user="U0VIEWER", text="psst")
    gone = await client.chat_postMessage(channel="C0ALERTS", text="gone")
    await client.chat_delete(channel="C0ALERTS", ts=gone["ts"])
    workspace = slack.workspace
    assert [m.text for m in workspace.messages("C0ALERTS")] == ["parent"]
    assert [m.text for m in workspace.thread("C0ALERTS", parent["ts"])] == ["reply"]
    assert [m.text for m in workspace.ephemerals("U0VIEWER")] == ["psst"]
    assert workspace.ephemerals("U0OPERATOR") == []


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"channel": "C0ALERTS", "text": ""}, "no_text"),
        ({"channel": "C0ALERTS", "blocks": [section("only blocks")]}, "no_text"),
        ({"channel": "C0ALERTS", "text": "x" * 40_001}, "msg_too_long"),
        ({"channel": "C0ALERTS", "text": "x", "blocks": [section("x" * 3001)]}, "invalid_blocks"),
        ({"channel": "C0NONE", "text": "x"}, "channel_not_found"),
    ],
)
@pytest.mark.filterwarnings("ignore:The top-level `text`:UserWarning")
async def test_a_message_is_refused_by_name(
    client: AsyncWebClient, message: dict[str, Any], error: str
) -> None:
    assert await refused(client.chat_postMessage(**message)) == error


async def test_a_channel_refuses_who_is_not_in_it(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    workspace = slack.workspace
    workspace.scopes = tuple(s for s in workspace.scopes if s != "chat:write.public")
    assert await refused(client.chat_postMessage(channel="C0GENERAL", text="x")) == "not_in_channel"
    workspace.channels["C0ALERTS"].is_archived = True
    assert await refused(client.chat_postMessage(channel="C0ALERTS", text="x")) == "is_archived"
    workspace.channels["C0APPROVALS"].members.discard(workspace.bot_user_id)
    call = client.chat_postMessage(channel="C0APPROVALS", text="x")
    assert await refused(call) == "channel_not_found"


def test_a_workspace_grants_what_the_manifest_asks_for() -> None:
    assert read_manifest().scopes == DEFAULT_SCOPES


async def test_a_missing_scope_is_named(slack: RunningSlack, client: AsyncWebClient) -> None:
    slack.workspace.scopes = ("commands",)
    with pytest.raises(SlackApiError) as caught:
        await client.chat_postMessage(channel="C0ALERTS", text="x")
    assert caught.value.response["needed"] == "chat:write"
    assert caught.value.response["provided"] == "commands"


async def test_messages_that_are_not_there_or_not_ones_own_stay(
    slack: RunningSlack, client: AsyncWebClient
) -> None:
    theirs = slack.say("U0VIEWER", "C0ALERTS", "mine")
    secret = await client.chat_postEphemeral(channel="C0ALERTS", user="U0VIEWER", text="psst")
    missing = client.chat_update(channel="C0ALERTS", ts="1.1", text="x")
    hidden = client.chat_update(channel="C0ALERTS", ts=secret["message_ts"], text="x")
    foreign = client.chat_update(channel="C0ALERTS", ts=theirs.ts, text="x")
    assert await refused(missing) == "message_not_found"
    assert await refused(hidden) == "message_not_found"
    assert await refused(foreign) == "cant_update_message"


async def test_look_ups_answer_as_slack_does(slack: RunningSlack, client: AsyncWebClient) -> None:
    posted = await client.chat_postMessage(channel="C0ALERTS", text="x")
    link = await client.chat_getPermalink(channel="C0ALERTS", message_ts=posted["ts"])
    assert link["permalink"].endswith("/C0ALERTS/p" + posted["ts"].replace(".", ""))
    assert (await client.team_info())["team"]["id"] == "T0GATEHOUSE"
    bot = (await client.bots_info(bot=slack.workspace.bot_id))["bot"]
    assert bot["user_id"] == slack.workspace.bot_user_id
    members = await client.conversations_members(channel="C0GENERAL")
    assert "U0GUEST" in members["members"]
    with_users = await client.usergroups_list(include_users=True)
    assert with_users["usergroups"][0]["users"] == ["U0APPROVER2"]
    assert "users" not in (await client.usergroups_list())["usergroups"][0]
    assert await refused(client.api_call("chat.unheard")) == "unknown_method"


async def test_an_ephemeral_message_is_for_somebody_in_the_channel(client: AsyncWebClient) -> None:
    call = client.chat_postEphemeral(channel="C0APPROVALS", user="U0GUEST", text="x")
    assert await refused(call) == "user_not_in_channel"


async def test_blocks_that_are_no_json_are_refused(slack: RunningSlack) -> None:
    async with aiohttp.ClientSession() as session:
        form = {"token": "xoxb-sandbox", "channel": "C0ALERTS", "text": "x", "blocks": "[{"}
        async with session.post(slack.api_url + "chat.postMessage", data=form) as answer:
            assert (await answer.json())["error"] == "invalid_blocks_format"


@pytest.mark.parametrize(
    ("site", "status"), [("cross-site", 403), ("same-site", 403), ("none", 200)]
)
async def test_image_on_another_site_posts_nothing(slack, site, status):
    url = f"{slack.api_url}chat.postMessage?token=xoxb-sandbox&channel=C0GENERAL&text=x"
    before = len(slack.workspace.messages("C0GENERAL"))
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Sec-Fetch-Site": site}) as answer,
    ):
        assert answer.status == status
    assert (len(slack.workspace.messages("C0GENERAL")) > before) is (status == 200)
