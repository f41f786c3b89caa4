"""Lists the bot's entry points and the permission that each one requires.

The rows of commands come from `bot.commands`. `LISTENERS` is what is registered with Bolt:
`tests/handlers/test_permissions.py` adds a row for each button, form or shortcut that has none
here, and fails if one requires a different permission. `deliver` triggers an entry point.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bot.app import gatehouse
from bot.commands import COMMANDS
from bot.permissions import Permission
from bot.slack.messages import ids
from handlers.app import slack_app
from handlers.listening import Needs
from sandbox.slack.messages import Message, View
from sandbox.slack.payloads import Sender
from sandbox.slack.server import RunningSlack
from tests.support.settings import LEAST, read_settings
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


# What to type for a form if its example can't be used: these changes are already in effect, so
# requesting them leaves nothing behind.
SAMPLES = {
    "add": "add welcome +15550100001 because a test",
    "remove": "remove welcome +15550100009 because done",
    "now": "add survey ada@example.com now because urgent",
    "save_preset": "preset save demo-team +15550100001",
    "audit": "audit",
}
FORMS: Rows = tuple(
    _typed(
        command.name,
        SAMPLES.get(form.kind, form.example or form.arguments),
        form.permission,
        form.kind,
    )
    for command in COMMANDS
    for form in command.forms
)
HELP: Rows = tuple(_typed(command.name, "help", Permission.ASK_FOR_HELP) for command in COMMANDS)

ORGS: Rows = (
    _pressed(f"{ids.ORGS_PAGE}.next", Permission.READ, '{"q": "", "p": 1}'),
    _pressed(f"{ids.ORGS_PAGE}.previous", Permission.READ, '{"q": "", "p": 0}'),
    _pressed(ids.ORGS_REFRESH, Permission.REFRESH, '{"q": "", "p": 0}'),
    _pressed(ids.ORGS_SHOW, Permission.READ, "com/10234695"),
)

FLOW_SID = "FW00000000000000000000000000000001"


def _input(block_id: str, typed: str) -> dict[str, Any]:
    return {block_id: {"typed": {"type": "plain_text_input", "value": typed}}}


TESTUSERS: Rows = (
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
    _pressed(ids.TESTUSERS_FILL, Permission.REQUEST, '{"f": "welcome"}'),
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

EMAILKEY: Rows = (_pressed(f"{ids.EMAILKEY_PAGE}.next", Permission.READ),)

RATELIMITS: Rows = (
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
    _pressed(f"{ids.TESTUSERS_FILL}.remove", Permission.REQUEST, "{}"),
    # Anyone may press this button. The command in its value has its own required permission.
    _pressed(f"{ids.RUN_COMMAND}.0", Permission.ASK_FOR_HELP, "/gatehouse whoami"),
    _pressed(ids.SHARE, Permission.READ, "1 /orgs show nothing"),
    EntryPoint("shortcut", ids.CHANGE_TEST_USERS, Permission.REQUEST),
    # A direct message that is not a command. Commands work as they do in a channel.
    EntryPoint("event", "message", Permission.ASK_FOR_HELP, "hello"),
)

# Anyone in this workspace who uses a retired button, shortcut or form gets an explanation.
UNKNOWN: Rows = (
    _typed("/gone", "", Permission.ASK_FOR_HELP),
    _pressed("gone.button", Permission.ASK_FOR_HELP),
    EntryPoint("shortcut", "gone", Permission.ASK_FOR_HELP),
    EntryPoint("view", "gone", Permission.ASK_FOR_HELP, '{"reply_to": "RESPONSE_URL"}'),
)

KNOWN: Rows = (*FORMS, *HELP, *ORGS, *RATELIMITS, *TESTUSERS, *EMAILKEY, *HOME, *UNKNOWN)


@dataclass(frozen=True)
class Registered:
    """A listener that is registered with Bolt. `matches` is the constraint that was given."""

    kind: str
    matches: str | re.Pattern[str]
    needs: Needs

    def has(self, entry: EntryPoint) -> bool:
        """Return True if the entry point reaches this listener."""
        if isinstance(self.matches, str):
            return (self.kind, self.matches) == (entry.kind, entry.name)
        return self.kind == entry.kind and self.matches.search(entry.name) is not None

    @property
    def name(self) -> str:
        """A name that the constraint matches, such as `orgs.page` for a row of buttons."""
        if isinstance(self.matches, str):
            return self.matches
        return re.sub(r"\^|\\|\(.*", "", self.matches.pattern)

    def row(self) -> EntryPoint:
        """Return a row for this listener, which knows only its permission."""
        permission = self.needs.permission or Permission.ASK_FOR_HELP
        return EntryPoint(self.kind, self.name, permission)


async def _registered() -> list[Registered]:
    """Return all listeners, in the order in which Bolt tries them."""
    async with gatehouse(read_settings(LEAST)) as bot:
        app = slack_app(bot)
        return [
            Registered(*_constraint(item.matchers[0].func), app.listening.needs[item.ack_function])
            for item in app._async_listeners
        ]


def _constraint(function: Any) -> tuple[str, str | re.Pattern[str]]:
    """Return what Bolt's matcher matches, such as `action` and `orgs.show`."""
    for value in (cell.cell_contents for cell in function.__closure__):
        if callable(value):
            return _constraint(value)
        if isinstance(value, str | re.Pattern):
            return function.__qualname__.partition(".")[0].partition("_")[0], value
    raise AssertionError(f"Bolt's matcher has changed: {function}")


LISTENERS = asyncio.run(_registered())

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
