"""Two attackers, each for as long as they are let: what they do, and what they got."""

import asyncio
import contextlib
import gzip
import io
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from sandbox.slack.delivery import sign
from tests.support.entries import payload_of
from tests.support.entry_points import EntryPoint
from tests.support.fleet import Fleet
from tests.support.loop_time import seconds_now

WELCOME = "FW00000000000000000000000000000001"
BOMB = gzip.compress(b"\0" * (30 << 20), 9)
MOST_SILENT = 300
EVIL = "+19996666"
PROXIES = ("X-Forwarded-For", "Via", "Forwarded", "CF-Connecting-IP", "X-Forwarded-Host")


@dataclass
class Attack:
    """One attacker at work; `got` is whatever they should never have got."""

    fleet: Fleet
    until: float
    random: random.Random
    done: Counter[str] = field(default_factory=Counter)
    got: list[str] = field(default_factory=list)
    request_ids: list[str] = field(default_factory=list)
    session: aiohttp.ClientSession | None = None

    @property
    def goes_on(self) -> bool:
        """Whether there is time left."""
        return seconds_now() < self.until

    @property
    def address(self) -> URL:
        """The bot itself, without anything in front."""
        return URL(self.fleet.processes[0].address)


async def unsigned(attack: Attack) -> None:
    """Somebody who reaches the port, and has no secret."""
    silent: list[asyncio.StreamWriter] = []
    deeds = (_forge, _bomb, _nonsense, _metrics, _probe, lambda item: _stay_silent(item, silent))
    async with aiohttp.ClientSession() as session:
        attack.session = session
        while attack.goes_on:
            deed = attack.random.choice(deeds)
            with contextlib.suppress(OSError, aiohttp.ClientError, TimeoutError):
                async with asyncio.timeout(5):
                    await deed(attack)
            attack.done["unsigned"] += 1
            await asyncio.sleep(0.005)
    for writer in silent:
        writer.close()


async def _forge(attack: Attack) -> None:
    command = {
        "command": "/testusers",
        "text": f"add welcome {EVIL} now because",
        "trigger_id": "1",
    }
    body = urlencode({**command, "user_id": "U0ADMIN", "team_id": "T0GATEHOUSE"}).encode()
    secret = attack.random.choice(["", "secret", "8f742231b10e8888abcd99yyyzzz85a5"])
    at = str(int(time.time()) + attack.random.choice([0, 59, 400, -400]))
    headers = {
        "X-Slack-Request-Timestamp": at,
        "X-Slack-Signature": sign(secret, at, body.decode()),
    }
    await _expect(attack, "POST", "/slack/events", body, headers, {401})


async def _bomb(attack: Attack) -> None:
    path = attack.random.choice(["/slack/events", "/healthz", "/metrics", "/x"])
    await _expect(attack, "POST", path, BOMB, {"Content-Encoding": "gzip"}, {415, 405, 404})


async def _metrics(attack: Attack) -> None:
    header = attack.random.choice(PROXIES)
    await _expect(attack, "GET", "/metrics", b"", {header: "203.0.113.9"}, {403})


async def _probe(attack: Attack) -> None:
    asked = (_expect(attack, "GET", "/readyz", b"", {}, {200, 503}) for _ in range(30))
    await asyncio.gather(*asked)


async def _expect(
    attack: Attack, method: str, path: str, body: bytes, headers: dict[str, str], wanted: set[int]
) -> None:
    session = attack.session
    assert session is not None
    url = attack.address.with_path(path)
    async with session.request(method, url, data=io.BytesIO(body), headers=headers) as answer:
        if answer.status not in wanted:
            attack.got.append(f"{answer.status} for {method} {path} {headers}")


async def _nonsense(attack: Attack) -> None:
    reader, writer = await asyncio.open_connection(attack.address.host, attack.address.port)
    head = b"POST /slack/events HTTP/1.1\r\nHost: x\r\n"
    sent = [b"\x16\x03\x01\x00", b"GET\r\n\r\n", head + b"Transfer-Encoding: xchunked\r\n\r\n"]
    writer.write(attack.random.choice(sent))
    writer.close()
    await reader.read(100)


async def _stay_silent(attack: Attack, silent: list[asyncio.StreamWriter]) -> None:
    _, writer = await asyncio.open_connection(attack.address.host, attack.address.port)
    writer.write(b"POST /slack/ev"[: attack.random.randrange(14)])
    silent.append(writer)
    if len(silent) > MOST_SILENT:
        silent.pop(0).close()


BUTTONS = (
    *("testusers.approve", "testusers.deny", "testusers.cancel", "testusers.retry"),
    *("testusers.undo", "orgs.refresh", "orgs.page.next", "testusers.list_page.next"),
    *("emailkey.page.next", "ratelimits.check", "ratelimits.refresh"),
)
COMMANDS = (
    ("/testusers", f"add welcome {EVIL} now because x"),
    ("/testusers", f"add welcome {EVIL}"),
    ("/testusers", "remove welcome +15550100"),
    ("/orgs", "refresh"),
    ("/ratelimits", "plan 10234695 premium"),
    ("/gatehouse", "audit 50"),
)


async def viewer(attack: Attack) -> None:
    """Somebody who may look, and forges every button and form there is."""
    slack = attack.fleet.slack
    while attack.goes_on:
        if attack.random.random() < 0.2:
            command, text = attack.random.choice(COMMANDS)
            await slack.command("U0VIEWER", "C0GENERAL", command, text)
        else:
            button = EntryPoint("action", attack.random.choice(BUTTONS), None, "x")
            value = attack.random.choice([*attack.request_ids, "x", "0"])
            await slack._deliverer.interaction(payload_of(slack, "U0VIEWER", button, value))
        attack.done["viewer"] += 1
        await asyncio.sleep(0.01)
