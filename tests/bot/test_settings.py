"""Each setting accepts valid values, and an error message explains each invalid value."""

import base64
import json

import pytest

from bot.configured import redactor_of
from bot.permissions import Role
from bot.settings import EXAMPLES, SettingsError
from tests.support.settings import LEAST, read_settings

SID = "FW0123456789abcdef0123456789abcdef"


def problems(**settings: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read_settings({**LEAST, **settings})
    return caught.value.problems


# Everybody reads the examples, so none of them may be a real key.
KEYS = {"SLACK_SIGNING_SECRET", "METRICS_TOKEN"}


@pytest.mark.parametrize("name", [name for name in EXAMPLES if name not in KEYS])
def test_every_example_is_taken(name):
    others = {
        "FLOW_ALIASES": f'{{"welcome": "{SID}"}}',
        "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
        "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "x"}}',
    }
    taken = read_settings({**LEAST, **others, name: EXAMPLES[name]})
    assert name.lower() in taken.model_fields_set


@pytest.mark.parametrize("name", [name for name in LEAST if name != "SLACK_SIGNING_SECRET"])
@pytest.mark.parametrize("value", ["", "  "])
def test_a_required_answer_is_asked_for(name, value):
    assert problems(**{name: value}) == [f"{name} is required (example: {name}={EXAMPLES[name]})"]


def test_the_signing_secret_is_required_unless_socket_mode():
    assert "is required unless SLACK_APP_TOKEN is set" in problems(SLACK_SIGNING_SECRET="")[0]
    socket = {"SLACK_SIGNING_SECRET": "", "SLACK_APP_TOKEN": "xapp-1"}
    assert read_settings({**LEAST, **socket}).slack_signing_secret is None


ONE_EU = '{"eu": {"authtoken": "secret-word"}}'
OAUTH_IN_THE_OPEN = (
    '{"eu": {"oauth": {"client_id": "x", "client_secret": "secret-word",'
    ' "refresh_token": "secret-word", "token_url": "http://accounts.example.com/token"}}}'
)
MISTAKES = [
    ("SLACK_BOT_TOKEN", "secret-word", "must start with xoxb-"),
    ("SLACK_APP_TOKEN", "secret-word", "must start with xapp-"),
    ("SLACK_API_URL", "slack.com/api", "must be an address that starts with https://"),
    ("SLACK_API_URL", "http://slack.com/api/", "must start with https://"),
    ("PORT", "a lot", "must be a whole number"),
    ("PORT", "65536", "must be less than or equal to 65535"),
    ("PORT", "-1", "must be greater than or equal to 0"),
    ("DATABASE_URL", "mysql://u:secret-word@h/d", "must start with postgresql://"),
    ("ROLES", "{", "is not JSON"),
    ("ROLES", "[" * 100_000, "is not JSON"),
    ("ROLES", "[]", "must be a JSON object"),
    ("ROLES", '{"viewer": "U0ADA"}', "viewer: “U0ADA” must be a list"),
    ("ROLES", '{"boss": ["U0ADA"]}', "boss: must be 'viewer', 'operator', 'approver' or 'admin'"),
    ("ROLES", '{"viewer": ["secret-word"]}', "viewer → 0: is not a user ID"),
    ("ROLES", '{"viewer": ["@ada"]}', "viewer → 0: “@ada” is not a user ID"),
    ("ROLES", '{"viewer": ["xoxb-1234"]}', "viewer → 0: is not a user ID"),
    ("ROLES", '{"admin": ["*"]}', "admin: can't be *"),
    ("ROLES", '{"viewer": [7]}', "viewer → 0: must be a string"),
    ("ALERTS_CHANNEL", "#alerts", "“#alerts” is not a channel ID (C…). A name isn't an ID"),
    ("APPROVALS_CHANNEL", "xoxb-1", "is not a channel ID"),
    ("INVENTORY_DATA_CENTERS", '{"uk": {"authtoken": "secret-word"}}', "uk: must be 'com', 'eu'"),
    ("INVENTORY_DATA_CENTERS", '{"eu": {}}', "eu: needs either authtoken or oauth, but not both"),
    ("INVENTORY_DATA_CENTERS", '{"eu": {"authtoken": ""}}', "eu → authtoken: must not be empty"),
    (
        "INVENTORY_DATA_CENTERS",
        '{"eu": {"token": "secret-word"}}',
        "eu → token: is not a known key",
    ),
    ("INVENTORY_DATA_CENTERS", '{"eu": 7}', "eu: must be a"),
    (
        "INVENTORY_DATA_CENTERS",
        f'{{"eu": {{"authtoken": "t", "organization_id": "{"1" * 300}"}}}}',
        "eu → organization_id: doesn't look like the example",
    ),
    (
        "INVENTORY_DATA_CENTERS",
        OAUTH_IN_THE_OPEN,
        "eu → oauth → token_url: must start with https://",
    ),
    ("INVENTORY_DATA_CENTERS", ONE_EU, "is required unless every data center has its own base_url"),
    ("INVENTORY_BASE_URL", "http://inventory.example.com", "must start with https://"),
    ("INVENTORY_BASE_URL", "https://u:secret-word@x.com", "must not contain a username, password"),
    ("INVENTORY_AUTH", "cookie", "must be 'query' or 'header'"),
    ("INVENTORY_AUTH_HEADER", "Bearer", "must contain {token}"),
    ("INVENTORY_DEFAULT_PLAN", "gold", "must be 'free', 'standard'"),
    ("INVENTORY_PLANS", '{"com/1": "gold"}', "com/1: “gold” must be 'free', 'standard'"),
    ("INVENTORY_PLANS", '{"1": "free"}', '1 has no data center. Write "<data center>/1"'),
    ("INVENTORY_PLANS", '{"*": "free"}', "* must be <data center>/<organization ID>"),
    ("INVENTORY_PLANS", '{"COM/1": "free"}', "COM/1 must be <data center>/<organization ID>"),
    ("INVENTORY_PLANS", '{"com/1": "free"}', "com/1 isn't in a configured data center"),
    ("INVENTORY_RESERVE", '{"com/*": {}}', "com/* must be <data center>/<organization ID>"),
    ("INVENTORY_RESERVE", '{"eu/1": {}}', "eu/1 isn't in a configured data center"),
    ("INVENTORY_CACHE_SECONDS", "-1", "must be greater than or equal to 0"),
    ("INVENTORY_CACHE_SECONDS", "inf", "must be"),
    ("INVENTORY_CACHE_SECONDS", "nan", "must be"),
    ("INVENTORY_WATCH", "perhaps", "must be on or off"),
    ("FLOW_BASE_URL", "http://flows.example.com", "must start with https://"),
    ("FLOW_FORM_FIELD", "test users", "doesn't look like the example"),
    ("FLOW_ALIASES", '{"welcome": "FW12"}', "welcome: “FW12” doesn't look like the example"),
    ("FLOW_ALIASES", f'{{"two words": "{SID}"}}', "two words: must be a name of up to 50"),
    ("FLOW_ALIASES", f'{{"*": "{SID}"}}', "*: must be a name"),
    ("FLOW_POLICIES", '{"nowhere": {}}', "refers to “nowhere”, which is neither"),
    ("FLOW_POLICIES", f'{{"{SID}": {{"approvers": []}}}}', "approvers: must not be empty"),
    ("FLOW_POLICIES", f'{{"{SID}": {{"approvers": ["*"]}}}}', "can't be *"),
    ("FLOW_POLICIES", '{"*": {"reason": "wanted"}}', "reason: “wanted” must be 'required'"),
    ("FLOW_POLICIES", f'{{"*": {{"warning": "{"x" * 151}"}}}}', "must have at most 150 characters"),
    ("FLOW_POLICIES", '{"*": {"warning": " "}}', "must not be empty"),
    ("FLOW_POLICIES", '{"*": {"warning": "\\u200b"}}', "must not be empty"),
    (
        "FLOW_POLICIES",
        '{"*": {"longest": "soon"}}',
        '* → longest: “soon” must be a duration such as "2h"',
    ),
    ("FLOW_POLICIES", '{"*": {"approvals_needed": 0}}', "must be greater than or equal to 1"),
    ("FLOW_POLICIES", '{"*": {"aprovers": ["U0ADA"]}}', "aprovers: is not a known key"),
    ("FLOW_POLICIES", '{"*": {"escalate_after": "2h"}}', "needs both escalate_after and"),
    ("FLOW_POLICIES", '{"*": {"escalate_to": ["U0ADA"]}}', "needs both escalate_after and"),
    ("APPROVALS_NEEDED", "0", "must be greater than or equal to 1"),
    ("ALLOW_SELF_APPROVAL", "maybe", "must be on or off"),
    ("REQUEST_HOURS", "0", "must be greater than 0"),
    ("REQUEST_HOURS", "nan", "must be less than"),
    ("REMIND_HOURS", "soon", "must be a number"),
    ("EMAIL_BASE_URL", "http://email.example.com", "must start with https://"),
    ("EMAIL_AUTH", "password", "account passwords ended in Q4 2020"),
    ("COMMANDS_PER_MINUTE", "-1", "must be greater than or equal to 0"),
    ("COMMANDS_PER_MINUTE", "1.5", "must be a whole number"),
    ("RETAIN_DAYS", "0", "must be greater than 0"),
    ("RETAIN_DAYS", "inf", "must be less than or equal to"),
    ("LOG_LEVEL", "LOUD", "must be 'DEBUG', 'INFO', 'WARNING' or 'ERROR'"),
    ("LOG_FORMAT", "xml", "must be 'json' or 'console'"),
    (
        "FLOW_POLICIES",
        '{"*": {"approvers": ["U0ADA"], "approvals_needed": 2}}',
        "needs more approvals than it has approvers",
    ),
    ("FLOW_BASE_URL", "https://flow.example.com/v2", "must not end with /v2"),
    ("EMAIL_BASE_URL", "https://email.example.com/v3/", "must not end with /v2 or /v3"),
    ("SLACK_SIGNING_SECRET", "xoxb-1234-abcd-1234", "is a token"),
    ("SLACK_BOT_TOKEN", '"xoxb-1"', "has quotation marks around its value"),
    ("SLACK_SIGNING_SECRET", "'8f742231b10e8888abcd99yyyzzz85a5'", "has quotation marks around"),
    ("DATABASE_URL", "“postgresql://db.example.com/x”", "has quotation marks around"),
    ("ROLES", """'{"viewer": ["*"]}'""", "has quotation marks around"),
    (
        "INVENTORY_DATA_CENTERS",
        """{"eu": {"authtoken": "'secret-word'"}}""",
        "eu → authtoken: has quotation marks around",
    ),
    ("HTTPS_PROXY", "proxy:3128", "must be an address that starts with"),
    ("HTTPS_PROXY", "socks5://proxy:1080", "must be an address that starts with"),
    ("HTTP_PROXY", "http://", "must be an address that starts with"),
    ("HTTP_PROXY", "http://proxy:port", "is not a valid address"),
    ("SSL_CERT_FILE", "/nowhere.pem", "doesn't point to a file"),
    ("SSL_CERT_FILE", __file__, "or has no certificates in the PEM format"),
    ("SSL_CERT_DIR", "/nowhere", "doesn't point to a directory"),
    ("EMAIL_API_KEY", "SG.a\nb", "invisible character"),
    (
        "FLOW_ALIASES",
        f'{{"Welcome": "FW{"0" * 31}1", "welcome": "FW{"0" * 31}2"}}',
        "differ only in case",
    ),
    ("FLOW_ALIASES", f'{{"FW{"0" * 31}1": "FW{"0" * 31}2"}}', "another flow's SID"),
]


@pytest.mark.parametrize(
    ("name", "value", "told"), MISTAKES, ids=lambda part: str(part)[:30].replace("\n", " ")
)
def test_each_mistake_is_one_line_with_an_example_and_no_value(name, value, told):
    found = problems(**{name: value})
    mine = [line for line in found if told in line]
    if name == "INVENTORY_DATA_CENTERS" and value == ONE_EU:
        name = "INVENTORY_BASE_URL"
    assert len(mine) == 1
    assert mine[0].startswith(f"{name} ")
    assert mine[0].endswith(f"(example: {name}={EXAMPLES[name]})")
    assert "\n" not in mine[0]
    assert "secret-word" not in "".join(found)


def test_all_problems_are_printed_together():
    found = problems(
        SLACK_BOT_TOKEN="wrong",
        PORT="x",
        ALERTS_CHANNEL="",
        INVENTORY_DATA_CENTERS=ONE_EU,
        FLOW_POLICIES='{"nowhere": {}}',
        DATABASE_URL="mysql://x",
        INVENTORY_AUTH_HEADER="none",
    )
    names = {line.split(maxsplit=1)[0] for line in found}
    assert names == {
        *("SLACK_BOT_TOKEN", "PORT", "ALERTS_CHANNEL", "INVENTORY_BASE_URL"),
        *("FLOW_POLICIES", "DATABASE_URL", "INVENTORY_AUTH_HEADER"),
    }
    assert len(found) == len(names)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "127.9.9.9"])
