"""Tests the `check`, `manifest` and `policy explain` commands of `python -m bot`."""

import json
import os
from dataclasses import replace

import pytest
import tomli_w

from sandbox.services.running import running_services
from sandbox.services.state import ServicesState
from sandbox.slack.server import running_slack
from tests.support.forks import run_forked
from tests.support.world import environment_for


async def run(environment: dict[str, str], *arguments: str) -> tuple[int, str]:
    return await run_forked(arguments, {"PATH": os.environ["PATH"], **environment})


@pytest.fixture
async def slack():
    async with running_slack() as running:
        yield running


@pytest.fixture
async def environment(sqlite_url, slack):
    async with running_services(ServicesState()) as services:
        yield environment_for(slack, services, sqlite_url)


async def test_all_well_is_exit_status_0_and_without_a_warning(environment, tmp_path) -> None:
    file = tmp_path / "gatehouse.toml"
    settings = {name.lower(): value for name, value in environment.items()}
    file.touch(mode=0o600)
    file.write_text(tomli_w.dumps(settings), encoding="utf-8")
    # Kubernetes sets this variable for a Service named "gatehouse".
    links = {
        "GATEHOUSE_SERVICE_HOST": "10.96.0.1",
        "GATEHOUSE_SERVICE_PORT_HTTP": "80",
        "GATEHOUSE_PORT": "tcp://10.96.0.1:80",
        "GATEHOUSE_PORT_80_TCP_ADDR": "10.96.0.1",
    }
    status, out = await run({"GATEHOUSE_CONFIG": str(file), **links}, "check")
    assert status == 0, out
    assert out.splitlines()[-1] == "All is well."
    assert "WARN" not in out
    assert "inventory com.cn" in out
    file.chmod(0o644)
    status, out = await run({"GATEHOUSE_CONFIG": str(file)}, "check")
    assert (status, "chmod 0600" in out) == (0, True), out


async def test_a_mistake_is_exit_status_1_and_no_secret_is_printed(environment) -> None:
    environment["FLOW_AUTH_TOKEN"] = "an-old-flow-token"
    status, out = await run(environment, "check", "--json")
    assert status == 1
    report = json.loads(out)
    assert report["ok"] is False
    assert [item["code"] for item in report["checks"] if not item["ok"]] == ["credentials_refused"]
    secrets = ["an-old-flow-token", environment["SLACK_BOT_TOKEN"], "demo-eu", "SG.demo-key"]
    assert not any(secret in out for secret in secrets)


async def test_wrong_settings_are_exit_status_2(environment) -> None:
    environment["EMAIL_AUTH"] = "password"
    status, out = await run(environment, "check")
    assert status == 2
    assert "account passwords ended in Q4 2020" in out
    status, out = await run(environment, "check", "--json")
    assert status == 2
    assert [load["code"] for load in json.loads(out)["checks"]] == ["setting_wrong"]


async def test_the_manifest_needs_no_settings() -> None:
    status, out = await run({}, "manifest", "--url", "https://bot.example.org")
    assert status == 0
    assert "https://bot.example.org/slack/events" in out
    assert (await run({}, "manifest", "--socket"))[0] == 0
    status, out = await run({}, "manifest", "--socket", "--link")
    assert (status, out.count("\n")) == (0, 1)
    status, out = await run({}, "manifest", "--url", "http://bot.example.org")
    assert (status, out.startswith("Slack calls only https:// addresses")) == (2, True)


async def test_help_names_the_commands_and_speaks_of_gatehouse() -> None:
    status, out = await run({}, "--help")
    assert status == 0
    assert "check" in out
    assert "invalid choice: 'hlep'" in (await run({}, "hlep"))[1]
    for command in (["manifest"], ["sandbox", "--help"]):
        assert "python -m" not in (await run({}, *command))[1]


@pytest.fixture
def with_policies(environment) -> dict[str, str]:
    auto = {"from": ["S0APPROVERS"], "longest": "4h", "a_day": 5}
    welcome = {"approvers": ["S0APPROVERS"], "longest": "7d", "auto": auto}
    return {**environment, "FLOW_POLICIES": json.dumps({"welcome": welcome})}


async def test_a_member_of_a_named_group_can_approve_by_the_policy(with_policies, slack) -> None:
    person = slack.workspace.people["U0APPROVER2"]
    slack.workspace.people[person.id] = replace(person, name="Ada\x1b[2K\nAdmins")
    status, out = await run(with_policies, "policy", "explain", "welcome", "U0APPROVER2")
    assert status == 0
    assert "approvers: S0APPROVERS [FLOW_POLICIES (this flow)]" in out
    # Her name stays on its line.
    verdict = "can approve as S0APPROVERS [FLOW_POLICIES (this flow)]"
    assert f"Ada\\x1b[2K\\nAdmins (U0APPROVER2) {verdict}" in out
    assert "People can't approve their own requests [ALLOW_SELF_APPROVAL]" in out
    rule = "requests from S0APPROVERS for at most 4h, up to 5 per person per day"
    assert f"auto: {rule} [FLOW_POLICIES (this flow)]" in out
    assert all(line.endswith("]") for line in out.splitlines())


async def test_person_may_be_named_or_left_out(with_policies) -> None:
    status, rules = await run(with_policies, "policy", "explain", "survey")
    assert status == 0
    assert "approvers: U0APPROVER, S0APPROVERS, U0ADMIN [ROLES]" in rules
    assert "channel: not set [APPROVALS_CHANNEL]" in rules
    status, out = await run(with_policies, "policy", "explain", "survey", "@ada")
    assert status == 0
    assert "(U0APPROVER) can approve as U0APPROVER [ROLES]" in out
    assert set(rules.splitlines()) < set(out.splitlines())


async def test_a_flow_without_an_alias_is_in_no_setting(with_policies) -> None:
    sid = "FW00000000000000000000000000000009"
    _, out = await run(with_policies, "policy", "explain", sid)
    assert out.splitlines()[0] == f"Flow {sid}"


@pytest.mark.parametrize(
    ("flow", "user", "said"),
    [
        ("nowhere", "U0ADMIN", "There's no flow nowhere."),
        ("welcome", "U0NOBODY", "Can't look up U0NOBODY: Slack rejected this: user_not_found"),
        ("welcome", "@abbel", "Can't look up @abbel: person: No person or user group is named"),
    ],
)
async def test_an_unknown_flow_is_exit_status_1(with_policies, flow, user, said) -> None:
    status, out = await run(with_policies, "policy", "explain", flow, user)
    assert (status, said in out) == (1, True)


async def test_an_explanation_leaves_the_database_alone(with_policies, tmp_path) -> None:
    database = tmp_path / "explained.db"
    with_policies["DATABASE_URL"] = f"sqlite:///{database}"
    for user in ("U0NOBODY", "U0APPROVER2"):
        await run(with_policies, "policy", "explain", "welcome", user)
    assert not database.exists()


async def test_missing_scope_is_not_taken_for_an_unknown_person(with_policies, slack) -> None:
    slack.workspace.faults.error("users.info", "missing_scope", times=None)
    status, out = await run(with_policies, "policy", "explain", "welcome", "U0ADMIN")
    assert (status, "missing_scope" in out) == (1, True)
