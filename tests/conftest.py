"""Fixtures and pytest hooks shared by all tests."""

import asyncio
import gc
import os
import shutil
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import pytest
import structlog
from _pytest.terminal import TerminalReporter
from hypothesis import HealthCheck, settings

from bot.store.engine import Database
from bot.tasks import Tasks
from tests.support import databases
from tests.support.clock import FakeClock
from tests.support.compiled import share_compiled_statements
from tests.support.needs import skipped_lines
from tests.support.postgres import has_server, own_database, server_url
from tests.support.steady import SteadyLoop

ROOM_BYTES = 2 * 1024**3
settings.register_profile("unhurried", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", settings.get_profile("unhurried"), max_examples=10)

BOTH = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


def pytest_configure(config: pytest.Config) -> None:
    """Turn off Hypothesis deadlines, and keep temporary files in memory if there is enough room.

    On a busy machine, a test can miss a deadline even if the code is fast enough. If temporary
    files were on disk, SQLite would have to wait for each write.
    """
    share_compiled_statements()
    # Otherwise, each test process and each program that it starts compiles all modules.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    # Tests must not read the developer's own settings file.
    os.environ["GATEHOUSE_CONFIG"] = ""
    # If Rich is installed, it takes seconds to print a traceback with local variables.
    *others, _ = structlog.get_config()["processors"]
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*others, plain])
    settings.load_profile(config.getoption("--hypothesis-profile") or "unhurried")
    memory = Path("/dev/shm")  # noqa: S108 - pytest creates its own folder there
    if memory.is_dir() and shutil.disk_usage(memory).free > ROOM_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(memory))
    if config.getoption("numprocesses", None):
        # A server started here is shared by all test processes.
        has_server()


def pytest_asyncio_loop_factories() -> dict[str, type[SteadyLoop]]:
    """Use an event loop whose timeouts exclude the time that tests spend waiting for the CPU."""
    return {"steady": SteadyLoop}


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """At the end of the run, list the reasons why tests were skipped."""
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("skipped")
        reasons = [str(report.longrepr[2]) for report in skipped]
        terminalreporter.write_line("\n".join(skipped_lines(reasons)))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI, fail the run if any test was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Use two more workers than CPUs, because many tests spend most of their time waiting."""
    return (os.cpu_count() or 1) + 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude imported objects from garbage collection, because they are never freed.

    Among what remains, look for garbage less often than a program with little memory has to.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000, 20, 20)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slow tests first, so that they don't delay the end of the run.

    Half of the workers start with slow tests, most of which spend their time waiting. Each worker
    gets the same number of tests, and takes over the last tests of others when it has none left.
    The tests of the page share a browser and a sandbox, and those of the installed program an
    installation. These take long to make, so one worker starts with all of them.
    """
    sharing, slow, quick = list[pytest.Item](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        if item.get_closest_marker("browser") or item.path.parent.name == "install":
            sharing.append(item)
        elif item.get_closest_marker("slow"):
            slow.append(item)
        else:
            quick.append(item)
    half = len(items) // 2 - len(sharing)
    items[:] = [*sharing, *quick[:half], *slow, *quick[half:]]


@pytest.fixture(autouse=True)
def broken_tasks(monkeypatch) -> Iterator[list[str]]:
    """Yield the names of background tasks that raise. At the end, fail unless the list is empty."""
    names: list[str] = []
    ended = Tasks._ended

    def note(tasks: Tasks, task: "asyncio.Task[object]") -> None:
        ended(tasks, task)
        if not task.cancelled() and (error := task.exception()):
            names.append(f"{task.get_name()}: {error!r}")

    monkeypatch.setattr(Tasks, "_ended", note)
    yield names
    assert names == [], f"background tasks raised: {', '.join(names)}"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory) -> Path:
    """Return the path to a migrated SQLite database."""
    return databases.migrated_file(tmp_path_factory.mktemp("template") / "gatehouse.db")


@pytest.fixture(scope="session")
def postgres_template() -> Iterator[str]:
    """Yield the name of a migrated PostgreSQL database. Skip the test if there is no server."""
    with databases.postgres_template(server_url()) as name:
        yield name


@pytest.fixture
def sqlite_url(tmp_path, sqlite_template) -> str:
    """Return the address of a migrated SQLite database that only this test uses."""
    path = tmp_path / "gatehouse.db"
    databases.copy_sqlite(sqlite_template, path)
    return f"sqlite:///{path}"


@pytest.fixture
async def postgres_url(postgres_template) -> AsyncIterator[str]:
    """Yield the address of a migrated PostgreSQL database that only this test uses."""
    async with own_database(server_url(), postgres_template, is_durable=False) as url:
        yield url


@pytest.fixture
def empty_sqlite_url(tmp_path) -> str:
    """Return the address of an empty SQLite database that only this test uses."""
    return f"sqlite:///{tmp_path}/empty.db"


@pytest.fixture
async def empty_postgres_url(postgres_template) -> AsyncIterator[str]:
    """Yield the address of an empty PostgreSQL database that only this test uses."""
    async with own_database(server_url(), is_durable=False) as url:
        yield url


@pytest.fixture(params=BOTH)
def database_url(request) -> str:
    """Run the test on SQLite and on PostgreSQL. Return the address of a migrated database."""
    return request.getfixturevalue(f"{request.param}_url")


@pytest.fixture(params=BOTH)
def empty_database_url(request) -> str:
    """Run the test on SQLite and on PostgreSQL. Return the address of an empty database."""
    return request.getfixturevalue(f"empty_{request.param}_url")


@pytest.fixture
async def database(database_url, clock) -> AsyncIterator[Database]:
    """Yield a migrated database that gets the time from `clock`."""
    database = databases.ClockedDatabase(database_url, clock)
    try:
        yield database
    finally:
        await database.close()
