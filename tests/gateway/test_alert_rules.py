"""Each rule that counts fires on the first event after a start, as a real bot counts it."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.docs.test_rules import RULES, promtool, rules
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
            "values": f"{before.get(name, '_')}x9 {value}x20",
        }
        for name, value in {"up{job='gatehouse'}": 1, **after}.items()
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

        monkeypatch.setattr("bot.testusers.messages.pages.FlowPage.of", broken)
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


# For each alert the series that change, and their values from then on, every 30 s.
GATEWAY = 'gatehouse_gateway_requests_total{client="nightly",data_center="eu",outcome="%s"}'
GROWS, GONE, THERE = "0+30x60", "0x60", "1x60"
EVENTS = {
    "GatehouseGone": {'up{job="gatehouse"}': GONE},
    "GatehouseDatabaseGone": {"gatehouse_database_up": GONE},
    "GatehousePartBroken": {'gatehouse_working{part="slack_scopes"}': GONE},
    "GatehouseRequestsRefused": {'gatehouse_slack_refused_total{cause="stale"}': GROWS},
    "GatehouseJobsLate": {'gatehouse_jobs{state="late"}': THERE},
    "GatehouseSlow": {
        'gatehouse_ack_seconds_bucket{le="3.0"}': GROWS,
        'gatehouse_ack_seconds_bucket{le="+Inf"}': GROWS,
    },
    "GatehouseFault": {'gatehouse_commands_total{name="/orgs",outcome="broken"}': GROWS},
    "GatehouseCredentialRefused": {
        'gatehouse_service_calls_total{service="flow",status="403"}': GROWS
    },
    "GatehouseGatewayFault": {GATEWAY % "broken": GROWS},
    "GatehouseGatewayTokens": {
        'gatehouse_gateway_requests_total{client="",data_center="",outcome="unauthorized"}': GROWS
    },
    "GatehouseGatewayStarved": {GATEWAY % "declined_day": GROWS},
}


@pytest.mark.parametrize("alert", [None, *EVENTS])
async def test_alert_fires_from_the_series_of_a_fresh_process(gateway, tmp_path, alert):
    page = gateway.world.bot.metrics.page().decode()
    # A label's value may have a blank, a sample's line ends with its value.
    fresh = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    # What a scrape of a process that works brings along: Prometheus' own series, and the database.
    fresh |= {'up{job="gatehouse"}': "1", "gatehouse_database_up": "1"}
    events = EVENTS.get(alert, {})
    assert set(events) <= set(fresh)
    looked_at = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": "30m",
        "exp_samples": [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else [],
    }
    series = [
        {"series": name, "values": f"{value}x9 {events.get(name, f'{value}x60')}"}
        for name, value in fresh.items()
        if name.startswith(("up", "gatehouse_"))
    ]
    tried = {"interval": "30s", "input_series": series, "promql_expr_test": [looked_at]}
    test = {"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": [tried]}
    path = tmp_path / "fresh.yml"
    path.write_text(yaml.safe_dump(test), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(path))


def test_every_alert_is_tested() -> None:
    assert [rule["alert"] for rule in rules()] == list(EVENTS)
