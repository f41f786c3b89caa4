"""`gatehouse setup --answers`: the file that it writes, and each wrong answer by its name."""

import json
import re
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.settings import read_settings
from bot.settings.env_file import load_env_file
from bot.setup.answers import SetupError, answers_of
from bot.setup.run import write_settings
from sandbox.services.faults import Fault, FaultKind

pytestmark = pytest.mark.slow


def settings_in(place):
    environment = {"GATEHOUSE_ENV_FILE": str(place.out)}
    load_env_file(environment)
    return read_settings(environment)


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
    status, said = await place.run("check", GATEHOUSE_ENV_FILE=str(place.out))
    assert status == 0, said


async def test_omitted_service_stays_unconfigured(place):
    del place.answers["flow"], place.answers["email"]
    status, said = await place.set_up()
    assert status == 0, said
    settings = settings_in(place)
    assert settings.missing_for("flow")
    assert settings.missing_for("email")


async def test_a_missing_scope_is_named_as_the_vendor_names_it(place):
    fault = Fault(FaultKind.STATUS, "inventory", status=403, times=2)
    place.services.state.faults.add(fault)
    status, said = await place.set_up()
    assert (status, "needs the scope ZohoInventory.settings.READ" in said) == (1, True), said


async def test_a_file_that_was_there_is_kept(place):
    place.out.write_text("OLD=1\n", encoding="utf-8")
    assert (await place.set_up())[0] == 0
    kept = place.out.with_name("gatehouse.env.bak")
    assert kept.read_text(encoding="utf-8") == "OLD=1\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


# The answer, a wrong value, the exit status, and words of the sentence that names it.
WRONG = [
    ("slack_bot_token", "xoxb-gone", 2, "refuses slack_bot_token (invalid_auth)"),
    ("slack_signing_secret", "abc", 1, "SLACK_SIGNING_SECRET"),
    ("url", "http://bot.example.com", 2, "url: Slack calls only https:// addresses"),
    ("alerts_channel", "#alarts", 2, "Gatehouse can't see a channel named “#alarts”"),
    ("approvals_channel", "#alerts", 1, "is public"),
    ("approvers", ["@abbel", "@ada"], 2, "approvers: No person or user group is named “@abbel”"),
    ("inventory/data_centers/eu/code", "demo-code-used", 2, "eu: code was rejected (invalid_code)"),
    ("inventory/data_centers/eu/code", "demo-code-in", 2, "code is for the data center in, not eu"),
    ("inventory/data_centers/eu/client_secret", "x", 2, "client_secret was rejected"),
    ("slack_app_token", "xapp-gone", 1, "Slack refuses SLACK_APP_TOKEN"),
    ("approvers", ["U0NOBODY", "@ada"], 1, "There is no user U0NOBODY"),
    ("inventory/base_url", "http://127.0.0.1:1/inventory/v1", 1, "inventory eu"),
    ("inventory/data_centers/eu", {"authtoken": "demo-com"}, 1, "inventory eu"),
    ("flow/auth_token", "old-token", 1, "Check FLOW_ACCOUNT_SID and FLOW_AUTH_TOKEN"),
    ("flow/aliases", {"welcome": "FW" + "9" * 32}, 1, "There is no flow FW999"),
    ("email/api_key", "SG.gone-key", 1, "The key is incorrect or has been deleted"),
    ("flow/account_sid", "AC00000000000000000000000000000009", 1, "Check FLOW_ACCOUNT_SID"),
    ("flow/vendor", "other", 1, "set FLOW_FORM_FIELD=TestUsers"),
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
        ("slack_signing_secret", None, "slack_signing_secret is required unless"),
        ("inventory/vendor", "zoo", "inventory → vendor must be 'zoho' or 'other'"),
        ("inventory/data_centers/uk", {"authtoken": "a"}, "inventory → data_centers → uk"),
        ("inventory/data_centers/eu/authtoken", "a", "data_centers → eu needs authtoken, or"),
        ("flow/form_field", "TestUsers", "flow → form_field is not a known key"),
    ],
)
async def test_a_key_or_type_that_is_wrong_is_named(place, path, value, words):
    place.set(path, value)
    with pytest.raises(SetupError) as error:
        answers_of(place.answers)
    assert words in error.value.problems[0]


async def test_several_wrong_answers_are_named_together(place):
    place.set("approvers", ["@nobody"])
    place.set("alerts_channel", "#nowhere")
    status, said = await place.set_up()
    assert status == 2
    assert "approvers: " in said
    assert "alerts_channel: " in said
    assert [file.name for file in place.folder.iterdir()] == ["answers.json"]


async def test_a_code_without_a_refresh_token_is_told(place):
    place.services.state.oauth.gives_refresh_token = False
    status, said = await place.set_up()
    assert (status, "no refresh token was returned" in said) == (2, True), said


def test_the_example_of_the_page_is_a_file_of_answers():
    page = (Path(__file__).parents[2] / "docs/vendors.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    assert answers_of(json.loads(example)).flow.vendor == "twilio"


async def test_without_a_terminal_answers_are_asked_for(place):
    status, said = await place.run("setup", "--out", str(place.out))
    assert (status, "--answers" in said) == (2, True), said


VALUES = st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" "))


@given(st.dictionaries(st.from_regex(r"[A-Z][A-Z_]{0,20}", fullmatch=True), VALUES))
def test_every_value_comes_back(tmp_path_factory, settings):
    file = tmp_path_factory.getbasetemp() / "any.env"
    write_settings(file, settings)
    read = {"GATEHOUSE_ENV_FILE": str(file)}
    load_env_file(read)
    assert {**settings, "GATEHOUSE_ENV_FILE": str(file)} == read
