"""Environment variables override the settings file.

An error message about a settings file says which line or key is wrong.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.settings import EXAMPLES, SettingsError, settings_from
from bot.settings.files import example_of, find_sources, in_toml
from bot.settings.model import Settings
from tests.support.generated import GENERATED
from tests.support.settings import LEAST, example_file

SID = "FW0123456789abcdef0123456789abcdef"


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "gatehouse.toml"


def read(path: Path, content: str, **environment: str):
    """Write a TOML file, and return the settings that are read from the file."""
    path.write_text(content, encoding="utf-8")
    given = {**LEAST, "GATEHOUSE_CONFIG": str(path), **environment}
    return settings_from(find_sources(given))


def problems(path: Path, content: str, **environment: str) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        read(path, content, **environment)
    return caught.value.problems


# The TOML file


def test_file_has_tables_where_the_environment_has_json(path):
    settings = read(
        path,
        f"""
        port = 3001
        inventory_watch = false
        request_hours = 0.5
        [roles]
        approver = ["U0ADA", "S0TEAM"]
        [flow_aliases]
        welcome = "{SID}"
        [flow_policies.welcome]
        approvers = ["U0ADA"]
        longest = "7d"
        """,
    )
    assert (settings.port, settings.inventory_watch, settings.request_hours) == (3001, False, 0.5)
    assert settings.roles == {"approver": ("U0ADA", "S0TEAM")}
    assert settings.policy.of_flow(SID).longest_seconds == 7 * 24 * 3600


def test_environment_wins_over_the_file(path):
    content = "port = 1\napprovals_needed = 3\n"
    settings = read(path, content, PORT="3", APPROVALS_NEEDED=" ")
    assert (settings.port, settings.approvals_needed) == (3, 3)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_file_of_a_windows_editor_is_read(path, end):
    path.write_bytes(f"\ufeffport = 1{end}approvals_needed = 3{end}".encode())
    assert find_sources({"GATEHOUSE_CONFIG": str(path)}).table == {"port": 1, "approvals_needed": 3}


HASHES = ["ab" * 32, "cd" * 32]
TABLES = {
    "ROLES": ('viewer = ["*"]\nadmin = ["U0OLD"]', {"viewer": ["U0ADA"]}),
    "FLOW_POLICIES": (f'{SID} = {{ approvers = ["U0OLD"] }}', {"*": {"longest": "1h"}}),
    "GATEWAY_CLIENTS": (
        f'old = {{ token_sha256 = "{HASHES[0]}", organizations = "*" }}',
        {"new": {"token_sha256": HASHES[1], "organizations": "*"}},
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_table_is_never_merged_with_the_file(path, name):
    content, value = TABLES[name]
    settings = read(path, f"[{name.lower()}]\n{content}\n", **{name: json.dumps(value)})
    assert getattr(settings, name.lower()).keys() == value.keys()


def test_policy_is_never_merged_key_by_key(path):
    content = f'[flow_policies."{SID}"]\napprovers = ["U0OLD"]\nlongest = "7d"\n'
    settings = read(path, content, FLOW_POLICIES=json.dumps({SID: {"longest": "1h"}}))
    assert settings.policy.of_flow(SID).approvers is None


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("prot = 3000", "prot in {} is not a setting. Did you mean port? (example: port = 3000)"),
        ("PORT = 3000", "PORT in {} is not a setting. Did you mean port?"),
        ("[role]\nadmin = ['U0ADA']", "role in {} is not a setting. Did you mean roles?"),
        (
            '[flow_policies."*"]\naprovers = ["U0ADA"]',
            "FLOW_POLICIES in {} * → aprovers: is not a known key. Did you mean approvers?",
        ),
        (
            "[roles]\nviewer = ['*']\nrequest_hours = 2",
            "REQUEST_HOURS in {} is in the table [roles]. Move it above the first table (example:",
        ),
        (
            "[flow_aliases]\nlog_level = 'INFO'",
            "LOG_LEVEL in {} is in the table [flow_aliases]. Move it above the first table",
        ),
        (
            "[inventory_plans]\ninventory_default_plan = 'free'",
            "INVENTORY_DEFAULT_PLAN in {} is in the table [inventory_plans]. Move it",
        ),
        (
            "[flow_policies.'*'.auto]\nport = 1",
            "PORT in {} is in the table [flow_policies.*.auto]. Move it",
        ),
        (
            "[flow_policies.'*']\nroles = { admin = ['U0ADAM'] }",
            "ROLES in {} is in the table [flow_policies.*]. Move it above the first table",
        ),
        (
            "[flow_aliases]\nroles = { admin = ['U0ADAM'] }",
            "ROLES in {} is in the table [flow_aliases]. Move it",
        ),
        (
            "[gateway_clients.ci]\ntoken = 'x'\norganization = '*'",
            "ci → organization: is not a known key. Did you mean organizations?",
        ),
        (
            "[flow_approvers]\nwelcome = ['U0ADA']",
            ' as the flow\'s approvers: [flow_policies.welcome] approvers = ["U0ADA"].',
        ),
        (
            "[inventory_data_centers.com.au]\nauthtoken = 'x'",
            'com → au: is not a known key. Write "com.au" in quotes',
        ),
        (
            "[inventory_data_centers.eu]\nauthtokn = 'x'",
            "eu → authtokn: is not a known key. Did you mean authtoken?",
        ),
        ("port = 'many'", "PORT in {} must be a whole number (example: port = 3000)"),
        ("port = true", "PORT in {} must not be true or false (example: port = 3000)"),
        ("flow_account_sid = 5", "FLOW_ACCOUNT_SID in {} must be a string"),
        ("roles = 'nobody'", "ROLES in {} is not JSON"),
        ("roles = ['U0ADA']", "ROLES in {} must be a JSON object"),
        ("database_url = 5", "DATABASE_URL in {} must be a string"),
        ("https_proxy = ['http://proxy.example']", "HTTPS_PROXY in {} must be a string"),
        ("email_api_key = 12345678901234567", "EMAIL_API_KEY in {} must be a string"),
        ("metrics_token = 'short'", "METRICS_TOKEN in {} is too short"),
        ("email_api_key = '\"SG.abc\"'", "EMAIL_API_KEY in {} has quotation marks around"),
        ("port = 1\nport = 2", "{} is not valid TOML: "),
        (f"port = {'1' * 5000}", "{} is not valid TOML: "),
        ("port = 1\n[roles\n", "(at line 2, column 7)"),
        ("port = 1\nroles = [\n", "(at line 2, the last line)"),
        ("port = " + "[" * 5000, "{} is nested too deeply"),
        ("_cli_parse_args = true", "_cli_parse_args in {} is not a setting"),
    ],
)
def test_mistake_in_the_file_is_named_with_its_key_or_line(path, content, said):
    found = problems(path, content)
    assert [problem for problem in found if said.format(path) in problem], found


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (
            "[flow_policies.'*']\napprovals_needed = true",
            "FLOW_POLICIES in {} * → approvals_needed",
        ),
        ("[flow_policies.'*']\nlongest = true", "FLOW_POLICIES in {} * → longest"),
        (
            "[flow_policies.'*'.auto]\nfrom = ['U0ADA']\nlongest = '1h'\na_day = true",
            "FLOW_POLICIES in {} * → auto → a_day",
        ),
        ("[inventory_reserve.'*']\nminute = true", "INVENTORY_RESERVE in {} * → minute"),
        ("[inventory_reserve.'*']\nday = false", "INVENTORY_RESERVE in {} * → day"),
        (
            f"[gateway_clients.a]\ntoken_sha256 = '{'ab' * 32}'\norganizations = '*'\nshare = true",
            "GATEWAY_CLIENTS in {} a → share",
        ),
    ],
)
def test_boolean_is_no_number_in_a_table(path, content, where):
    (problem,) = problems(path, content)
    assert problem.startswith(f"{where.format(path)}: must be a")
    name = where.split(maxsplit=1)[0]
    assert problem.endswith(f"(example: {in_toml(name.lower())})")


@pytest.mark.parametrize("name", Settings.model_fields)
def test_example_of_a_setting_can_be_copied_into_the_file(name):
    lines = re.sub(r"^(\[.*?\]) ", r"\1\n", in_toml(name)).replace("; ", "\n")
    assert tomllib.loads(lines) == {name: example_of(name)}


def test_alias_may_have_the_name_of_a_setting(path):
    assert read(path, f"[flow_aliases]\nport = '{SID}'\n").flow_aliases == {"port": SID}


def test_mistakes_in_all_places_are_named_together(path):
    found = problems(path, "prot = 1\nretain_days = 0\n", REQUEST_HOURS="0", HTTPS_PROXY="proxy:1")
    names = {problem.split(maxsplit=1)[0] for problem in found}
    assert names == {"prot", "RETAIN_DAYS", "REQUEST_HOURS", "HTTPS_PROXY"}


# Writable files and folders


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "can't be read: No such file or directory"), (b"\xff\xfe", "it is not UTF-8 text")],
)
def test_file_that_cannot_be_read_is_named(path, content, said):
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        find_sources({"GATEHOUSE_CONFIG": str(path)})
    assert caught.value.problems == [
        f"{path} (GATEHOUSE_CONFIG) can't be read: {said.rpartition(': ')[2]}"
    ]


@pytest.mark.parametrize("is_folder", [False, True])
def test_file_that_other_users_can_change_is_refused(path, is_folder):
    path.touch()
    (path.parent if is_folder else path).chmod(0o757)
    with pytest.raises(SettingsError, match="writable by every user"):
        find_sources({"GATEHOUSE_CONFIG": str(path)})


@pytest.mark.parametrize("shared", ["link", "file"])
def test_folder_of_a_link_to_a_folder_counts(tmp_path, shared):
    (tmp_path / "file").mkdir(mode=0o755)
    (tmp_path / "link").mkdir(mode=0o755)
    (tmp_path / "file/x.toml").touch()
    (tmp_path / "link/folder").symlink_to("../file")
    (tmp_path / "home").symlink_to("link/folder")
    given = {"GATEHOUSE_CONFIG": str(tmp_path / "home/x.toml")}
    assert find_sources(given).table == {}
    (tmp_path / shared).chmod(0o757)
    with pytest.raises(SettingsError, match="writable by every user"):
        find_sources(given)


@pytest.mark.parametrize("shared", ["named", "between", "file"])
def test_folder_of_each_link_to_the_file_counts(tmp_path, shared):
    for name in ("named", "between", "file"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "file/x.toml").touch()
    (tmp_path / "between/x.toml").symlink_to("../file/x.toml")
    path = tmp_path / "named/x.toml"
    path.symlink_to("../between/x.toml")
    given = {"GATEHOUSE_CONFIG": str(path)}
    assert find_sources(given).table == {}
    (tmp_path / shared).chmod(0o757)
    with pytest.raises(SettingsError, match="writable by every user"):
        find_sources(given)


def test_default_file_is_read_unless_another_user_wrote_it(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    assert find_sources({}).table == {}
    path.write_text("port = 3001\n", encoding="utf-8")
    assert find_sources({}).table == {"port": 3001}
    assert find_sources({"GATEHOUSE_CONFIG": ""}).table == {}
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert find_sources({}).table == ({"port": 3001} if path.stat().st_uid == 0 else {})


def test_default_link_that_leads_nowhere_is_not_ignored(path, monkeypatch):
    # Without the file's policies, a request could need fewer approvals than before.
    monkeypatch.chdir(path.parent)
    path.symlink_to("missing.toml")
    with pytest.raises(SettingsError, match="can't be read: No such file"):
        find_sources({})


def test_a_folder_that_the_user_cannot_look_into_has_no_default_file(path, monkeypatch):
    # Such as /root, after `sudo -u gatehouse`.
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", denied)
    assert find_sources({}).table == {}


def test_a_device_may_stand_for_an_empty_file():
    assert find_sources({"GATEHOUSE_CONFIG": "/dev/null"}).table == {}


def test_sqlite_is_refused_where_the_disk_is_erased():
    with pytest.raises(SettingsError) as caught:
        settings_from(find_sources({**LEAST, "GATEHOUSE_CONFIG": "", "DYNO": "web.1"}))
    assert caught.value.problems[0].startswith("DATABASE_URL is required, because this platform's")


@pytest.mark.parametrize("command", [(), ("check",)])
def test_text_outside_the_locale_ends_the_start_without_a_traceback(path, command):
    path.write_text("[flow_aliases]\n'grüße “x”' = 'FW12'\n", encoding="utf-8")
    given = {**LEAST, "GATEHOUSE_CONFIG": str(path), "PATH": os.environ["PATH"]}
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "bot", *command],
        env={**given, **locale},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    said = (done.stdout + done.stderr).decode()
    assert (done.returncode, "Traceback" in said) == (2, False), said
    assert "FLOW_ALIASES" in said


PLANTED = """
prot = 3000
port = "many"
metrics_token = "short"
approvals_channel = "#approvals"
database_url = "mysql://db.example.com/gatehouse"
https_proxy = "proxy:3128"
flow_auth_token = "'a1b2c3'"

