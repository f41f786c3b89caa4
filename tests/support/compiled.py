"""Lets all databases of a test process share compiled statements.

SQLAlchemy compiles a statement once for each engine, and each test has an engine of its own.
Compiling would otherwise be a seventh of the work of a test that runs the bot.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.ext.asyncio import AsyncEngine

import bot.store.engine

# Tests that make an engine of their own don't share.
COMPILED: dict[Any, Any] = {}


def share_compiled_statements() -> None:
    """Make engines of one kind of database use each other's compiled statements."""
    # Compiled statements are found by the dialect, of which each engine has its own.
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign, assignment]
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign, assignment]
    bot.store.engine.sqlite_engine = _sharing(bot.store.engine.sqlite_engine)
    bot.store.engine.postgres_engine = _sharing(bot.store.engine.postgres_engine)


def _sharing(create: Callable[..., AsyncEngine]) -> Callable[..., AsyncEngine]:
    def create_sharing(*arguments: Any, **options: Any) -> AsyncEngine:
        engine = create(*arguments, **options)
        engine.update_execution_options(compiled_cache=COMPILED)
        return engine

    return create_sharing