def test_plain_http_is_taken_on_this_machine(host):
    settings = read_settings({**LEAST, "SLACK_API_URL": f"http://{host}:9000/api/"})
    assert settings.slack_api_url == f"http://{host}:9000/api/"


@pytest.mark.parametrize("host", ["localhost.example.com", "127.0.0.1.example.com", "0.0.0.0"])
def test_plain_http_is_not_taken_on_what_only_looks_like_this_machine(host):
    assert "must start with https://" in problems(SLACK_API_URL=f"http://{host}/")[0]


def test_the_root_must_be_on_the_com_host_to_be_replaced():
    given = {"INVENTORY_DATA_CENTERS": ONE_EU, "INVENTORY_BASE_URL": "https://inventory.example.eu"}
    assert "must have a host that ends in .com" in problems(**given)[0]


def test_data_centers_with_an_address_of_their_own_need_no_root():
    centers = '{"eu": {"authtoken": "x", "base_url": "https://eu.example.com/v1"}}'
    settings = read_settings({**LEAST, "INVENTORY_DATA_CENTERS": centers})
    assert settings.inventory_data_centers["eu"].base_url == "https://eu.example.com/v1"


def test_approvers_of_a_flow_are_found_by_its_sid():
    settings = read_settings(
        {
            **LEAST,
            "FLOW_ALIASES": f'{{"welcome": "{SID}"}}',
            "FLOW_POLICIES": '{"welcome": {"approvers": ["U0ADA", "S0TEAM"]}}',
            "ROLES": '{"viewer": ["*"], "admin": ["S0ADMINS"]}',
        }
    )
    assert settings.policy.of_flow(SID).approvers == ("U0ADA", "S0TEAM")
    assert settings.policy.groups == {"S0TEAM", "S0ADMINS"}
    assert settings.policy.roles[Role.VIEWER] == ("*",)


