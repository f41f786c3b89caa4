"""The bot reports each fault in all the places that docs/operations.md lists."""

import asyncio
import contextlib
import json
import os
import re
import sqlite3
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from bot.checks import health
from sandbox.patience import PATIENCE_SECONDS
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.oauth_tokens import CLIENT_ID, CLIENT_SECRET
from tests.faults.drills.database import small_disk
from tests.support.forks import run_forked
from tests.support.postgres import connect
from tests.support.proxy import TcpProxy
from tests.support.told import Broken, surroundings

ROOT = Path(__file__).parents[2]
SECONDS = PATIENCE_SECONDS
BEGIN = "| what is broken |"

Act = Callable[[Broken, str], Awaitable[None]]


@dataclass(frozen=True)
class Case:
    """A fault that occurs before the bot starts or while it is running."""

    name: str
    before: Act | None = None
    after: Act | None = None
    database: str = "sqlite"
    becomes_ready: bool = True


async def nothing(_broken: Broken, _url: str) -> None:
    """Leave everything working."""


def setting(**changed: str) -> Act:
    async def act(broken: Broken, _url: str) -> None:
        broken.environment |= changed

    return act


def no_database(name: str, change: Callable[[str], str], database: str = "postgres") -> Case:
    """Return a case in which the bot never becomes ready, because the database address is wrong."""

    async def act(broken: Broken, url: str) -> None:
        broken.environment["DATABASE_URL"] = change(url)

    return Case(name, before=act, database=database, becomes_ready=False)


def typed(command: str, text: str = "", user: str = "U0ADMIN") -> Act:
    async def act(broken: Broken, _url: str) -> None:
        await broken.command(command, text, user)

    return act


async def fast_clock(broken: Broken, _url: str) -> None:
    for module in ("bot.ops.clock.time", "handlers.endpoint.time"):
        pytest.MonkeyPatch().setattr(module, _Ahead(600))
    await broken.command("/orgs")


def without_scope(scope: str) -> Act:
    async def act(broken: Broken, _url: str) -> None:
        workspace = broken.slack.workspace
        workspace.scopes = tuple(item for item in workspace.scopes if item != scope)

    return act


async def check_resource(broken: Broken, _url: str) -> None:
    broken.services.state.faults.add(Fault(FaultKind.STATUS, "email", status=403))
    await broken.command("/emailkey", "check resource", "U0VIEWER")


async def set_clock(_broken: Broken, _url: str) -> None:
    pytest.MonkeyPatch().setattr("bot.ops.clock.time", _Ahead(2 * 86_400))


