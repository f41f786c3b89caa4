"""`gatehouse setup --answers` writes a settings file, and reports each wrong answer."""

import os
import re
import stat
import tomllib
from dataclasses import fields
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.rules import FlowPolicy
from bot.ids import NamedIds
from bot.permissions import Role
from bot.settings import Settings, settings_from
from bot.settings.files import find_sources
from bot.settings.model import SERVICES
from bot.setup.names import PEOPLE
from bot.setup.run import write_settings
from sandbox.services.faults import Fault, FaultKind
from sandbox.services.state import EMAIL_KEY

pytestmark = pytest.mark.slow


def settings_in(place):
    return settings_from(find_sources({"GATEHOUSE_CONFIG": str(place.out)}))


def lists(place):
    return {sid: list(flow.identities) for sid, flow in place.services.state.flows.items()}


async def test_right_answers_are_written_checked_and_enough_to_start(place):
    before = lists(place)
    status, said = await place.set_up()
    assert (status, "All is well." in said) == (0, True), said
    link = re.search(r"https://api.slack.com/apps\?\S+", said)
    assert "https://bot.example.com/slack/events" in unquote(link[0])
    assert link.start() < said.index("slack token")
    assert stat.S_IMODE(place.out.stat().st_mode) == 0o600
    assert lists(place) == before
    assert all(flow.history == [] for flow in place.services.state.flows.values())
    settings = settings_in(place)
    assert settings.roles == {
        "viewer": ("*",),
        "operator": ("U0OPERATOR",),
        "approver": ("U0APPROVER", "S0APPROVERS"),
        "admin": ("U0ADMIN",),
    }
    assert (settings.alerts_channel, settings.approvals_channel) == ("C0ALERTS", "C0APPROVALS")
    assert settings.inventory_auth_header == "Zoho-oauthtoken {token}"
    assert settings.flow_form_field == "TestUsers"
    assert settings.slack_api_url == place.slack.api_url
    secrets = ["demo-code-eu", "demo-refresh-eu", "demo-client-secret", "demo-flow-token"]
    assert not [secret for secret in secrets if secret in said]
    status, said = await place.run("check", GATEHOUSE_CONFIG=str(place.out))
    assert status == 0, said


async def test_omitted_service_stays_unconfigured(place):
    for name in (*SERVICES["flow"], *SERVICES["email"]):
        del place.answers[name.lower()]
    status, said = await place.set_up()
    assert status == 0, said
    settings = settings_in(place)
    assert settings.missing_for("flow")
    assert settings.missing_for("email")


async def test_a_missing_scope_has_the_vendors_name(place):
    fault = Fault(FaultKind.STATUS, "inventory", status=403, times=2)
    place.services.state.faults.add(fault)
    status, said = await place.set_up()
    assert (status, "needs the scope ZohoInventory.settings.READ" in said) == (1, True), said


async def test_a_file_that_was_there_is_kept(place):
    place.out.write_text("OLD=1\n", encoding="utf-8")
    assert (await place.set_up())[0] == 0
    kept = place.out.with_name("gatehouse.toml.bak")
    assert kept.read_text(encoding="utf-8") == "OLD=1\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