def test_a_flow_that_is_named_twice_has_no_clear_approvers():
    found = problems(
        FLOW_ALIASES=f'{{"welcome": "{SID}"}}',
        FLOW_POLICIES=f'{{"welcome": {{}}, "{SID}": {{}}}}',
    )
    assert f"lists one flow twice: as “welcome” and as “{SID}”" in found[0]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ROLES", '{"admin": ["U0ADA"], "admin": ["U0OTTO"]}'),
        ("FLOW_POLICIES", '{"*": {"approvers": ["U0ADA"]}, "*": {"longest": "7d"}}'),
        ("APIS", '{"x": {"limits": {"minute": 5}, "limits": {"day": 5}}}'),
    ],
)
def test_a_key_that_occurs_twice_hides_nothing(name, value):
    assert f"{name} has a table in which a key occurs twice" in problems(**{name: value})[0]


@pytest.mark.parametrize("name", ["ROLES", "FLOW_ALIASES", "APIS", "FLOW_APPROVERS"])
def test_bytes_that_are_not_utf8_are_no_json(name):
    (problem, *_) = problems(**{name: '{"a\udcff": []}'})
    assert name in problem
    assert ("is not JSON (" in problem) == (name != "FLOW_APPROVERS")


def test_a_number_of_very_many_digits_is_wrong():
    assert problems(PORT="1" * 5_000)[0].startswith("PORT must be a whole number (")


