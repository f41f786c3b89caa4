"""Test that each write through the gateway appears in the audit log once, whatever the result."""

import hashlib
import json
from datetime import timedelta

import pytest
from aiohttp import web

from bot.audit.reading import latest
from bot.quotas.guard import Guard
from bot.quotas.store import ledger
from bot.quotas.store.ledger import TIDY_JOB
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from tests.gateway.conftest import EU, ITEMS, data_centers, running_gateway

BODY = b"name=Private&phone=%2B15550142"
DIGEST = hashlib.sha256(BODY).hexdigest()
WRITTEN = {
    "client": "script",
    "method": "POST",
    "path": "/eu/inventory/v1/items",
    "organization": f"eu/{EU}",
    "sha256": DIGEST,
    "size": len(BODY),
}


async def writes(gateway) -> list[dict[str, object]]:
    """Return the details of each write in the audit log, oldest first."""
    entries, _ = await latest(gateway.world.bot.database, 50)
    found = [entry for entry in entries if entry.action == "gateway.write"]
    assert {(entry.actor, entry.subject) for entry in found} <= {("client:script", f"eu/{EU}")}
    return [json.loads(entry.detail) for entry in reversed(found)]


async def post(gateway, **rest) -> int:
    return await gateway.status(f"{ITEMS}&secret=in-the-query", method="POST", data=BODY, **rest)


async def test_a_write_is_recorded_with_its_status(gateway_on_each):
    gateway = gateway_on_each
    gateway.upstream.responds(status=201)
    assert await post(gateway) == 201
    assert await writes(gateway) == [{**WRITTEN, "status": 201}]
    gateway.upstream.responds(status=400)
    assert await post(gateway) == 400
    assert [entry["status"] for entry in await writes(gateway)] == [201, 400]


async def test_neither_content_nor_query_nor_credential_is_recorded(gateway):
    await post(gateway)
    entries, _ = await latest(gateway.world.bot.database, 50)
    recorded = repr(entries)
    for hidden in ("Private", "15550142", "in-the-query", "inventory-eu-secret", "script-token"):
        assert hidden not in recorded


async def test_reads_and_refused_requests_are_not_recorded(gateway):
    assert await gateway.status(ITEMS) == 200
    assert await gateway.status(ITEMS, method="HEAD") == 200
    assert await gateway.status(ITEMS, "nightly", method="POST") == 403
    assert await gateway.status("/eu/items?organization_id=999", method="POST") == 403
    assert await writes(gateway) == []


async def test_a_write_that_was_refused_with_429_is_recorded(gateway):
    gateway.upstream.responds(status=429, body=b'{"code": 44}')
    assert await post(gateway) == 429
    # This call is declined, and never sent.
    assert await post(gateway) == 429
    assert [entry["status"] for entry in await writes(gateway)] == [429]


async def test_a_write_that_was_never_sent_is_not_recorded(sqlite_url):
    centers = data_centers("http://127.0.0.1:9")
    async with running_gateway(sqlite_url, inventory_data_centers=centers) as gateway:
        assert await post(gateway) == 502
        assert await writes(gateway) == []
        await tidied(gateway)
        assert await writes(gateway) == []


async def test_a_write_without_an_answer_is_recorded_as_unknown(gateway_on_each):
    gateway = gateway_on_each

    async def hang_up(request, _body):
        request.transport.close()
        return web.Response()

    gateway.upstream.answer = hang_up
    assert await post(gateway) == 502
    assert await writes(gateway) == [{**WRITTEN, "status": None}]
    await tidied(gateway)
    assert len(await writes(gateway)) == 1


async def tidied(gateway) -> None:
    """Move the clock ahead so that all holds expire, and run the cleanup job."""
    bot = gateway.world.bot
    gateway.world.clock.ahead += timedelta(seconds=20)
    job = Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, bot.clock.now())
    await ledger.tidy(job, Lease(bot.database, "", job))


async def test_a_write_whose_process_died_is_recorded_once(sqlite_url, monkeypatch):
    async def died(*_):
        pass

    async with running_gateway(sqlite_url) as gateway:
        with monkeypatch.context() as patch:
            patch.setattr(Guard, "_end", died)
            assert await post(gateway) == 200
        assert await writes(gateway) == []
        for _ in range(2):
            await tidied(gateway)
            assert await writes(gateway) == [{**WRITTEN, "status": None}]


@pytest.mark.parametrize(("status", "words"), [(201, "`201`"), (None, "`unknown`")])
async def test_the_audit_command_shows_a_write_in_a_sentence(gateway, status, words, monkeypatch):
    gateway.upstream.responds(status=201)
    if status is None:
        monkeypatch.setattr(
            "bot.services.http.Permit.status", property(lambda _: None, lambda *_: None)
        )
    await post(gateway)
    answer = await gateway.world.ask("U0ADMIN", "/gatehouse", "audit 5")
    call = "`client:script` sent `POST` `/eu/inventory/v1/items`"
    assert f"{call} for `eu/{EU}` (`30` bytes): {words}" in answer.all_text


async def test_a_write_without_a_body_has_zero_bytes(gateway):
    assert await gateway.status(ITEMS, method="POST") == 200
    answer = await gateway.world.ask("U0ADMIN", "/gatehouse", "audit 5")
    assert "(`0` bytes): `200`" in answer.all_text
