"""Test that the documented gateway examples and commands work as written."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

from bot.gateway.clients import token_hash
from tests.gateway.conftest import EU, TOKENS, running_gateway
from tests.support.needs import needs

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
ITEMS = [
    {"name": "Lantern", "reorder_level": 10, "stock_on_hand": 4},
    {"name": "Rope", "reorder_level": 5, "stock_on_hand": 30},
]


async def run(name: str, url: str, token: str) -> tuple[int, str]:
    """Run an example script for one organization. Return the script's exit status and output."""
    return await follow((sys.executable, EXAMPLES / name, "eu", EU), url, token)


async def test_invoices_are_listed_from_another_api(sqlite_url):
    client = {"token_sha256": token_hash("books"), "organizations": ["xero"]}
    xero = {"base_url": "UPSTREAM/api.xro/2.0", "token": "a-token", "limits": {"minute": 60}}
    settings = {"apis": {"xero": xero}, "gateway_clients": {"books": client}}
    async with running_gateway(sqlite_url, inventory_data_centers="{}", **settings) as gateway:
        gateway.upstream.responds(
            text=json.dumps({"Invoices": [{"InvoiceNumber": "INV-7", "AmountDue": 12.5}]}),
            content_type="application/json",
        )
        command = (sys.executable, EXAMPLES / "invoices.py")
        assert await follow(command, gateway.url, "books") == (0, "INV-7: 12.5\n")
        [got] = gateway.upstream.got
        assert got.target == "/api.xro/2.0/Invoices?Statuses=AUTHORISED"


async def follow(command: tuple[str | Path, ...], url: str, token: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, "GATEWAY_URL": url, "GATEWAY_TOKEN": token},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode()


async def test_restock_lists_what_to_order(gateway):
    gateway.upstream.responds(
        text=json.dumps({"code": 0, "items": ITEMS}), content_type="application/json"
    )
    assert await run("restock.py", gateway.url, TOKENS["script"]) == (0, "Lantern: order 6\n")
    [call] = gateway.upstream.got
    assert call.target.startswith("/eu/inventory/v1/items?")


async def test_restock_gives_up_without_a_valid_token(gateway):
    status, said = await run("restock.py", gateway.url, "another-token")
    assert (status, gateway.upstream.got) == (1, [])
    assert "401" in said


async def test_curl_command_of_the_page_gets_the_items(gateway):
    page = (ROOT / "docs/gateway.md").read_text("utf-8")
    command, *_ = re.findall(r"^```sh\n(curl .*?)^```$", page, re.MULTILINE | re.DOTALL)
    needs("curl")
    filled = command.replace("http://127.0.0.1:3001", gateway.url).replace("10234695", EU)
    gateway.upstream.responds(text='{"code": 0, "items": []}', content_type="application/json")
    shell = (needs("bash"), "-c", filled.replace("curl ", "curl --silent ", 1))
    assert await follow(shell, gateway.url, TOKENS["script"]) == (0, '{"code": 0, "items": []}')
    [call] = gateway.upstream.got
    assert call.target.startswith("/eu/inventory/v1/items?")
