"""Test that alert rules are valid, documented and fire, and that one module writes requests."""

import re
import shutil
import subprocess
from pathlib import Path

import yaml

from bot.metrics import Metrics
from tests.support.needs import needs

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/gatehouse.rules.yml"


def rules() -> list[dict[str, str]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    return group["rules"]


def promtool(*arguments: str) -> str:
    ran = subprocess.run(
        [needs("promtool"), *arguments],
        cwd=RULES.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_rules_are_rules() -> None:
    assert f"{len(rules())} rules found" in promtool("check", "rules", RULES.name)


def test_scrape_example_names_the_job_of_the_rules(tmp_path) -> None:
    for path in (RULES, RULES.with_name("prometheus.example.yml")):
        shutil.copy(path, tmp_path)
    (tmp_path / "gatehouse.token").write_text("x", encoding="utf-8")
    example = tmp_path / "prometheus.example.yml"
    assert "1 rule files found" in promtool("check", "config", str(example))
    jobs = [item["job_name"] for item in yaml.safe_load(example.read_text())["scrape_configs"]]
    assert jobs == ["gatehouse"]


def test_rules_fire_when_they_should_and_only_then() -> None:
    assert "SUCCESS" in promtool("test", "rules", "gatehouse.test.yml")


def test_each_rule_is_tried_and_is_in_the_page() -> None:
    names = [rule["alert"] for rule in rules()]
    tried = (RULES.parent / "gatehouse.test.yml").read_text("utf-8")
    page = (ROOT / "docs/operations.md").read_text("utf-8")
    assert re.findall(r"^\| `(Gatehouse\w+)` \|", page, re.MULTILINE) == names
    assert all(f"alertname: {name}" in tried for name in names)


def test_rules_look_at_metrics_that_there_are() -> None:
    known = {metric.name for metric in Metrics().registry.collect()}
    for rule in rules():
        for name in re.findall(r"gatehouse_\w+", rule["expr"]):
            assert re.sub(r"_(total|bucket)$", "", name) in known


def test_only_one_module_writes_requests_and_their_people() -> None:
    write = re.compile(
        r"(?:\b(?:insert|update|delete|upsert|insert_into)\((?:tx, )?(?:requests|request_people)\b"
        r"|\b(?:requests|request_people)\.(?:insert|update|delete)\()"
    )
    writers = {
        (path.relative_to(ROOT).as_posix(), found)
        for path in [*ROOT.glob("bot/**/*.py"), *ROOT.glob("handlers/**/*.py")]
        if "migrations" not in path.parts
        for found in write.findall(path.read_text("utf-8"))
    }
    assert writers == {
        ("bot/testusers/work.py", "insert_into(requests"),
        ("bot/testusers/work.py", "insert_into(request_people"),
        # Retention.
        ("bot/testusers/store.py", "delete(requests"),
        ("bot/testusers/store.py", "delete(request_people"),
    }
