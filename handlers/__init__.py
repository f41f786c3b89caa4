"""Slack listeners: one module per slash command or surface, each ending in register()."""

import pkgutil
from importlib import import_module

from bot.workflows import Workflows
from handlers.listeners import Listeners

__all__ = ["Listeners", "register"]

# Last: it handles whatever the others don't.
LAST = "unknown"
MODULES = [
    import_module(f"{__name__}.{name}")
    for name in sorted(
        (module.name for module in pkgutil.iter_modules(__path__)),
        key=lambda name: (name == LAST, name),
    )
]


def register(listeners: Listeners, workflows: Workflows) -> None:
    """Register the listeners of every module here."""
    for module in MODULES:
        if hasattr(module, "register"):
            module.register(listeners, workflows)
