"""Fixtures that every test may use."""

import gc
import os
import shutil
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
import structlog
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings

from bot.store.engine import Database
from tests.support import databases
from tests.support.clock import FakeClock
from tests.support.needs import skipped_lines
from tests.support.postgres import has_server, own_database, server_url
from tests.support.steady import SteadyLoop

ROOM_BYTES = 2 * 1024**3
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("unhurried"), max_examples=10)

BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def pytest_configure(config: pytest.Config) -> None:
    """Take time as it comes, and keep temporary files in memory where there is room.

    A machine with other work stands still for half a second now and then, which says nothing about
    a rule; and SQLite waits for the disk otherwise.
    """
    # No settings file of a developer's own takes part.
    os.environ["GATEHOUSE_CONFIG"] = ""
    # Rich, where it is installed, takes seconds to show a traceback with its values.
    *others, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, plain])
    settings.load_profile(config.getoption("--hypothesis-profile") or "unhurried")
    memory = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own in it
    if memory.is_dir() and shutil.disk_usage(memory).free > ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    if config.getoption("numprocesses", None):
        # Started here, it is the server of all processes that share the tests.
        has_server()


def pytest_asyncio_loop_factories() -> dict[str, type[SteadyLoop]]:
    """Let no timeout be over because the machine had other work: see `tests.support.steady`."""
    return {"steady": SteadyLoop}


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Say at the end what was skipped, and how to run it."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("skipped")
        reasons = [str(report.longrepr[2]) for report in skipped]
        terminalreporter.write_line("\n".join(skipped_lines(reasons)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in CI that skips anything."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than processors: half of them begin with what mostly waits."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Search what importing makes, which stays for good, for garbage neither now nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that nobody waits for one of those in the end.

    Most of them wait more than they work, so every other process begins with them: the tests are
    dealt to the processes in as many parts of the same size.
    """
    slow = [item for item in items if item.get_closest_marker("slow")]
    quick = [item for item in items if not item.get_closest_marker("slow")]
    half = len(items) // 2 - len(slow[::2])
    items[:] = [*slow[::2], *quick[:half], *slow[1::2], *quick[half:]]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory) -> Path:
    """A migrated SQLite file."""
    return databases.migrated_file(tmp_path_factory.mktemp("template") / "gatehouse.db")


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[str]:
    """The name of a migrated database; skips where there is no server."""
    with databases.postgres_template(server_url()) as name:
        yield name


@pytest.fixture
def sqlite_url(tmp_path, sqlite_template) -> str:
    """The address of a migrated SQLite database of this test's own."""
    path = tmp_path / "gatehouse.db"
    databases.copy_sqlite(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
async def postgres_url(postgres_template) -> AsyncIterator[str]:
    """The address of a migrated PostgreSQL database of this test's own."""
    async with own_database(server_url(), postgres_template, is_durable=False) as url:
        yield url


@pytest.fixture
def empty_sqlite_url(tmp_path) -> str:
    """As `sqlite_url`, with nothing in it."""
    return f"sqlite:///{tmp_path}/empty.db"


@pytest.fixture
async def empty_postgres_url(postgres_template) -> AsyncIterator[str]:
    """As `postgres_url`, with nothing in it."""
    async with own_database(server_url(), is_durable=False) as url:
        yield url


@pytest.fixture(params=BOTH)
def database_url(request) -> str:
    """The address of a migrated database: once SQLite, once PostgreSQL."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=BOTH)
def empty_database_url(request) -> str:
    """As `database_url`, with nothing in it."""
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.fixture
async def database(database_url, clock) -> AsyncIterator[Database]:
    """A migrated database whose time is `clock`."""
    database = Database(database_url, clock, own_clock=False)
    try:
        yield database
    finally:
        await database.close()
