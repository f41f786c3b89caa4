"""What Bolt is told to listen to: the names given to `app.command`, `app.action` and the rest."""

import re
from collections.abc import Callable
from typing import Any

from slack_bolt.async_app import AsyncApp

import handlers
from bot.metrics import Metrics
from bot.ops.clock import SystemClock
from bot.slack.rules.pace import Pace
from bot.tasks import Tasks
from handlers.registration import Registration

Constraint = str | re.Pattern[str]
ANYTHING = ".*"


class RecordingApp(AsyncApp):
    """Writes down what is registered, in place of listening."""

    def __init__(self) -> None:
        self.listeners: list[tuple[str, Constraint]] = []


def _recorder(kind: str) -> Callable[..., Any]:
    def register(app: RecordingApp, constraint: Constraint, *_: Any, **__: Any) -> Any:
        app.listeners.append((kind, constraint))
        return lambda listener: listener

    return register


SURFACES = (
    *("action", "block_action", "command", "event", "function", "global_shortcut", "message"),
    *("attachment_action", "dialog_submission", "dialog_suggestion", "dialog_cancellation"),
    *("message_shortcut", "options", "block_suggestion", "shortcut", "step", "view"),
    *("view_submission", "view_closed"),
)
for _surface in SURFACES:
    setattr(RecordingApp, _surface, _recorder(_surface))


def registered() -> list[tuple[str, Constraint]]:
    """Every listener of the bot, as (surface, name or pattern), in the order of registration."""
    return _listeners().app.listeners


def registrations() -> list[Registration]:
    """Every listener with the permission that it requires, in the order of registration."""
    return _listeners().registrations


def _listeners() -> handlers.Listeners:
    app = RecordingApp()
    clock = SystemClock()
    pace = Pace(0, {})
    listeners = handlers.Listeners(app, None, pace, Tasks(), Metrics(), None, clock, None)
    handlers.register(listeners, None)
    return listeners


def is_anything(constraint: Constraint) -> bool:
    """Whether it is the last one, for whatever is left."""
    return isinstance(constraint, re.Pattern) and constraint.pattern == ANYTHING


def fits(constraint: Constraint, name: str) -> bool:
    """Whether Bolt would call a listener with this constraint for this name."""
    if isinstance(constraint, re.Pattern):
        return constraint.search(name) is not None
    return constraint == name
