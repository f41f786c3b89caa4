"""Tests `Share in channel` end to end, from the signed request to the message in the channel."""

import asyncio

import pytest

from sandbox.people import Channel
from tests.support.world import ADA, OTTO, World

GENERAL = "C0GENERAL"
SHARE = "Share in channel"
SHAREABLE = [
    ("/orgs", "show 10234695"),
    ("/ratelimits", "10234695"),
    ("/testusers", "list welcome"),
    ("/gatehouse", "status"),
    ("/emailkey", "check templates"),
]


async def shared(world: World, before: int = 0):
    return await world.slack.until(lambda: world.slack.workspace.messages(GENERAL)[before])


async def share(world: World, user: str, command: str, text: str):
    before = len(world.slack.workspace.messages(GENERAL))
    answer = await world.ask(user, command, text)
    await world.slack.click(user, answer, SHARE)
    return answer, await shared(world, before)


@pytest.mark.parametrize(("command", "text"), SHAREABLE)
async def test_everyone_sees_a_shared_answer_without_buttons(world, command, text):
    answer, message = await share(world, ADA, command, text)
    assert message.only_for is None
    assert message.buttons == []
    assert "Shared by Ada Approver · <!date^" in message.all_text
    assert "<@" not in message.all_text
    assert message.text.split("\n")[0] == answer.text.split("\n")[0]


async def test_shared_list_masks_identities_and_drops_the_search(world):
    identities = ["+15550140001", "+15550140002"]
    world.flow.identities[:] = identities
    answer, message = await share(world, OTTO, "/testusers", f"list welcome {identities[0]}")
    assert identities[0] in answer.all_text
    assert not any(identity in message.all_text for identity in identities)
    assert all(identity[-4:] in message.all_text for identity in identities)


async def test_shared_answer_is_read_again_at_the_click(world):
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    world.flow.identities[:] = ["+15550109999"]
    await world.slack.click(OTTO, answer, SHARE)
    assert "9999" in (await shared(world)).all_text


async def test_answer_is_shared_once_by_two_clicks_at_the_same_moment(world):
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    clicks = [world.slack.click(OTTO, answer, SHARE) for _ in range(2)]
    await asyncio.gather(*clicks)
    said = await world.answer(OTTO, after=1)
    assert said.text == "This answer has already been shared."
    assert len(world.slack.workspace.messages(GENERAL)) == 1


async def test_answer_that_slack_refuses_can_be_shared_later(world):
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    world.slack.workspace.faults.status("response_url", 404, body="no_service", times=1)
    await world.click(OTTO, answer, SHARE)
    assert world.slack.workspace.messages(GENERAL) == []
    await world.slack.click(OTTO, answer, SHARE)
    assert await shared(world)


async def test_answer_that_slack_may_have_posted_is_not_posted_again(world):
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    world.slack.workspace.faults.status("response_url", 500, times=1)
    said = await world.click(OTTO, answer, SHARE)
    assert said.text.startswith("Slack didn't say whether it posted the answer.")
    said = await world.click(OTTO, answer, SHARE)
    assert said.text == "This answer has already been shared."
    assert world.slack.workspace.messages(GENERAL) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"is_ext_shared": True}, "shared with another workspace"),
        ({"is_org_shared": True}, "shared with another workspace"),
        ({"name": "mpdm-otto--ada-1"}, "only in channels"),
    ],
)
async def test_answer_is_not_shared_with_others(world, change, says):
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    for name, value in change.items():
        setattr(world.slack.workspace.channels[GENERAL], name, value)
    refused = await world.click(OTTO, answer, SHARE)
    assert says in refused.text
    assert world.slack.workspace.messages(GENERAL) == []


@pytest.mark.parametrize("fault", ["ratelimit", "status"])
async def test_channel_that_slack_does_not_tell_about_is_not_called_unseen(world, fault):
    faults = world.slack.workspace.faults
    if fault == "status":
        faults.status("conversations.info", 503, times=None)
    else:
        faults.ratelimit("conversations.info", retry_after=40, times=None)
    answer = await world.ask(OTTO, "/testusers", "list welcome")
    refusal = (await world.click(OTTO, answer, SHARE)).all_text
    assert "Add Gatehouse to the channel" not in refusal
    assert "Slack can't be reached" in refusal or "Please try again in 40 s" in refusal
    assert world.slack.workspace.messages(GENERAL) == []


async def test_answer_that_slack_limits_promises_no_other_try(world):
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    world.slack.workspace.faults.ratelimit("response_url", retry_after=5)
    refused = await world.click(OTTO, answer, SHARE)
    assert refused.text == "Slack is limiting Gatehouse's requests. Please try again in 5 s."
    assert world.slack.workspace.messages(GENERAL) == []


async def test_shared_answer_shows_no_previews_of_links(world):
    await share(world, ADA, "/orgs", "show 10234695")
    (call,) = [
        call
        for call in world.slack.workspace.calls_of("response_url")
        if call.args.get("response_type") == "in_channel"
    ]
    assert (call.args["unfurl_links"], call.args["unfurl_media"]) == (False, False)


async def test_private_channel_without_the_bot_is_refused(world):
    world.slack.workspace.channels["C0SECRET"] = Channel("C0SECRET", "secret", True, members={OTTO})
    answer = await world.ask(OTTO, "/orgs", "show 10234695", channel="C0SECRET")
    world.slack.workspace.faults.error("conversations.info", "channel_not_found", times=1)
    assert "Add Gatehouse" in (await world.click(OTTO, answer, SHARE)).text


async def test_group_message_has_no_button_to_share(world):
    world.slack.workspace.channels[GENERAL].name = "mpdm-otto--ada-1"
    answer = await world.ask(OTTO, "/orgs", "show 10234695")
    assert SHARE not in answer.buttons


async def test_direct_message_has_no_button_to_share(world):
    await world.slack.direct_message(OTTO, "orgs show 10234695")
    (answer,) = await world.slack.until(
        lambda: [item for item in world.slack.workspace.dm(OTTO) if "Northwind" in item.all_text]
    )
    assert SHARE not in answer.buttons
