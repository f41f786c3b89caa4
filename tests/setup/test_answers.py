"""`gatehouse setup --answers` writes a settings file, and reports each wrong answer."""

import json
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.settings import Settings, settings_from
from bot.settings.sources import find_sources
from bot.setup.answers import Answers, SetupError, answer_of
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
    assert "https://bot.example.com/slack/events" in said
    assert said.index("_metadata") < said.index("slack token")
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
    del place.answers["flow"], place.answers["email"]
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


# The answer, a wrong value, the exit status, and words from the message that names it.
WRONG = [
    ("slack_bot_token", "xoxb-gone", 2, "refuses slack_bot_token (invalid_auth)"),
    ("slack_signing_secret", "abc", 1, "SLACK_SIGNING_SECRET"),
    ("slack_signing_secret", None, 2, "SLACK_SIGNING_SECRET is required unless"),
    ("url", None, 2, "url: "),
    ("url", "http://bot.example.com", 2, "url: Slack calls only https:// addresses"),
    ("alerts_channel", "#alarts", 2, "Gatehouse can't see a channel named “#alarts”"),
    ("approvals_channel", "#alerts", 1, "is public"),
    ("approvers", ["@abbel", "@ada"], 2, "approvers: No person or user group is named “@abbel”"),
    ("inventory/data_centers/eu/code", "demo-code-used", 2, "eu: code was rejected (invalid_code)"),
    ("inventory/data_centers/eu/code", "demo-code-in", 1, "inventory eu"),
    ("inventory/data_centers/eu/client_secret", "x", 2, "client_secret was rejected"),
    ("slack_app_token", "xapp-gone", 1, "Slack refuses SLACK_APP_TOKEN"),
    (
        "approvers",
        ["U0NOBODY", "@ada"],
        1,
        "U0NOBODY in ROLES: Slack rejected this: user_not_found",
    ),
    ("inventory/base_url", "http://127.0.0.1:1/inventory/v1", 1, "inventory eu"),
    ("inventory/data_centers/eu", {"authtoken": "demo-com"}, 1, "inventory eu"),
    ("flow/auth_token", "old-token", 1, "Check FLOW_ACCOUNT_SID and FLOW_AUTH_TOKEN"),
    ("flow/aliases", {"welcome": "FW" + "9" * 32}, 1, "There is no flow FW999"),
    ("email/api_key", "SG.gone-key", 1, "the key is incorrect or has been deleted"),
    ("flow/account_sid", "AC00000000000000000000000000000009", 1, "Check FLOW_ACCOUNT_SID"),
    ("inventory/base_url", "inventory.example", 2, "eu → base_url: must be an address"),
    ("inventory/token_url", "http://oauth.example", 2, "oauth → token_url: must start with"),
    ("email/base_url", "http://email.example", 2, "EMAIL_BASE_URL must start with https://"),
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


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("aprovers", ["@ada"], "aprovers is not a known key."),
        ("admins", "@adam", "admins must be a valid list."),
        ("url", 7, "url must be a string."),
        ("inventory/vendor", "zoo", "inventory → vendor must be 'zoho' or 'other'"),
        ("inventory/data_centers/uk", {"authtoken": "a"}, "inventory → data_centers → uk"),
        (
            "inventory/data_centers/eu/authtoken",
            "a",
            "data_centers → eu needs either authtoken, or",
        ),
        ("flow/form_field", "TestUsers", "flow → form_field is not a known key"),
    ],
)
async def test_a_key_or_type_that_is_wrong_is_named(place, path, value, words):
    place.set(path, value)
    with pytest.raises(SetupError) as error:
        answer_of(Answers, place.answers)
    assert words in error.value.problems[0]


@pytest.mark.parametrize("service", ["inventory", "flow", "email"])
async def test_another_vendor_needs_an_address(place, service):
    del place.answers[service]["base_url"]
    place.set(f"{service}/vendor", "other")
    status, said = await place.set_up()
    assert (status, "must be an address" in said) == (2, True), said
    assert "base_url" in said.lower()


async def test_another_vendors_codes_need_an_address_for_tokens(place):
    del place.answers["inventory"]["token_url"]
    place.set("inventory/vendor", "other")
    status, said = await place.set_up()
    assert (status, "oauth → token_url: must be an address" in said) == (2, True), said


async def test_line_break_after_an_answer_is_not_written(place):
    place.answers["slack_bot_token"] += "\n"
    place.answers["email"]["api_key"] += "\n"
    status, said = await place.set_up()
    assert status == 0, said
    assert settings_in(place).email_api_key.get_secret_value() == EMAIL_KEY


async def test_code_that_was_used_before_another_failed_is_named(place):
    eu = place.answers["inventory"]["data_centers"]["eu"]
    place.set("inventory/data_centers/in", {**eu, "code": "demo-code-used"})
    status, said = await place.set_up()
    assert status == 2
    assert "in: code was rejected" in said
    assert "The code for eu has already been used. Create a new one." in said


async def test_workspace_without_user_groups_can_be_set_up(place):
    place.slack.workspace.faults.error("usergroups.list", "plan_upgrade_required", times=None)
    place.set("approvers", ["U0APPROVER"])
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
    place.set("approvers", ["@nobody"])
    place.set("alerts_channel", "#nowhere")
    status, said = await place.set_up()
    assert status == 2
    assert "approvers: " in said
    assert "alerts_channel: " in said
    assert [file.name for file in place.folder.iterdir()] == ["answers.json"]


async def test_a_code_without_a_refresh_token_is_reported(place):
    place.services.state.oauth.gives_refresh_token = False
    status, said = await place.set_up()
    assert (status, "no refresh token was returned" in said) == (2, True), said


def test_the_example_of_the_page_is_a_file_of_answers():
    page = (Path(__file__).parents[2] / "docs/vendors.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert answer_of(Answers, json.loads(example)).flow.vendor == "twilio"


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