def test_alias_that_is_nearly_known_is_offered():
    aliases = f'{{"welcome": "{SID}"}}'
    found = problems(FLOW_ALIASES=aliases, FLOW_POLICIES='{"Welcome": {}}')
    assert "neither an alias nor a flow SID. Did you mean welcome?" in found[0]


CENTER = {"authtoken": "x", "base_url": "https://Inventory.example/v1"}


def test_id_without_a_data_center_is_answered_with_the_key_to_write():
    centers = {name: {**CENTER, "base_url": f"https://x.example/{name}"} for name in ("com", "eu")}
    plans = '{"10234695": "free"}'
    (found,) = problems(INVENTORY_DATA_CENTERS=json.dumps(centers), INVENTORY_PLANS=plans)
    assert 'Write "com/10234695" or "eu/10234695"' in found


@pytest.mark.parametrize(
    "same",
    [
        "https://inventory.example/v1/",
        "https://inventory.example:443/v1",
        "https://inventory.example./%76%31",
    ],
)
def test_two_data_centers_have_two_addresses(same):
    centers = {"com": CENTER, "eu": {**CENTER, "base_url": same}}
    (found,) = problems(INVENTORY_DATA_CENTERS=json.dumps(centers))
    assert "eu: has the same address as com" in found


def test_other_data_centers_have_another_end_of_the_host():
    given = {
        "INVENTORY_BASE_URL": "https://www.common.com.example.com:8443/com/v1",
        "INVENTORY_DATA_CENTERS": '{"com": {"authtoken": "x"}, "com.au": {"authtoken": "x"}}',
    }
    settings = read_settings({**LEAST, **given})
    roots = [str(settings.root_of(name)) for name in settings.inventory_data_centers]
    host = "https://www.common.com.example"
    assert roots == [f"{host}.com:8443/com/v1", f"{host}.com.au:8443/com/v1"]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        (
            "FLOW_APPROVERS",
            '{"welcome": ["U0ADA"]}',
            '{"welcome": {"approvers": ["U0ADA"]}}. Where “*” has approvers, these counted before',
        ),
        ("FLOW_APPROVERS", "{", "Add its people to FLOW_POLICIES"),
        ("FLOW_APPROVERS", "{}", '{"welcome": {"approvers": ["U0ADA"]}}'),
        ("GATEHOUSE_ENV_FILE", "/etc/gatehouse/env", "set GATEHOUSE_CONFIG to its path"),
    ],
)
def test_setting_that_was_removed_says_what_to_write_instead(name, value, said):
    (found,) = problems(**{name: value})
    assert found.startswith(f"{name} was removed.")
    assert said in found


