"""Slack listeners, one module per slash command or surface. Importing this package loads them."""

import pkgutil
from importlib import import_module

for _module in pkgutil.iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