EU = "inventory_data_centers/eu"
# The answer, a wrong value, the exit status, and words from the message that names it.
WRONG = [
    ("slack_bot_token", "xoxb-gone", 2, "refuses slack_bot_token (invalid_auth)"),
    ("slack_signing_secret", "abc", 1, "SLACK_SIGNING_SECRET"),
    ("slack_signing_secret", None, 2, "SLACK_SIGNING_SECRET is required unless"),
    ("setup/url", None, 2, "url: "),
    ("setup/url", "http://bot.example.com", 2, "url: Slack calls only https:// addresses"),
    ("setup/url", 7, 2, "url: Slack calls only https:// addresses"),
    ("setup/inventory", "zoo", 2, "setup → inventory must be one of: zoho, other."),
    ("setup/inventory", ["zoho"], 2, "setup → inventory must be one of: zoho, other."),
    ("setup/vendor", "zoho", 2, "setup → vendor is not a known key."),
    ("setup", "zoho", 2, "setup must be a table."),
    ("aprovers", ["@ada"], 2, "aprovers is not a setting."),
    ("alerts_channel", "#alarts", 2, "Gatehouse can't see a channel named “#alarts”"),
    ("alerts_channel", "alerts", 2, "“alerts” is not a channel ID"),
    ("alert_channel", "C1", 2, "alert_channel is not a setting. Did you mean alerts_channel?"),
    ("approvals_channel", "#alerts", 1, "is public"),
    (
        "roles/approver",
        ["@abbel", "@ada"],
        2,
        "roles → approver: No person or user group is named “@abbel”",
    ),
    ("roles/approver", ["abbel"], 2, "“abbel” is not a user ID"),
    (
        "roles/approver",
        ["U0NOBODY", "@ada"],
        1,
        "U0NOBODY in ROLES: Slack rejected this: user_not_found",
    ),
    ("access_contact", "@nobody", 2, "access_contact: No person or user group"),
    (
        "flow_policies",
        {"welcome": {"channel": "#nowhere"}},
        2,
        "flow_policies → welcome → channel: Gate",
    ),
    (
        "flow_policies",
        {"welcome": {"notify": ["@nobody"]}},
        2,
        "flow_policies → welcome → notify: No p",
    ),
    ("inventory_plans", {"com/1": "free"}, 2, "com/1 isn't in a configured data center"),
    (f"{EU}/oauth/code", "demo-code-used", 1, "eu: code was rejected (invalid_code)"),
    (f"{EU}/oauth/code", "demo-code-in", 1, "inventory eu"),
    (f"{EU}/oauth/client_secret", "x", 1, "client_secret was rejected"),
    (f"{EU}/oauth/client_id", None, 2, "eu → oauth → client_id: is required"),
    (f"{EU}/oauth/refresh_token", "x", 2, "oauth: needs either code or refresh_token"),
    (f"{EU}/oauth/token_url", "http://oauth.example", 2, "oauth → token_url: must start with"),
    (f"{EU}/base_url", "inventory.example", 2, "eu → base_url: must be an address"),
    (f"{EU}/base_url", "http://127.0.0.1:1/inventory/v1", 1, "inventory eu"),
    (EU, {"authtoken": "demo-com", "base_url": "http://127.0.0.1:1"}, 1, "inventory eu"),
    ("slack_app_token", "xapp-gone", 1, "Slack refuses SLACK_APP_TOKEN"),
    ("flow_auth_token", "old-token", 1, "Check FLOW_ACCOUNT_SID and FLOW_AUTH_TOKEN"),
    ("flow_account_sid", "AC00000000000000000000000000000009", 1, "Check FLOW_ACCOUNT_SID"),
    ("flow_aliases", {"welcome": "FW" + "9" * 32}, 1, "There is no flow FW999"),
    ("email_api_key", "SG.gone-key", 1, "the key is incorrect or has been deleted"),
    ("flow_base_url", "https://flow..example", 1, "its host name can't be found"),
    ("slack_api_url", "http://slack.example/api/", 2, "SLACK_API_URL must start with https://"),
    ("email_base_url", "http://email.example", 2, "EMAIL_BASE_URL must start with https://"),
]


@pytest.mark.parametrize(
    ("path", "value", "status", "words"),
    WRONG,
    ids=[f"{path}={value}" for path, value, *_ in WRONG],
)
async def test_a_wrong_answer_is_named_and_no_list_is_changed(place, path, value, status, words):
    before = lists(place)
    place.set(path, value)
    found, said = await place.set_up()
    assert (found, words in said) == (status, True), said
    assert "Traceback" not in said
    assert place.out.exists() == (status == 1)
    assert lists(place) == before


async def test_a_wrong_path_of_the_email_service_is_named(place):
    place.set("email_base_url", f"{place.answers['email_base_url']}/api")
    status, said = await place.set_up()
    assert (status, "or EMAIL_BASE_URL is incorrect" in said) == (1, True), said


