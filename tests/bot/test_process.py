"""These tests start and stop `python -m bot` as an operator would."""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from bot import __version__
from bot.slack.messages.replies import STOPPED
from sandbox.ports import free_port
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.running import running_services
from sandbox.slack.server import running_slack
from tests.support.fleet import Fleet
from tests.support.forks import run_forked
from tests.support.processes import BotProcess
from tests.support.proxy import running_proxy
from tests.support.world import environment_for

pytestmark = pytest.mark.slow

# Ten seconds, and the time that a process needs to end on a busy machine.
MOST_STOPPING_SECONDS = 20.0


@pytest.fixture
async def fleet(sqlite_url):
    """Yield a fleet that has no running processes yet."""
    async with (
        running_services() as services,
        running_slack() as slack,
        aiohttp.ClientSession() as session,
    ):
        environment = environment_for(slack, services, sqlite_url)
        environment["INVENTORY_WATCH"] = "off"
        fleet = Fleet(slack, services, session, environment)
        try:
            yield fleet
        finally:
            services.state.faults.lift()
            slack.workspace.faults.clear()
            for process in fleet.processes:
                await process.kill()


async def started(fleet: Fleet, **settings: str) -> BotProcess:
    process = await fleet.add(**settings)
    fleet.slack.bot_url = process.address
    return process


