"""Test that each alert fires on the first event after the bot starts."""

from collections.abc import Mapping

import yaml

from tests.docs.test_rules import RULES, promtool, rules

# For each alert, the series that change, and their new values at 30 s intervals.
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


async def test_alerts_fire_from_the_series_of_a_fresh_process(gateway, tmp_path):
    page = gateway.world.bot.metrics.page().decode()
    # A label's value may contain a blank; a sample's line ends with its value.
    fresh = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    # A scrape of a healthy process also has Prometheus' own series and the database's.
    fresh |= {'up{job="gatehouse"}': "1", "gatehouse_database_up": "1"}
    tests = [expected(fresh, {}, [])]
    for alert, events in EVENTS.items():
        assert set(events) <= set(fresh)
        tests.append(expected(fresh, events, [{"labels": f'{{alertname="{alert}"}}', "value": 1}]))
    test = {"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": tests}
    path = tmp_path / "fresh.yml"
    path.write_text(yaml.safe_dump(test), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(path))


def expected(
    fresh: Mapping[str, str], events: Mapping[str, str], firing: list[dict[str, object]]
) -> dict[str, object]:
    """Return a promtool test that passes if the events make exactly these alerts fire."""
    series = [
        {"series": name, "values": f"{value}x9 {events.get(name, f'{value}x60')}"}
        for name, value in fresh.items()
        if name.startswith(("up", "gatehouse_"))
    ]
    looked_at = {
        "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
        "eval_time": "30m",
        "exp_samples": firing,
    }
    return {"interval": "30s", "input_series": series, "promql_expr_test": [looked_at]}


def test_every_alert_is_tested() -> None:
    assert [rule["alert"] for rule in rules()] == list(EVENTS)