[roles]
viewer = ["*"]
approver = ["@ada"]

[flow_aliases]
welcome = "FW0123456789abcdef0123456789abcdef"
survey = "FW1123456789abcdef0123456789abcdef"

[flow_policies.welcome]
aprovers = ["U0ADA"]

[flow_policies.survey.auto]
from = ["S0TESTERS"]
longest = "soon"
a_day = 5

[gateway_clients.nightly]
token_sha256 = "e6267729024129bcb9f8ca4911ff7ff135181e5c637b4114650c5d8d54c148d6"
organizations = ["eu/10234695"]

[gateway_clients.restock]
token_sha256 = "not a hash"
organizations = "*"

[inventory_data_centers.eu]
authtoken = "a1b2c3"
base_url = "https://inventory.example.eu/v1"
"""
NAMED = [
    "prot in gatehouse.toml is not a setting. Did you mean port?",
    "PORT in gatehouse.toml must be a whole number (example: port = 3000)",
    "METRICS_TOKEN in gatehouse.toml is too short",
    "APPROVALS_CHANNEL in gatehouse.toml “#approvals” is not a channel ID",
    "DATABASE_URL in gatehouse.toml must start with postgresql://",
    "HTTPS_PROXY in gatehouse.toml must be an address that starts with",
    "FLOW_AUTH_TOKEN in gatehouse.toml has quotation marks around its value",
    "ROLES in gatehouse.toml approver → 0: “@ada” is not a user ID",
    "welcome → aprovers: is not a known key. Did you mean approvers?",
    "survey → auto → longest: “soon” must be a duration",
    "restock → token_sha256: doesn't look like the example",
]


async def test_check_names_each_planted_mistake(path, monkeypatch, capsys):
    monkeypatch.chdir(path.parent)
    path.write_text(PLANTED, encoding="utf-8")
    for name in (*LEAST, "GATEHOUSE_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "ALERTS_CHANNEL"):
        monkeypatch.setenv(name, LEAST[name])
    assert main(["check", "--json"]) == 2
    said = [row["sentence"] for row in json.loads(capsys.readouterr().out)["checks"]]
    assert [name for name in NAMED if not any(name in row for row in said)] == []
    assert len(said) == len(NAMED)


# The example


@pytest.mark.parametrize("name", GENERATED)
def test_generated_file_is_up_to_date(name):
    file = Path(__file__).parents[2] / name
    assert file.read_text(encoding="utf-8") == GENERATED[name](), "run: make generated"


def test_example_file_has_every_setting_with_its_example(path):
    lines = example_file().splitlines()
    content = "\n".join(line.removeprefix("#") for line in lines if not line.startswith("# "))
    path.write_text(content, encoding="utf-8")
    table = find_sources({"GATEHOUSE_CONFIG": str(path)}).table
    assert {name.upper() for name in table} == EXAMPLES.keys()