async def test_wrong_settings_are_printed_together_without_a_traceback():
    wrong = {
        "SLACK_BOT_TOKEN": "wrong-token-word",
        "PORT": "a-lot",
        "ROLES": "{",
        "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "demo-secret-word"}}',
    }
    status, printed = await run_forked((), wrong)
    assert status == 2
    assert "Traceback" not in printed
    for name in (
        *("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "PORT", "ROLES"),
        *("ALERTS_CHANNEL", "APPROVALS_CHANNEL", "INVENTORY_BASE_URL"),
    ):
        assert f"  {name} " in printed
        assert f"example: {name}=" in printed
    assert "secret-word" not in printed
    assert "token-word" not in printed


async def test_installation_in_a_whole_organization_ends_the_start(fleet):
    fleet.slack.workspace.is_organization_wide = True
    process = await fleet.add(wait=False)
    assert await process.ended() == 2
    assert any("Install the app in one workspace" in line for line in process.lines)


@pytest.mark.parametrize(
    "wrong", [{"SLACK_BOT_TOKEN": "xoxb-wrong"}, {"SLACK_APP_TOKEN": "xapp-wrong"}]
)
async def test_a_token_that_slack_refuses_ends_the_start_with_one_sentence(fleet, wrong):
    status, printed = await run_forked((), {**fleet.environment, **wrong, "LOG_LEVEL": "ERROR"})
    assert status == 2
    record = json.loads(printed)
    assert (record["event"], "invalid_auth" in record["reason"]) == ("start.failed", True)


async def test_a_file_that_cannot_be_opened_ends_the_start_with_one_sentence(fleet):
    environment = {**fleet.environment, "DATABASE_URL": "sqlite:////nowhere/at/all.db"}
    status, printed = await run_forked((), environment)
    assert status == 2
    assert "can't be opened" in printed
    assert "Traceback" not in printed


async def test_a_port_in_use_ends_the_start_with_one_sentence(fleet, tmp_path):
    first = await started(fleet)
    port = first.address.rpartition(":")[2]
    url = f"sqlite:///{tmp_path}/another.db"
    status, printed = await run_forked((), {**fleet.environment, "PORT": port, "DATABASE_URL": url})
    assert status == 2
    last = json.loads(printed.splitlines()[-1])
    assert f"Cannot listen on 127.0.0.1:{port}" in last["reason"]
    assert [line for line in printed.splitlines() if not line.startswith("{")] == []
    assert "Traceback" not in printed


async def readiness(process: BotProcess, expected: tuple[int, str]) -> None:
    """Wait until `/readyz` returns the expected response."""
    async with asyncio.timeout(60):
        while await process.readiness() != expected:  # noqa: ASYNC110 - another process
            await asyncio.sleep(0.02)


async def test_slack_that_cannot_be_reached_is_tried_again(fleet):
    fleet.slack.workspace.faults.html("auth.test", times=None)
    process = await fleet.add(wait=False)
    await readiness(process, (503, "slack"))
    async with fleet.session.get(f"{process.address}/healthz") as answer:
        assert answer.status == 200
    fleet.slack.workspace.faults.clear()
    await process.ready()
    assert process.tracebacks == []


async def test_a_database_that_cannot_be_reached_is_tried_again(fleet):
    url = "postgresql://nobody@127.0.0.1:9/none"
    process = await fleet.add(wait=False, database_url=url)
    await readiness(process, (503, "database"))
    await process.says(lambda: sum('"database"' in line for line in process.lines) >= 2)
    assert process.tracebacks == []
    assert await process.stop() == 0


async def test_sigterm_finishes_what_runs_and_takes_nothing_new(fleet):
    process = await started(fleet)
    hold = fleet.services.state.faults.add(Fault(FaultKind.HOLD, "inventory", "eu"))
    delivery = await fleet.slack.command("U0VIEWER", "C0GENERAL", "/orgs")
    assert delivery.status == 200
    await hold.reached()
    stopping = asyncio.create_task(process.stop())
    await process.says(lambda: any('"stopping"' in line for line in process.lines))
    assert (await fleet.slack.command("U0ADMIN", "C0GENERAL", "/orgs")).status == 0
    hold.lift()
    assert await stopping == 0
    answer = fleet.slack.workspace.ephemerals("U0VIEWER")[-1]
    assert "in 8 data centers" in answer.all_text
    assert process.tracebacks == []


# Scripts that rotate logs, and reload buttons, send SIGHUP.
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_waiting_person_gets_an_answer_when_the_bot_stops(fleet, number):
    process = await fleet.add(("-m", "tests.support.launch", "--short-ending"))
    fleet.slack.bot_url = process.address
    fleet.services.state.faults.add(Fault(FaultKind.HANG, "flow"))
    await fleet.slack.command("U0OPERATOR", "C0GENERAL", "/testusers", "list welcome")
    seen = fleet.slack.workspace.ephemerals
    await fleet.slack.until(lambda: "Working on it" in seen("U0OPERATOR")[-1].text)
    loop = asyncio.get_running_loop()
    before = loop.time()
    assert await process.stop(number) == 0
    assert loop.time() - before < MOST_STOPPING_SECONDS
    assert [item.text for item in seen("U0OPERATOR")] == [STOPPED.text]
    assert process.tracebacks == []


@pytest.mark.postgres
async def test_metrics_and_sigterm_work_while_the_database_hangs(fleet, postgres_url):
    parts = urlsplit(postgres_url)
    async with running_proxy(parts.hostname, parts.port or 5432) as proxy:
        url = f"postgresql://postgres@127.0.0.1:{proxy.port}{parts.path}"
        process = await started(fleet, database_url=url)
        proxy.hang()
        async with asyncio.timeout(10), fleet.session.get(f"{process.address}/metrics") as got:
            page = await got.text()
        assert "gatehouse_database_up 0.0" in page
        assert "gatehouse_ack_seconds" in page
        for _ in range(5):
            await fleet.slack.command("U0OPERATOR", "C0GENERAL", "/testusers", "list welcome")
        loop = asyncio.get_running_loop()
        before = loop.time()
        assert await process.stop() == 0
        assert loop.time() - before < MOST_STOPPING_SECONDS


async def test_sigterm_ends_a_process_that_is_not_ready(fleet):
    fleet.slack.workspace.faults.hang("auth.test", times=None)
    process = await fleet.add(wait=False)
    assert await process.stop() == 0
    assert process.tracebacks == []


def handles_sigterm(pid: int) -> bool:
    [caught] = re.findall(r"SigCgt:\s(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs Linux")
async def test_a_signal_during_the_first_second_ends_process_1(fleet):
    """The kernel ignores signals that process 1 doesn't handle."""
    process = await asyncio.create_subprocess_exec(
        *("sh", "-c", "trap '' TERM; exec \"$0\" -m bot", sys.executable),
        env={**os.environ, **fleet.environment},
        stderr=asyncio.subprocess.PIPE,
    )
    while not handles_sigterm(process.pid):  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    _, said = await process.communicate()
    assert process.returncode == 0
    assert b"starting" not in said


async def test_a_second_process_on_the_same_file_is_refused(fleet):
    await started(fleet)
    status, printed = await run_forked((), fleet.environment)
    assert status == 2
    assert "Another Gatehouse process is using" in printed
    assert "Traceback" not in printed


async def test_a_restart_after_kill_minus_nine_starts_at_once(fleet):
    process = await started(fleet)
    await process.kill()
    again = await started(fleet)
    assert "Gatehouse" in (await fleet.ask("U0VIEWER", "/gatehouse", "status")).all_text
    assert again.tracebacks == []


async def test_the_bot_serves_over_socket_mode(fleet):
    settings = {"slack_app_token": "xapp-sandbox", "slack_signing_secret": ""}
    process = await fleet.add(**settings)
    await fleet.slack.until(lambda: fleet.slack.sockets)
    async with fleet.session.post(f"{process.address}/slack/events") as answer:
        assert answer.status == 404
    answer = await fleet.ask("U0VIEWER", "/orgs")
    assert "in 8 data centers" in answer.all_text
    await fleet.slack.click("U0VIEWER", answer, "Next")
    await fleet.slack.until(lambda: "Page 2" in answer.all_text)
    async with fleet.session.get(f"{process.address}/metrics") as answer:
        assert "gatehouse_ack_seconds_count 2.0" in await answer.text()
    assert await process.stop() == 0
    await fleet.slack.until(lambda: not fleet.slack.sockets)
    assert process.tracebacks == []


def rights_of(path: Path) -> set[str]:
    """Return the file permissions of a SQLite database and its log files."""
    files = [path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")]
    return {oct(file.stat().st_mode & 0o777) for file in files if file.exists()}


async def test_first_start_says_what_starts_and_warns_of_nothing(fleet, tmp_path):
    fleet.are_fresh = True
    path = tmp_path / "new" / "gatehouse.db"
    path.parent.mkdir()
    process = await started(fleet, database_url=f"sqlite:///{path}")
    assert rights_of(path) == {"0o600"}
    await process.stop()
    assert sum("database.migrated" in line for line in process.lines) == 1
    events = [json.loads(line) for line in process.lines if line.startswith("{")]
    assert [event for event in events if event["level"] != "info"] == []
    (first,) = [event for event in events if event["event"] == "starting"]
    assert (first["version"], first["database"]) == (__version__, "SQLite")
    assert first["services"] == ["inventory", "flow", "email"]
    assert events[-1]["event"] == "stopped"


GARBAGE = (
    b"\x01" * 200 * 1024,
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
    + b"\x01" * 200 * 1024,
    b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n" * 2 + b"\x01" * 200 * 1024,
    b"POST /slack/events HTTP/1.1\r\nHost: x\r\nContent-Length: 921600\r\n\r\n"
    + b"x" * 921600
    + b"\x01" * 8,
)


async def hang_up_on(port: int, sent: bytes, turns: asyncio.Semaphore) -> None:
    async with turns:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionError):
            writer.write(sent)
            await writer.drain()
            await reader.read()
        writer.close()


def megabytes(pid: int) -> float:
    """Return how much resident memory a process uses, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
async def test_garbage_is_not_kept_in_memory(fleet):
    gateway_port = free_port()
    process = await started(
        fleet,
        gateway_port=str(gateway_port),
        gateway_clients=json.dumps({"script": {"token_sha256": "0" * 64, "organizations": "*"}}),
    )
    ports = (gateway_port, int(process.address.rpartition(":")[2]))
    turns = asyncio.Semaphore(20)

    async def send(times: int) -> None:
        each = [(port, sent) for port in ports for sent in GARBAGE] * times
        await asyncio.gather(*(hang_up_on(port, sent, turns) for port, sent in each))

    # The allocator keeps the memory of the first requests.
    await send(40)
    before = megabytes(process.pid)
    await send(40)  # 320 connections: 64 MiB, if they were kept
    assert megabytes(process.pid) < before + 20
    assert process.tracebacks == []