class _Ahead:
    """Replaces the module `time`, and sets the clock ahead by `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def time(self) -> float:
        return time.time() + self._seconds

    def __getattr__(self, name: str) -> object:
        return getattr(time, name)


async def revoke(broken: Broken, _url: str) -> None:
    broken.slack.workspace.faults.error("*", "token_revoked", times=None)


def remove_from(channel: str) -> Act:
    async def act(broken: Broken, _url: str) -> None:
        workspace = broken.slack.workspace
        workspace.channels[channel].members.discard(workspace.bot_user_id)

    return act


async def archive(broken: Broken, _url: str) -> None:
    broken.slack.workspace.channels["C0APPROVALS"].is_archived = True


async def deafen(broken: Broken, _url: str) -> None:
    broken.slack.workspace.faults.error("apps.connections.open", "invalid_auth", times=None)
    await broken.slack._sockets.close()


def slack_answers(status: int) -> Act:
    async def act(broken: Broken, _url: str) -> None:
        faults = broken.slack.workspace.faults
        if status == 429:
            faults.ratelimit("*", retry_after=1, times=None)
        else:
            faults.status("*", status, times=None)

    return act


async def old_inventory_key(broken: Broken, _url: str) -> None:
    centers = json.loads(broken.environment["INVENTORY_DATA_CENTERS"])
    centers = {"eu": {**centers["eu"], "authtoken": "an-old-token"}}
    broken.environment["INVENTORY_DATA_CENTERS"] = json.dumps(centers)


async def old_refresh_token(broken: Broken, _url: str) -> None:
    broken.services.state.oauth.refuses_with_200 = True
    oauth = {
        "client_id": CLIENT_ID,
        "client_secret": CLIENT_SECRET,
        "refresh_token": "an-old-token",
        "token_url": broken.services.token_url,
    }
    centers = {"eu": {"oauth": oauth, "base_url": broken.services.inventory_url("eu")}}
    broken.environment["INVENTORY_DATA_CENTERS"] = json.dumps(centers)


async def approve_for_somebody_gone(broken: Broken, _url: str) -> None:
    """Approve a request from someone who no longer has an account."""
    slack = broken.slack
    await broken.command("/testusers", "add welcome +15550001111", "U0OPERATOR")
    (card,) = await slack.until(lambda: slack.workspace.messages("C0APPROVALS"))
    slack.workspace.faults.error("chat.postMessage", "user_disabled")
    await slack.click("U0APPROVER", card, "Approve")


async def flow_fails(broken: Broken, _url: str) -> None:
    broken.services.state.faults.add(Fault(FaultKind.STATUS, "flow", status=500))
    await broken.command("/testusers", "list welcome")


async def block(broken: Broken, _url: str) -> None:
    await broken.command("/orgs")
    await asyncio.sleep(0.5)
    broken.services.state.limits.block(("com", "10234695"), 44, 600)
    await broken.command("/ratelimits", "check com/10234695")


async def make_read_only(broken: Broken, url: str) -> None:
    connection = await connect(url)
    name = url.rsplit("/", 1)[1]
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    await connection.close()


async def behind_a_proxy(broken: Broken, url: str) -> None:
    parts = urlsplit(url)
    proxy = TcpProxy(parts.hostname or "", parts.port or 5432)
    await proxy.open()
    broken.held = proxy  # type: ignore[attr-defined]
    broken.stack.push_async_callback(proxy.cut)
    broken.environment["DATABASE_URL"] = f"postgresql://postgres@127.0.0.1:{proxy.port}{parts.path}"


async def hang(broken: Broken, _url: str) -> None:
    broken.held.hang()  # type: ignore[attr-defined]


async def no_connection_left(broken: Broken, url: str) -> None:
    name = url.rsplit("/", 1)[1]
    connection = await connect(url)
    await connection.execute(f'ALTER DATABASE "{name}" CONNECTION LIMIT 0')
    await connection.execute(f'CREATE ROLE "{name}" LOGIN')
    await connection.close()
    broken.environment["DATABASE_URL"] = url.replace("postgres@", f"{name}@")


async def migrate_on(_broken: Broken, url: str) -> None:
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
        connection.commit()


async def damage(broken: Broken, url: str) -> None:
    await asyncio.to_thread(
        Path(url.removeprefix("sqlite:///")).write_text, "no database " * 1000, "utf-8"
    )


async def lock(broken: Broken, url: str) -> None:
    connection = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    broken.held = connection  # type: ignore[attr-defined]


async def fill(broken: Broken, _url: str) -> None:
    """Fill the disk that holds the database."""
    folder = Path(broken.environment["DATABASE_URL"].removeprefix("sqlite:///")).parent
    with (folder / "ballast").open("wb", buffering=0) as ballast:
        for size in (65536, 4096, 512):
            try:
                while ballast.write(b"0" * size) == size:
                    pass
            except OSError:
                continue
    await broken.command("/testusers", "add welcome +15550001111")


async def without_flow_token(broken: Broken, _url: str) -> None:
    del broken.environment["FLOW_AUTH_TOKEN"]


async def ask_elsewhere(broken: Broken, _url: str) -> None:
    url = f"{broken.slack.bot_url}/slack/events/"
    headers = {"X-Slack-Signature": "v0=0"}
    async with aiohttp.ClientSession() as session, session.post(url, headers=headers) as answer:
        assert answer.status == 404


CASES = (
    Case("nothing", after=typed("/orgs")),
    Case(
        "the signing secret is wrong",
        before=setting(SLACK_SIGNING_SECRET="0" * 32),
        after=typed("/orgs"),
    ),
    Case("Slack sends its requests to another path", after=ask_elsewhere),
    Case("the machine's clock is ten minutes off", after=fast_clock),
    Case("the machine's clock was changed after the bot started", after=set_clock),
    Case("the bot token was revoked", after=revoke),
    Case("the token lacks a scope", before=without_scope("users:read")),
    Case("the token lacks a scope", after=without_scope("channels:read")),
    Case("the bot was removed from the approvals channel", after=remove_from("C0APPROVALS")),
    Case("the approvals channel was archived", after=archive),
    Case("the bot was removed from the alerts channel", after=remove_from("C0ALERTS")),
    Case(
        "Socket Mode is disconnected because the app token was revoked",
        before=setting(SLACK_APP_TOKEN="xapp-sandbox"),
        after=deafen,
    ),
    Case("Slack responds with 500", after=slack_answers(500)),
    Case("Slack responds with 429", after=slack_answers(429)),
    Case("the inventory credential was revoked", before=old_inventory_key, after=typed("/orgs")),
    Case("the OAuth refresh token was revoked", before=old_refresh_token, after=typed("/orgs")),
    Case(
        "the flow token was revoked",
        before=setting(FLOW_AUTH_TOKEN="an-old-token"),
        after=typed("/testusers", "list welcome"),
    ),
    Case("the flow service responds with 500", after=flow_fails),
    Case(
        "the email key was revoked",
        before=setting(EMAIL_API_KEY="SG.an-old-key"),
        after=typed("/emailkey", "check"),
    ),
    Case("the email key can't read a resource", after=check_resource),
    Case("the service blocks an organization because of another program", after=block),
    Case("a message can't be delivered to a person", after=approve_for_somebody_gone),
    Case("a service is only partly set up", before=without_flow_token),
    no_database(
        "PostgreSQL can't be reached, or refuses the connection",
        lambda _: "postgresql://gatehouse@127.0.0.1:9/gatehouse",
        database="sqlite",
    ),
    no_database(
        "PostgreSQL can't be reached, or refuses the connection", lambda url: f"{url}_gone"
    ),
    no_database(
        "PostgreSQL can't be reached, or refuses the connection",
        lambda url: url.replace("postgres@", "nobody_here@"),
    ),
    no_database(
        "PostgreSQL can't be reached, or refuses the connection",
        lambda _: "postgresql://gatehouse@no-such-host.invalid/gatehouse",
        database="sqlite",
    ),
    no_database(
        "PostgreSQL can't be reached, or refuses the connection",
        lambda url: f"{url}?sslmode=require",
    ),
    Case(
        "PostgreSQL can't be reached, or refuses the connection",
        before=no_connection_left,
        database="postgres",
        becomes_ready=False,
    ),
    Case("PostgreSQL hangs", before=behind_a_proxy, after=hang, database="postgres"),
    Case("a newer version has migrated the database", after=migrate_on),
    Case("PostgreSQL has become read-only", after=make_read_only, database="postgres"),
    Case("the SQLite file is damaged", before=damage, becomes_ready=False),
    Case("another program has locked the SQLite file", after=lock),
    Case("the SQLite file's disk is full", after=fill, database="small"),
)


def rows() -> dict[str, list[str]]:
    """Read the table in docs/operations.md, and map each fault to the cells in its row."""
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    table = page.split(BEGIN)[1].split("\n\n")[0] if BEGIN in page else ""
    lines = [line for line in table.splitlines()[2:] if line.startswith("| ")]
    cells = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line[1:-1])] for line in lines]
    return {row[0]: row[1:] for row in cells}


@pytest.fixture
def haste(monkeypatch):
    """Make the bot run its checks every 0.2 seconds, and report faults without delay."""
    for check in health.EVERY:
        monkeypatch.setitem(health.EVERY, check, 0.2)
    for name in ("SOCKET_EVERY", "ALERTS_EVERY", "DEAF_SECONDS"):
        monkeypatch.setattr(health, name, 0.2)
    monkeypatch.setattr("bot.checks.health.PATIENCE", timedelta(0))
    monkeypatch.setattr("bot.store.sqlite.CONNECT_SECONDS", 0.5)
    monkeypatch.setattr("bot.store.postgres.CONNECT_SECONDS", 1)
    for name in ("bot.store.engine.STATEMENT_SECONDS", "bot.store.postgres.STATEMENT_SECONDS"):
        monkeypatch.setattr(name, 2.0)
    monkeypatch.setattr("bot.serve.PING_SECONDS", 0.5)
    monkeypatch.setattr("bot.serve.READY_SECONDS", 0.1)
    for name in ("bot.store.engine.RETRY_SECONDS", "bot.serve.FIRST_PAUSE_SECONDS"):
        monkeypatch.setattr(name, 0.1)
    monkeypatch.setattr("bot.serve.LONGEST_PAUSE_SECONDS", 0.2)
    monkeypatch.setattr("bot.store.sqlite.BUSY_SECONDS", 0.2)
    monkeypatch.setattr("handlers.endpoint.time", time)
    monkeypatch.setattr("bot.ops.clock.time", time)


@pytest.fixture
def url(request, tmp_path) -> Iterator[str]:
    """Yield the URL of the database that the test case needs."""
    case: Case = request.node.callspec.params["case"]
    if case.database != "small":
        yield request.getfixturevalue(f"{case.database}_url")
        return
    with ExitStack() as mounted:
        disk = mounted.enter_context(small_disk(tmp_path / "disk"))
        yield f"sqlite:///{disk}/gatehouse.db"


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_each_instrument_says_what_the_page_says(case: Case, url: str, haste) -> None:
    async with surroundings(url) as broken:
        await (case.before or nothing)(broken, url)
        async with broken.running(becomes_ready=case.becomes_ready):
            await (case.after or nothing)(broken, url)
            *wanted, log, alerts = rows()[case.name]
            events = set(re.findall(r"`([^`]+)`", log))
            assert await said(broken, [*wanted, alerts], events) == ([*wanted, alerts], events)


async def said(broken: Broken, cells: list[str], events: set[str]) -> tuple[list[str], set[str]]:
    """Wait for these values and events, and return the ones that the bot reported."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SECONDS
    while (now := await broken.row()) != cells or not events <= broken.logged():
        if loop.time() > deadline:
            break
        await asyncio.sleep(0.2)
    return now, events & broken.logged()


UNREADABLE = "a line in the settings file can't be read"


async def test_unreadable_line_ends_the_start_as_the_page_says(tmp_path) -> None:
    file = tmp_path / "gatehouse.toml"
    file.write_text('slack_bot_token = "xoxb-1"\napprovals_needed = 2x\n', encoding="utf-8")
    environment = {"PATH": os.environ["PATH"], "GATEHOUSE_CONFIG": str(file)}
    status, printed = await run_forked((), environment)
    assert "(at line 2, column " in printed
    checked_status, checked = await run_forked(("check", "--json"), environment)
    assert status == checked_status
    (found,) = json.loads(checked)["checks"]
    cells = [f"exit status {status}", "–", f"`{found['code']}`", "–", "names the line", "–"]
    assert rows()[UNREADABLE] == cells


def test_page_has_a_row_for_each_case_and_no_other() -> None:
    assert set(rows()) == {UNREADABLE, *(case.name for case in CASES)}