# What a service refuses, and the settings that are then left out of the file.
REFUSED = [
    (f"{EU}/oauth/code", "demo-code-used", "inventory_data_centers"),
    ("flow_auth_token", "old-token", "flow_base_url flow_account_sid flow_auth_token"),
    ("email_api_key", "SG.gone-key", "email_base_url email_api_key"),
    ("slack_app_token", "xapp-gone", "slack_app_token"),
]


@pytest.mark.parametrize(("path", "value", "names"), REFUSED)
async def test_what_a_service_refused_is_left_out_of_the_file(place, path, value, names):
    place.set(path, value)
    status, said = await place.set_up()
    assert (status, f"Left out of {place.out}: " in said) == (1, True), said
    settings = settings_in(place)
    assert not any(getattr(settings, name) for name in names.split())
    assert settings.flow_aliases
    status, said = await place.run("check", GATEHOUSE_CONFIG=str(place.out))
    assert status == 0, said


async def test_names_may_stand_for_ids_in_a_policy(place):
    rule = {"from": ["@otto"], "longest": "4h", "a_day": 5}
    policy = {"approvers": ["@approvers"], "requesters": ["@otto"], "channel": "#approvals"}
    place.set("flow_policies", {"welcome": {**policy, "auto": rule}})
    place.set("access_contact", "@adam")
    status, said = await place.set_up()
    assert status == 0, said
    settings = settings_in(place)
    rules = settings.flow_policies["welcome"]
    assert (rules.approvers, rules.requesters) == (("S0APPROVERS",), ("U0OPERATOR",))
    assert (rules.automatic, rules.channel) == (("U0OPERATOR",), "C0APPROVALS")
    assert settings.access_contact == "U0ADMIN"


def test_every_key_that_lists_people_takes_names():
    rules = {rule.name for rule in fields(FlowPolicy) if rule.type == NamedIds | None}
    assert "notify" in rules
    assert {*rules, *Role} <= PEOPLE


async def test_settings_of_the_file_override_those_of_the_vendor(place):
    place.set("flow_form_field", "testUsers")
    place.set("database_url", f"sqlite:///{place.folder}/own.db")
    await place.set_up()
    settings = settings_in(place)
    assert settings.flow_form_field == "testUsers"
    assert settings.database_url.get_secret_value().endswith("own.db")


@pytest.mark.parametrize("service", ["flow", "email"])
async def test_another_vendor_needs_an_address(place, service):
    place.set(f"{service}_base_url", None)
    place.set(f"setup/{service}", "other")
    status, said = await place.set_up()
    assert (status, f"Set {service.upper()}_BASE_URL too" in said) == (1, True), said


async def test_another_vendors_codes_need_an_address_for_tokens(place):
    place.set(f"{EU}/oauth/token_url", None)
    place.set("setup/inventory", "other")
    status, said = await place.set_up()
    assert (status, "eu → oauth → token_url: is required" in said) == (2, True), said


async def test_link_to_the_settings_file_stays(place):
    real = place.folder / "real.toml"
    real.write_text("OLD=1\n", encoding="utf-8")
    place.out.symlink_to(real.name)
    assert (await place.set_up())[0] == 0
    assert place.out.is_symlink()
    assert "xoxb-sandbox" in real.read_text(encoding="utf-8")
    assert real.with_name("real.toml.bak").read_text(encoding="utf-8") == "OLD=1\n"


async def test_line_break_after_an_answer_is_not_written(place):
    place.answers["slack_bot_token"] += "\n"
    place.answers["email_api_key"] += "\n"
    status, said = await place.set_up()
    assert status == 0, said
    assert settings_in(place).email_api_key.get_secret_value() == EMAIL_KEY


async def test_one_refused_code_loses_no_other(place):
    eu = place.answers["inventory_data_centers"]["eu"]
    other = {**eu, "base_url": place.services.inventory_url("in")}
    place.set("inventory_data_centers/in", {**other, "oauth": {**eu["oauth"], "code": "demo-used"}})
    status, said = await place.set_up()
    assert (status, "in: code was rejected" in said) == (1, True), said
    (center,) = settings_in(place).inventory_data_centers.values()
    assert center.oauth.refresh_token.get_secret_value() == "demo-refresh-eu"