@pytest.mark.parametrize(
    "key", ["1000.0123456789abcdef.x", "xoxb-1-abc", "SG.abc", "AbCdEfGhIjKlMnOpQr"]
)
@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("INVENTORY_DATA_CENTERS", '{"%s": {"authtoken": "x"}}'),
        ("INVENTORY_DATA_CENTERS", '{"eu": {"%s": "x"}}'),
        ("ROLES", '{"%s": []}'),
        ("FLOW_POLICIES", '{"%s": {}}'),
        ("FLOW_POLICIES", '{"%s": {"escalate_after": "2h"}}'),
        ("FLOW_ALIASES", '{"%s": "x"}'),
        ("INVENTORY_PLANS", '{"%s": "free"}'),
        ("GATEWAY_CLIENTS", '{"x": {"token_sha256": "%s", "organizations": "*"}}'),
    ],
)
def test_secret_in_place_of_a_name_is_not_printed(name, table, key):
    assert key not in "".join(problems(**{name: table % key}))


@pytest.mark.parametrize(
    ("service", "given", "missing"),
    [
        ("inventory", {}, ("INVENTORY_DATA_CENTERS",)),
        ("flow", {}, ("FLOW_BASE_URL", "FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN")),
        ("flow", {"FLOW_BASE_URL": "https://f.example"}, ("FLOW_ACCOUNT_SID", "FLOW_AUTH_TOKEN")),
        ("email", {}, ("EMAIL_BASE_URL", "EMAIL_API_KEY")),
        ("email", {"EMAIL_BASE_URL": "https://e.example", "EMAIL_API_KEY": "SG.x"}, ()),
    ],
)
def test_a_service_says_which_settings_it_needs(service, given, missing):
    assert read_settings({**LEAST, **given}).missing_for(service) == missing


