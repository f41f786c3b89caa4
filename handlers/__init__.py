"""Slack listeners: one module per slash command, each ending in register()."""

from bot.workflows.desk import Desk
from handlers import emailkey, gatehouse, incidents, orgs, ratelimits, testusers, unknown
from handlers.entry import Frame

__all__ = ["Frame", "register"]


def register(frame: Frame, desk: Desk) -> None:
    """Register every listener; the one for whatever is left comes last."""
    for surface in (orgs, ratelimits, incidents, testusers, emailkey, gatehouse, unknown):
        surface.register(frame, desk)