async def test_what_names_a_refused_data_center_is_left_out_with_it(place):
    eu = place.answers["inventory_data_centers"]["eu"]
    other = {"authtoken": "demo-wrong", "base_url": place.services.inventory_url("in")}
    code = {**eu, "oauth": {**eu["oauth"], "code": "demo-used"}}
    code["base_url"] = place.services.inventory_url("jp")
    place.set("inventory_data_centers", {"eu": eu, "in": other, "jp": code})
    place.set("inventory_plans", {"eu/1": "premium", "in/1": "premium", "jp/1": "premium"})
    client = {"token_sha256": "0" * 64, "organizations": ["eu/1", "jp/1"]}
    place.set("gateway_clients", {"script": client})
    status, said = await place.set_up()
    assert (status, "gateway_clients → script: it needs the data center jp." in said) == (1, True)
    settings = settings_in(place)
    assert [*settings.inventory_plans] == ["eu/1"]
    assert not settings.gateway_clients


@pytest.mark.parametrize("prepare", [os.mkfifo, lambda out: out.symlink_to(out.name)])
async def test_only_a_file_is_replaced(place, prepare):
    prepare(place.out)
    status, said = await place.set_up()
    assert (status, "gatehouse.toml can't be written" in said) == (2, True), said
    assert not place.out.is_file()


async def test_workspace_without_user_groups_can_be_set_up(place):
    place.slack.workspace.faults.error("usergroups.list", "plan_upgrade_required", times=None)
    place.set("roles/approver", ["U0APPROVER"])
    status, said = await place.set_up()
    assert status == 0, said


async def test_file_listens_locally_and_protects_the_metrics(place):
    await place.set_up()
    settings = settings_in(place)
    assert settings.host == "127.0.0.1"
    assert len(settings.metrics_token.get_secret_value()) >= 32


async def test_each_setting_in_the_file_has_a_comment(place):
    await place.set_up()
    text = place.out.read_text(encoding="utf-8")
    names = find_sources({"GATEHOUSE_CONFIG": str(place.out)}).table
    assert {"slack_bot_token", "roles", "inventory_data_centers"} <= names.keys()
    for name in names:
        comment = re.escape(Settings.model_fields[name].description)
        assert re.search(rf"(?m)^# {comment}\n\[?{name}\b", text), name


async def test_several_wrong_answers_are_named_together(place):
    place.set("roles/approver", ["@nobody"])
    place.set("alerts_channel", "#nowhere")
    status, said = await place.set_up()
    assert status == 2
    assert "roles → approver: " in said
    assert "alerts_channel: " in said
    assert [file.name for file in place.folder.iterdir()] == ["answers.toml"]


async def test_a_code_without_a_refresh_token_is_reported(place):
    place.services.state.oauth.gives_refresh_token = False
    status, said = await place.set_up()
    assert (status, "no refresh token was returned" in said) == (1, True), said


async def test_the_example_of_the_page_is_a_file_of_answers(place):
    page = (Path(__file__).parents[2] / "docs/vendors.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n# answers.toml\n(.*?)```", page, re.DOTALL)
    told = tomllib.loads(example)
    assert {*place.answers} - {"flow_base_url", "email_base_url"} == {*told}
    assert {*place.answers["setup"]} == {*told["setup"]}


async def test_without_a_terminal_answers_are_asked_for(place):
    status, said = await place.run("setup", "--out", str(place.out))
    assert (status, "--answers" in said) == (2, True), said


VALUES = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1)
NAMES = st.sampled_from(["slack_bot_token", "email_api_key", "flow_account_sid"])
ALIASES = st.dictionaries(VALUES, VALUES, min_size=1)


@given(st.dictionaries(NAMES, VALUES), ALIASES)
def test_every_value_comes_back(tmp_path_factory, settings, aliases):
    file = tmp_path_factory.getbasetemp() / "any.toml"
    settings = {**settings, "flow_aliases": aliases}
    write_settings(file, settings)
    assert find_sources({"GATEHOUSE_CONFIG": str(file)}).table == settings