def test_plans_may_be_written_as_the_specification_does() -> None:
    settings = read_settings(
        {
            **LEAST,
            "INVENTORY_DATA_CENTERS": json.dumps({"eu": CENTER}),
            "INVENTORY_DEFAULT_PLAN": "Standard",
            "INVENTORY_PLANS": '{"eu/7": "Premium"}',
        }
    )
    assert settings.inventory_default_plan == "standard"
    assert settings.inventory_plans == {"eu/7": "premium"}


HASH = "ab" * 32


def clients(**entry: object) -> str:
    return json.dumps({"nightly": {"token_sha256": HASH, "organizations": "*", **entry}})


def test_gateway_client_may_read_everything_of_its_organizations():
    client = read_settings({**LEAST, "GATEWAY_CLIENTS": clients()}).gateway_clients["nightly"]
    assert (client.organizations, client.methods, client.share) == (("*",), ("GET",), 1.0)


@pytest.mark.parametrize(
    ("entry", "what"),
    [
        ({"token_sha256": "demo-gateway-token"}, "doesn't look like the example"),
        ({"organizations": []}, "must not be empty"),
        ({"organizations": "eu/10"}, "must be a list"),
        ({"organizations": ["us/10"]}, "us/10 must be <data center>/<organization ID>"),
        ({"organizations": ["eu/*"]}, "eu/* must be <data center>/<organization ID>"),
        ({"organizations": ["10"]}, '10 has no data center. Write "eu/10"'),
        ({"organizations": ["eu"]}, "eu must be <data center>/<organization ID>"),
        ({"organizations": ["eu/10", "com/10"]}, "com/10 isn't in a configured data center"),
        ({"methods": ["BREW"]}, "must be 'GET', 'HEAD'"),
        ({"methods": []}, "must not be empty"),
        ({"share": 0}, "must be greater than 0"),
        ({"share": 1.5}, "must be less than or equal to 1"),
        ({"token": "x"}, "is not a known key"),
    ],
)
def test_wrong_gateway_client_is_named(entry, what):
    centers = '{"eu": {"authtoken": "xyz", "base_url": "https://inventory.example.eu/v1"}}'
    found = problems(GATEWAY_CLIENTS=clients(**entry), INVENTORY_DATA_CENTERS=centers)
    assert len(found) == 1
    assert found[0].startswith("GATEWAY_CLIENTS nightly")
    assert what in found[0]
    assert HASH not in found[0]


@pytest.mark.parametrize("organization", ["xero", "com/10", "10"])
def test_a_client_of_an_api_that_is_wrong_is_no_second_problem(organization):
    apis = '{"xero": {"base_url": "https://api.xero.com", "token": "abc"}}'
    allowed = clients(organizations=["xero", organization])
    found = problems(APIS=apis, GATEWAY_CLIENTS=allowed)
    assert found[0].startswith("APIS xero → limits: is required")
    others = {"xero": 0, "com/10": 1, "10": 1}
    assert len(found) == 1 + others[organization]


def test_two_gateway_clients_have_two_tokens():
    entry = {"token_sha256": HASH, "organizations": "*"}
    found = problems(GATEWAY_CLIENTS=json.dumps({"a": entry, "b": entry}))
    assert "gives the same token to two clients" in found[0]


def test_gateway_never_listens_on_the_port_of_slack():
    assert "must differ from PORT" in problems(GATEWAY_PORT="3000")[0]


