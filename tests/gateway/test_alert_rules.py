"""Each rule that counts fires on the first event after a start, as a real bot counts it."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.docs.test_rules import RULES, promtool
from tests.gateway.conftest import running_gateway
from tests.support.entries import payload_of
from tests.support.entry_points import EntryPoint

SERIES = re.compile(r"^(gatehouse_\w+_total\{.*\}) (\d+)\.0$", re.MULTILINE)
EVENT_MINUTES, LATER_MINUTES = 5, 8


def counted(bot) -> dict[str, int]:
    return {name: int(value) for name, value in SERIES.findall(bot.metrics.page().decode())}


def fired(before: Mapping[str, int], after: Mapping[str, int], folder: Path) -> None:
    """Have Prometheus look at both scrapes, and expect the four alerts."""
    series = [
        {
            "series": name,
            "values": f"{before[name]}x9 {value}x20" if name in before else f"_x9 {value}x20",
        }
        for name, value in after.items()
    ]
    names = (
        "GatehouseCredentialRefused",
        "GatehouseFault",
        "GatehouseGatewayFault",
        "GatehouseRequestsRefused",
    )
    expected = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in names]
    looked_at = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": f"{LATER_MINUTES}m",
        "exp_samples": expected,
    }
    tried = {"interval": "30s", "input_series": series, "promql_expr_test": [looked_at]}
    test = {"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": [tried]}
    path = folder / "first.yml"
    path.write_text(yaml.safe_dump(test), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(path))


async def test_first_event_of_each_kind_fires_its_rule(sqlite_url, tmp_path, monkeypatch):
    async with running_gateway(sqlite_url, email_api_key="SG.an-old-key") as caller:
        bot, slack = caller.world.bot, caller.world.slack
        before = counted(bot)

        def broken(*_arguments: object, **_more: object) -> None:
            raise RuntimeError("ours")

        monkeypatch.setattr("bot.ui.testusers.pages.FlowPage.of", broken)
        monkeypatch.setattr("bot.gateway.server._address", broken)
        turned = EntryPoint("action", "testusers.list_page.next", None, "x")
        await slack._deliverer.interaction(payload_of(slack, "U0VIEWER", turned, "x"))
        await slack.command("U0VIEWER", "C0GENERAL", "/emailkey", "check")
        assert await caller.status("/eu/organizations") == 500
        secret, slack._deliverer.signing_secret = slack._deliverer.signing_secret, "another"
        await slack.command("U0VIEWER", "C0GENERAL", "/orgs")
        slack._deliverer.signing_secret = secret

        def all_counted() -> bool:
            told = [name for name, value in counted(bot).items() if value > before.get(name, 0)]
            words = ('outcome="broken"', 'status="401"', 'cause="wrong_signature"')
            return all(any(word in name for name in told) for word in words)

        await slack.until(all_counted)
        await bot.tasks.drain(5)
        fired(before, counted(bot), tmp_path)


@pytest.mark.parametrize("word", ["broken", "unauthorized"])
async def test_gateway_counts_at_zero_before_it_happens(gateway, word):
    assert any(f'outcome="{word}"' in name for name in counted(gateway.world.bot))
