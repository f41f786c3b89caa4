"""Lists the bot's entry points and the permission that each one requires.

`tests/handlers/test_permissions.py` fails if a listener is missing from the list or requires a
different permission. The function `deliver` triggers an entry point.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.commands import COMMANDS
from bot.permissions import Permission
from bot.slack.messages import ids
from sandbox.slack.messages import Message, View
from sandbox.slack.payloads import Sender
from sandbox.slack.server import RunningSlack
from tests.support.world import World

Kind = Literal["command", "action", "view", "options", "event", "shortcut"]


@dataclass(frozen=True)
class EntryPoint:
    """One of the bot's entry points.

    `name` is an action ID, a callback ID, an event type, or a command with its slash. `sample` is
    a button's value, a modal's `private_metadata`, or the text after a command. `RESPONSE_URL` in
    `private_metadata` is a placeholder. The sample is just valid enough to reach the permission
    check. `form` is the name of one of the command's forms in `bot.commands`.
    """

    kind: Kind
    name: str
    permission: Permission
    sample: str = ""
    form: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.kind} {self.name} {self.sample}".strip()


Rows = tuple[EntryPoint, ...]


def _typed(command: str, sample: str, permission: Permission, form: str = "") -> EntryPoint:
    return EntryPoint("command", command, permission, sample, form)


def _pressed(action_id: str, permission: Permission, value: str = "") -> EntryPoint:
    return EntryPoint("action", action_id, permission, value)


ORGS: Rows = (
    _typed("/orgs", "", Permission.READ, "list"),
    _typed("/orgs", "EUR", Permission.READ, "search"),
    _typed("/orgs", "show 10234695", Permission.READ, "show"),
    _typed("/orgs", "refresh", Permission.REFRESH, "refresh"),
    _typed("/orgs", "help", Permission.ASK_FOR_HELP),
    _pressed(f"{ids.ORGS_PAGE}.next", Permission.READ, '{"q": "", "p": 1}'),
    _pressed(f"{ids.ORGS_PAGE}.previous", Permission.READ, '{"q": "", "p": 0}'),
    _pressed(ids.ORGS_REFRESH, Permission.REFRESH, '{"q": "", "p": 0}'),
    _pressed(ids.ORGS_SHOW, Permission.READ, "com/10234695"),
)

FLOW_SID = "FW00000000000000000000000000000001"


def _input(block_id: str, typed: str) -> dict[str, Any]:
    return {block_id: {"typed": {"type": "plain_text_input", "value": typed}}}


# These changes are already in effect, so requesting them leaves nothing behind.
TESTUSERS: Rows = (
    _typed("/testusers", "", Permission.REQUEST, "form"),
    _typed("/testusers", "help", Permission.ASK_FOR_HELP),
    _typed("/testusers", "list welcome", Permission.READ, "list"),
    _typed("/testusers", "history welcome", Permission.READ, "history"),
    _typed("/testusers", "requests", Permission.READ, "requests"),
    _typed("/testusers", "mine", Permission.READ, "mine"),
    _typed("/testusers", "review", Permission.REQUEST, "review"),
    _typed("/testusers", "presets", Permission.READ, "presets"),
    _typed("/testusers", "preset save demo-team +15550100001", Permission.REQUEST, "save_preset"),
    _typed("/testusers", "preset delete demo-team", Permission.REQUEST, "delete_preset"),
    _typed("/testusers", "add welcome +15550100001 because a test", Permission.REQUEST, "add"),
    _typed("/testusers", "remove welcome +15550100009 because done", Permission.REQUEST, "remove"),
    _typed(
        "/testusers", "add survey ada@example.com now because urgent", Permission.OVERRIDE, "now"
    ),
    _pressed(f"{ids.TESTUSERS_ACT}approve", Permission.DECIDE, "none"),
    _pressed(f"{ids.TESTUSERS_ACT}deny", Permission.DECIDE, "none"),
    _pressed(f"{ids.TESTUSERS_ACT}retry", Permission.DECIDE, "none"),
    _pressed(f"{ids.TESTUSERS_ACT}cancel", Permission.REQUEST, "none"),
    _pressed(f"{ids.TESTUSERS_ACT}undo", Permission.REQUEST, "none"),
    _pressed(
        ids.TESTUSERS_EXTEND, Permission.REQUEST, '{"flow": "welcome", "identity": "+15550100001"}'
    ),
    _pressed(
        f"{ids.testusers_page('list')}.next", Permission.READ, '{"flow": "welcome", "page": 1}'
    ),
    _pressed(f"{ids.testusers_page('history')}.next", Permission.READ, '{"flow": "welcome"}'),
    _pressed(f"{ids.testusers_page('mine')}.next", Permission.READ, '{"page": 1}'),
    _pressed(f"{ids.testusers_page('review')}.next", Permission.REQUEST, '{"p": 1}'),
    _pressed(f"{ids.TESTUSERS_MORE}.0", Permission.REQUEST, '{"f": "welcome"}'),
    _pressed(f"{ids.testusers_page('requests')}.next", Permission.READ, '{"page": 1}'),
    EntryPoint(
        "view",
        ids.TESTUSERS_DENIAL,
        Permission.DECIDE,
        '{"request": "none", "reply_to": "RESPONSE_URL"}',
        values=_input(ids.TESTUSERS_REASON, "not today"),
    ),
    EntryPoint(
        "view",
        ids.TESTUSERS_FORM,
        Permission.REQUEST,
        '{"reply_to": "RESPONSE_URL"}',
        values={
            **_input(ids.TESTUSERS_FLOW, FLOW_SID),
            **_input(ids.TESTUSERS_CHANGE, "add"),
            **_input(ids.TESTUSERS_IDENTITIES, "+15550100001"),
        },
    ),
    EntryPoint("options", ids.TESTUSERS_FLOW, Permission.REQUEST, "wel"),
)

EMAILKEY: Rows = (
    _typed("/emailkey", "check", Permission.READ, "check"),
    _typed("/emailkey", "templates", Permission.READ, "templates"),
    _typed("/emailkey", "help", Permission.ASK_FOR_HELP),
    _pressed(f"{ids.EMAILKEY_PAGE}.next", Permission.READ),
)

GATEHOUSE: Rows = (
    _typed("/gatehouse", "", Permission.ASK_FOR_HELP),
    _typed("/gatehouse", "help", Permission.ASK_FOR_HELP),
    _typed("/gatehouse", "whoami", Permission.ASK_FOR_HELP, "whoami"),
    _typed("/gatehouse", "status", Permission.READ, "status"),
    _typed("/gatehouse", "audit", Permission.READ_AUDIT, "audit"),
)

RATELIMITS: Rows = (
    _typed("/ratelimits", "", Permission.READ, "all"),
    _typed("/ratelimits", "10234695", Permission.READ, "one"),
    _typed("/ratelimits", "check 10234695", Permission.REFRESH, "check"),
    _typed("/ratelimits", "plan 10234695 standard", Permission.SET_PLAN, "plan"),
    _typed("/ratelimits", "help", Permission.ASK_FOR_HELP),
    _pressed(f"{ids.RATELIMITS_PAGE}.next", Permission.READ, "1"),
    _pressed(f"{ids.RATELIMITS_PAGE}.previous", Permission.READ, "0"),
    _pressed(f"{ids.RATELIMITS_PAGE}.refresh", Permission.READ, "0"),
    _pressed(ids.RATELIMITS_SHOW, Permission.READ, "com/10234695"),
    _pressed(ids.RATELIMITS_REFRESH, Permission.READ, "com/10234695"),
    _pressed(ids.RATELIMITS_CHECK, Permission.REFRESH, "com/10234695"),
    _pressed(ids.INCIDENT_MUTE, Permission.REFRESH, "1"),
)

HOME: Rows = (
    # Everyone has a Home tab. For people without a role, it says who manages access.
    EntryPoint("event", "app_home_opened", Permission.ASK_FOR_HELP),
    _pressed(ids.HOME_TESTUSERS, Permission.REQUEST, "home"),
    _pressed(ids.TESTUSERS_PERSON, Permission.REQUEST, "{}"),
    # Anyone may press this button. The command in its value has its own required permission.
    _pressed(f"{ids.RUN_COMMAND}.0", Permission.ASK_FOR_HELP, "/gatehouse whoami"),
    _pressed(ids.SHARE, Permission.READ, "1 /orgs show nothing"),
    EntryPoint("shortcut", ids.CHANGE_TEST_USERS, Permission.REQUEST),
    # A direct message that is not a command. Commands work as they do in a channel.
    EntryPoint("event", "message", Permission.ASK_FOR_HELP, "hello"),
)

# Anyone in this workspace who presses a retired button gets an explanation.
UNKNOWN: Rows = (
    _typed("/gone", "", Permission.ASK_FOR_HELP),
    _pressed("gone.button", Permission.ASK_FOR_HELP),
)

KNOWN: Rows = (*ORGS, *RATELIMITS, *TESTUSERS, *EMAILKEY, *GATEHOUSE, *HOME, *UNKNOWN)
# A command without rows above is tried with its own examples.
NEW: Rows = tuple(
    _typed(command.name, form.example or form.arguments, form.permission, form.kind)
    for command in COMMANDS
    if command.name not in {entry.name for entry in KNOWN}
    for form in command.forms
)
ENTRY_POINTS = (*KNOWN, *NEW)


CHANNEL = "C0GENERAL"


async def deliver(
    world: World, user: str, entry: EntryPoint, sample: str
) -> Message | View | list[Any]:
    """Deliver the sample. Return the reply, the modal, or the options that `user` sees."""
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
    """Send a direct message to the bot. Return the reply."""
    before = len(world.slack.workspace.dm(user))
    delivery = await world.slack.direct_message(user, text)
    assert (delivery.status, delivery.error) == (200, None)

    def answer() -> Message | None:
        new = [item for item in world.slack.workspace.dm(user)[before:] if item.user != user]
        return new[-1] if new and "Working on it" not in new[-1].all_text else None

    return await world.slack.until(answer)


def _seen(world: World, user: str) -> list[Message]:
    """Return the messages that only this person can see, including direct messages."""
    workspace = world.slack.workspace
    seen = [*workspace.ephemerals(user), *workspace.dm(user)]
    return sorted(seen, key=lambda item: item.number)


async def _home(world: World, user: str) -> View:
    """Open the Home tab, and return the view that the bot publishes."""
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
    """Return the payload that Slack would send for this entry point."""
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