BAD_SECRETS = [
    ("METRICS_TOKEN", "m", "is too short: it must have at least 16 characters"),
    ("SLACK_SIGNING_SECRET", "s", "is too short"),
    ("SLACK_SIGNING_SECRET", "8f742231b10e8888abcd99yyyzzz85a5", "is the example"),
    ("METRICS_TOKEN", "a-long-random-word", "is the example"),
    ("SLACK_SIGNING_SECRET", "sandbox-signing-secret", "is the sandbox's"),
    ("SLACK_BOT_TOKEN", "xoxb-sandbox", "is the sandbox's"),
    ("EMAIL_API_KEY", "SG.demo-key", "is the sandbox's"),
    ("FLOW_AUTH_TOKEN", "demo-flow-token", "is the sandbox's"),
    ("EMAIL_API_KEY", "SG.abc\ndef", "contains a line break"),
    ("FLOW_AUTH_TOKEN", "abc\x01def", "contains a line break"),
]


@pytest.mark.parametrize(("name", "value", "words"), BAD_SECRETS)
def test_secret_that_is_none_is_refused(name, value, words):
    (problem,) = problems(**{name: value})
    assert problem.startswith(f"{name} {words}")
    assert len(value) == 1 or value not in problem.partition("(example")[0]


def test_credential_of_a_data_center_has_no_control_character():
    centers = json.dumps({"com": {"authtoken": "a\nb", "base_url": "https://x.example/v1"}})
    (problem,) = problems(INVENTORY_DATA_CENTERS=centers)
    assert "another invisible character" in problem


def test_weak_secrets_are_taken_beside_a_slack_on_this_machine():
    weak = {"SLACK_SIGNING_SECRET": "s", "SLACK_BOT_TOKEN": "xoxb-sandbox"}
    settings = read_settings({**LEAST, **weak, "SLACK_API_URL": "http://127.0.0.1:1/api/"})
    assert settings.slack_signing_secret.get_secret_value() == "s"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("APPROVAL_NEEDED", "APPROVALS_NEEDED"),
        ("FLOW_POLICES", "FLOW_POLICIES"),
        ("METRIC_TOKEN", "METRICS_TOKEN"),
        ("INVENTORY_DATACENTERS", "INVENTORY_DATA_CENTERS"),
        ("approvals_needed", "APPROVALS_NEEDED"),
    ],
)
def test_name_that_is_nearly_a_settings_ends_the_start(name: str, meant: str) -> None:
    (line,) = problems(**{name: "2"})
    assert line.startswith(f"{meant} is probably misspelled as {name}")


@pytest.mark.parametrize(
    "name", ["HOSTS", "LOGLEVEL", "PORTS", "ROLE", "PATH", "DATABASE_POOL_URL", "SLACK_TEAM"]
)
def test_other_names_are_left_alone(name: str) -> None:
    assert read_settings({**LEAST, name: "x"}) == read_settings(LEAST)


OAUTH = {
    "client_id": "c",
    "client_secret": "client-secret",
    "refresh_token": "refresh-word",
    "token_url": "https://accounts.example.jp/token",
}


def test_every_secret_is_known_to_the_redactor():
    given = {
        "FLOW_BASE_URL": "https://f.example",
        "FLOW_ACCOUNT_SID": "AC1",
        "FLOW_AUTH_TOKEN": "flow-token",
        "EMAIL_API_KEY": "SG.email-key",
        "EMAIL_BASE_URL": "https://e.example",
        "METRICS_TOKEN": "metrics-token-word",
        "SLACK_APP_TOKEN": "xapp-app-token",
        "DATABASE_URL": "postgresql://me:data-word@db.example/x",
        "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
        "INVENTORY_DATA_CENTERS": json.dumps(
            {"com": {"authtoken": "auth-token"}, "jp": {"oauth": OAUTH}}
        ),
    }
    settings = read_settings({**LEAST, **given})
    secrets = [
        *("xoxb-1", "signing-secret-word", "xapp-app-token", "flow-token", "SG.email-key"),
        *("metrics-token-word", "data-word", "auth-token", "client-secret", "refresh-word"),
        base64.b64encode(b"AC1:flow-token").decode(),
        base64.b64encode(b"apikey:SG.email-key").decode(),
    ]
    cleaned = redactor_of(settings).clean(" ".join(secrets)).split(" ")
    assert cleaned == ["[secret]"] * len(secrets)
    assert not any(secret in f"{settings!r}{settings}" for secret in secrets)
