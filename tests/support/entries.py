"""Delivers to any entry point of the bot what Slack would, and waits for what comes of it."""

from typing import Any

from sandbox.slack.messages import Message, View
from sandbox.slack.payloads import Sender
from sandbox.slack.server import RunningSlack
from tests.support.entry_points import EntryPoint
from tests.support.world import World

CHANNEL = "C0GENERAL"


async def deliver(
    world: World, user: str, entry: EntryPoint, sample: str
) -> Message | View | list[Any]:
    """Return the answer that only `user` sees, the modal that opened, or the options."""
    slack = world.slack
    if entry.kind == "event" and entry.name == "app_home_opened":
        return await _home(world, user)
    if entry.kind == "event":
        return await write(world, user, sample)
    before = len(_seen(world, user))
    if entry.kind == "command":
        delivery = await slack.command(user, CHANNEL, entry.name, sample)
    else:
        delivery = await slack._deliverer.interaction(payload_of(world.slack, user, entry, sample))
    assert (delivery.status, delivery.error) == (200, None)
    if entry.kind == "options":
        return list(delivery.json["options"])
    if isinstance(delivery.json, dict) and "response_action" in delivery.json:
        return View("V0", "", user, {}, errors=delivery.json.get("errors", {}))
    return await _outcome(world, user, before)


async def write(world: World, user: str, text: str) -> Message:
    """Write to the bot; return what it answers."""
    before = len(world.slack.workspace.dm(user))
    delivery = await world.slack.direct_message(user, text)
    assert (delivery.status, delivery.error) == (200, None)

    def answer() -> Message | None:
        new = [item for item in world.slack.workspace.dm(user)[before:] if item.user != user]
        return new[-1] if new and "Working on it" not in new[-1].all_text else None

    return await world.slack.until(answer)


def _seen(world: World, user: str) -> list[Message]:
    """What only this person sees, in channels and in their direct messages."""
    workspace = world.slack.workspace
    seen = [*workspace.ephemerals(user), *workspace.dm(user)]
    return sorted(seen, key=lambda item: item.number)


async def _home(world: World, user: str) -> View:
    """Return the Home tab that came of it."""
    world.slack.workspace.homes.pop(user, None)
    delivery = await world.slack.open_home(user)
    assert (delivery.status, delivery.error) == (200, None)
    homes = world.slack.workspace.homes
    return await world.slack.until(lambda: homes[user])


async def _outcome(world: World, user: str, before: int) -> Message | View:
    def seen() -> Message | View | None:
        view = world.slack.workspace.open_view(user)
        if view is not None:
            return view
        new = _seen(world, user)[before:]
        return new[-1] if new and "Working on it" not in new[-1].all_text else None

    found = await world.slack.until(seen)
    if isinstance(found, View):
        world.slack.workspace.close(found)
    return found


def payload_of(slack: RunningSlack, user: str, entry: EntryPoint, sample: str) -> dict[str, Any]:
    """What Slack would send for this entry point."""
    workspace = slack.workspace
    sender = Sender(workspace, workspace.people[user])
    key = workspace.new_response_url(CHANNEL, user)
    common = {
        "trigger_id": workspace.new_trigger(user),
        "response_url": f"{slack.address}/response/{key}",
        "channel": {"id": CHANNEL, "name": "general"},
        "container": {"type": "message", "message_ts": "1.000001", "channel_id": CHANNEL},
    }
    if entry.kind == "action":
        action = {"type": "button", "action_id": entry.name, "block_id": "b", "value": sample}
        return {**sender.common("block_actions"), **common, "actions": [action]}
    if entry.kind == "options":
        asked = {"action_id": entry.name, "block_id": "b", "value": sample}
        return {**sender.common("block_suggestion"), **common, **asked}
    if entry.kind == "shortcut":
        message = Message(CHANNEL, "1.000001", user, sample)
        url = common["response_url"]
        if sample:
            return sender.message_action(entry.name, message, url)
        return sender.shortcut(entry.name)
    view = {
        "id": "V0",
        "type": "modal",
        "callback_id": entry.name,
        "private_metadata": sample.replace("RESPONSE_URL", common["response_url"]),
        "state": {"values": dict(entry.values)},
    }
    submission = {"view": view, "response_urls": []}
    return {**sender.common("view_submission"), **common, **submission}
