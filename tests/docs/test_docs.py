"""Test that the documented settings, commands, metrics, alerts and roles match the code."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from PIL import Image, ImageSequence
from pydantic import SecretStr

from bot import __version__, errors
from bot.checks.rules import Part
from bot.commands import COMMANDS
from bot.metrics import Metrics
from bot.permissions import LEAST_ROLE, RANK, Role
from bot.quotas.rules.quota import BlockCode
from bot.services import errors as service_errors
from bot.settings import EXAMPLES, Settings, settings_from
from bot.settings.files import find_sources
from bot.settings.model import keys_in
from bot.slack.manifest import EVENTS, SCOPES
from bot.store.causes import CAUSES, UNKNOWN_CAUSE
from handlers.app import NAMES
from sandbox.__main__ import _parser as sandbox_parser
from sandbox.greedy import TOKEN
from tests.support.entry_points import LISTENERS
from tests.support.settings import LEAST

ROOT = Path(__file__).parents[2]
DOCS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob(".github/**/*.md")])


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def rows(name: str) -> list[list[str]]:
    """Return the cells of each table row on a page."""
    lines = [line for line in read(name).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip()[1:-1])] for line in lines]


def named(name: str) -> set[str]:
    """Return the inline code in the first column of every table on a page."""
    return {word for row in rows(name) for word in re.findall(r"`([^`]+)`", row[0])}


def setting_rows() -> dict[str, list[str]]:
    return {row[0].strip("`"): row for row in rows("docs/settings.md") if row[0].startswith("`")}


def test_every_setting_has_one_row_and_no_other_thing_has() -> None:
    assert set(setting_rows()) == {name.upper() for name in Settings.model_fields} == set(EXAMPLES)


# A table with one entry of each form, and where its keys are described.
TABLES = [
    ("docs/policies.md", [("flow_policies", "welcome")]),
    ("docs/settings.md", [("flow_policies", "welcome", "auto"), ("gateway_clients", "nightly")]),
    ("docs/settings.md", [("inventory_data_centers", "eu"), ("inventory_reserve", "eu/1")]),
    ("docs/settings.md", [("inventory_data_centers", "eu", "oauth")]),
    (
        "docs/gateway.md",
        [("apis", "xero"), ("apis", "xero", "limits"), ("apis", "xero", "reserve")],
    ),
]


@pytest.mark.parametrize(("page", "places"), TABLES)
def test_every_key_of_a_table_is_in_the_page(page, places) -> None:
    text = read(page)
    for key in {key for place in places for key in keys_in(*place)}:
        assert re.search(rf"`{key}`|^{key} = |\.{key}\]|\"{key}\":", text, re.MULTILINE), key


def test_every_key_of_a_policy_has_a_row() -> None:
    told = {row[0].strip("`") for row in rows("docs/policies.md")} - {"part", "---"}
    assert told == set(keys_in("flow_policies", "welcome"))


@pytest.mark.parametrize("name", Settings.model_fields)
def test_the_default_in_the_page_is_the_default(name: str) -> None:
    field = Settings.model_fields[name]
    told = setting_rows()[name.upper()][1]
    default = field.get_default(call_default_factory=True)
    if isinstance(default, SecretStr):
        default = default.get_secret_value()
    if field.is_required() or name == "slack_signing_secret":
        assert told.startswith("required")
    elif name in {"inventory_watch", "audit_witness"}:
        assert (told, default) == ("`on`", True)
    elif default is None:
        assert told == "none"
    else:
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        assert told == f"`{shown}`"


def test_every_secret_is_marked_as_one_and_has_a_way_to_be_rotated() -> None:
    secret = {
        name.upper()
        for name, field in Settings.model_fields.items()
        if "SecretStr" in str(field.annotation)
    } | {"INVENTORY_DATA_CENTERS"}
    marked = {name for name, row in setting_rows().items() if "**secret**" in row[2]}
    assert secret == marked
    told = read("docs/operations.md").split("## Rotate credentials")[1].split("## ")[0]
    for name in secret | {"authtoken", "client_secret", "refresh_token"}:
        assert f"`{name}`" in told


def test_the_page_has_every_form_of_every_command_and_no_other() -> None:
    forms = {item.usage(form.kind) for item in COMMANDS for form in item.forms}
    assert {row[0].strip("`") for row in rows("docs/commands.md")} - {"command", "---"} == forms


def test_the_commands_in_the_readme_are_commands() -> None:
    forms = {item.usage(form.kind).split(" [")[0] for item in COMMANDS for form in item.forms}
    told = [word for word in named("README.md") if word.startswith("/")]
    shown = {word.split(" [")[0].replace("<identity>…", "<identity or @preset>…") for word in told}
    assert shown <= forms


def test_each_guarantee_of_the_readme_names_a_test_that_exists() -> None:
    named_tests = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", read("README.md"))
    assert len(named_tests) >= 8
    for file, name in named_tests:
        assert re.search(rf"^(async )?def {name}\(", read(file), re.MULTILINE), name


def test_the_clip_is_short_and_small() -> None:
    [name] = re.findall(r"\((docs/pictures/\S+\.webp)\)", read("README.md"))
    assert (ROOT / name).stat().st_size <= 3_000_000
    with Image.open(ROOT / name) as clip:
        shown = [frame.info["duration"] for frame in loaded(clip)]
    assert 10_000 <= sum(shown) <= 30_000


def loaded(clip: Image.Image) -> Iterator[Image.Image]:
    """Load and yield each frame of the clip. Loading a frame sets its duration."""
    for frame in ImageSequence.Iterator(clip):
        frame.load()
        yield frame


def test_the_readme_has_the_version() -> None:
    newest, *others = re.findall(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)
    released = others[0] if newest == "Unreleased" else newest
    assert re.findall(r"^Version (\S+)", read("README.md"), re.MULTILINE) == [released]
    assert (released == __version__) == (newest != "Unreleased")


def test_the_manifest_and_the_listeners_have_the_same_commands() -> None:
    listening = {item.name for item in LISTENERS if item.kind == "command" and item.name}
    assert listening == {command.name for command in COMMANDS}


def test_the_manifest_and_the_listeners_have_the_same_events() -> None:
    heard = {item.name for item in LISTENERS if item.kind == "event" and item.name}
    assert {"message.im" if item == "message" else item for item in heard} == set(EVENTS)


def test_every_metric_is_in_the_page_and_no_other() -> None:
    told = {name for name in named("docs/operations.md") if re.fullmatch(r"gatehouse_\w+", name)}
    metrics = {metric.name for metric in Metrics().registry.collect()}
    assert told == {name for name in metrics if name.startswith("gatehouse_")}


def test_metrics_used_by_alerts_begin_at_zero() -> None:
    """If a counter first appears with the value 1, Prometheus doesn't see an increase."""
    metrics = Metrics()
    metrics.expect_commands(NAMES)
    page = metrics.page().decode()
    for line in (
        'gatehouse_commands_total{name="/orgs",outcome="broken"} 0.0',
        'gatehouse_service_calls_total{service="email",status="401"} 0.0',
        'gatehouse_service_calls_total{service="inventory",status="403"} 0.0',
        'gatehouse_slack_refused_total{cause="wrong_signature"} 0.0',
        'gatehouse_jobs{state="late"} 0.0',
    ):
        assert line in page
    assert "_created" not in page


def test_every_label_of_a_metric_is_in_its_row() -> None:
    cells = {row[0].strip("`"): row for row in rows("docs/operations.md")}
    metrics = Metrics()
    for collector in vars(metrics).values():
        for label in getattr(collector, "_labelnames", ()):
            assert f"`{label}`" in cells[collector._name][1]


def test_every_part_that_may_be_broken_is_in_the_page() -> None:
    (cells,) = [row for row in rows("docs/operations.md") if row[0] == "`gatehouse_working`"]
    assert re.findall(r"`(\w+)`", cells[2]) == [part.label for part in Part]


def test_every_alert_is_in_the_page() -> None:
    told = named("docs/operations.md")
    assert {str(code.value) for code in BlockCode} <= told


# A code stands after the subject of a finding.
CODE = re.compile(
    r'(?:(?:Finding|mistake)\(\s*(?:[\w".{}() ]+,\s*)?|code = )"([a-z]+(?:_[a-z]+)+)"'
)


def _codes_of_check() -> set[str]:
    modules = [
        *(ROOT / "bot/checks").glob("*.py"),
        *(ROOT / "bot/check.py", ROOT / "bot/__main__.py"),
    ]
    literal = {
        code
        for path in modules
        if path.name != "health.py"
        for code in CODE.findall(path.read_text("utf-8"))
    }
    kinds = (
        service_errors.ServiceError,
        errors.QuotaError,
        errors.DatabaseReplaced,
        errors.OrganizationWideInstall,
        errors.DatabaseTooNew,
        errors.DatabaseTooOld,
        errors.SlackUnreachable,
        errors.SlackRateLimited,
        errors.SlackRefused,
    )
    outcomes = {
        var.outcome
        for var in (vars(errors) | vars(service_errors)).values()
        if isinstance(var, type) and issubclass(var, kinds)
    }
    named = {
        *("not_configured", "not_tried", "token_refused", "user_unknown", "group_unknown"),
    }
    causes = {cause.code for cause in (UNKNOWN_CAUSE, *CAUSES)}
    return (literal | outcomes | causes | named) - {"service_error", "quota"}


def test_everything_that_check_can_say_is_in_the_page() -> None:
    page = read("docs/operations.md")
    section = page.split("## Problems that `check` finds")[1].split("\n## ")[0]
    told = set(
        re.findall(
            r"`([a-z]+(?:_[a-z]+)*)`",
            "\n".join(
                line.split("|")[1] for line in section.splitlines() if line.startswith("| `")
            ),
        )
    )
    assert told == _codes_of_check()


def test_the_table_of_roles_is_the_table_of_the_code() -> None:
    table = {row[0]: row[1:] for row in rows("docs/roles.md") if len(row) == 1 + len(Role)}
    header = table.pop("You can …")
    assert header == list(Role)
    expected = {
        str(permission): [RANK[role] >= RANK[least] for role in Role]
        for permission, least in LEAST_ROLE.items()
    }
    assert {name: ["✓" in cell for cell in cells] for name, cells in table.items()} == expected


def test_the_scopes_are_those_of_the_manifest() -> None:
    told = {row[0].strip("`") for row in rows("docs/install.md")} - {"scope"}
    assert told == set(SCOPES)


# Each block of settings, with its page.
SETTINGS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in DOCS
    for number, block in enumerate(
        re.findall(
            r"^```toml\n(?!# answers)(.*?)^```$",
            page.read_text(encoding="utf-8"),
            re.MULTILINE | re.DOTALL,
        )
    )
]
# Settings that a block needs if it doesn't show them.
REST = {
    **LEAST,
    "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
    "INVENTORY_DATA_CENTERS": '{"com": {"authtoken": "a1b2c3"}, "eu": {"authtoken": "a1b2c3"}}',
}
# Real secrets, which a page can't show.
SECRETS = {"SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET"}


def test_pages_show_settings_only_in_toml_or_env_blocks() -> None:
    assert len(SETTINGS) >= 7
    for page in DOCS:
        blocks = re.findall(
            r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        )
        for language, block in blocks:
            names = re.findall(r"(?m)^([A-Z_]+)=", block)
            assert language == "env" or not set(names) & set(EXAMPLES), page


@pytest.mark.parametrize("block", SETTINGS)
def test_block_of_settings_can_be_loaded_as_it_stands(block, tmp_path) -> None:
    file = tmp_path / "gatehouse.toml"
    file.write_text(block, encoding="utf-8")
    shown = {name.upper() for name in tomllib.loads(block)}
    rest = {name: REST[name] for name in REST.keys() - (shown - SECRETS)}
    settings = settings_from(find_sources({**rest, "GATEHOUSE_CONFIG": str(file)}))
    assert shown <= {name.upper() for name in settings.model_fields_set}


def test_variables_for_compose_can_be_loaded() -> None:
    (block,) = re.findall(r"^```env\n(.*?)^```$", read("docs/install.md"), re.MULTILINE | re.DOTALL)
    given = dict(re.findall(r"^(\w+)='(.*)'$", block, re.MULTILINE))
    settings = settings_from(find_sources({**REST, **given, **LEAST, "GATEHOUSE_CONFIG": ""}))
    assert settings.inventory_data_centers.keys() == {"eu"}


def test_settings_of_a_team_of_twenty_do_what_their_comments_say() -> None:
    example = ROOT / "examples/gatehouse.toml"
    secrets = {
        "SLACK_BOT_TOKEN": "xoxb-1",
        "SLACK_SIGNING_SECRET": "signing-secret-word",
        "DATABASE_URL": "sqlite:///gatehouse.db",
        "FLOW_AUTH_TOKEN": "a1b2c3",
        "INVENTORY_DATA_CENTERS": '{"eu": {"authtoken": "a1b2c3"}}',
    }
    told = re.search(r"# (SLACK_BOT_TOKEN, .*)\.$", example.read_text("utf-8"), re.MULTILINE)
    assert told is not None
    assert told[1].split(", ") == list(secrets)
    settings = settings_from(find_sources({"GATEHOUSE_CONFIG": str(example), **secrets}))
    practice, welcome, payments = map(settings.policy.of_flow, settings.flow_aliases.values())
    assert (practice.auto.a_day, practice.auto_remove) == (5, True)
    assert (welcome.auto, welcome.approvals_needed) == (None, 1)
    assert (payments.approvers, payments.approvals_needed) == (("S0LEADS",), 2)
    assert (payments.longest_seconds, payments.channel) == (86_400, "C0PAYMENTS")
    assert [rules.escalate_to for rules in (practice, welcome, payments)] == [("S0LEADS",)] * 3
    assert settings.gateway_clients["nightly-report"].share == 0.5


def test_the_gateway_of_the_sandbox_is_where_its_page_says() -> None:
    port = sandbox_parser().parse_args([]).port + 1
    assert f"'Authorization: Bearer {TOKEN}' http://127.0.0.1:{port}/eu/" in read("docs/sandbox.md")


def test_every_dependency_is_defended() -> None:
    project = tomllib.loads(read("pyproject.toml"))
    groups = [project["project"]["dependencies"], *project["dependency-groups"].values()]
    names = {re.split(r"[\[><=]", item)[0] for group in groups for item in group}
    told = set(re.findall(r"\*\*([a-z-]+)\*\*", read("docs/decisions/0002-dependencies.md")))
    assert told == names


def _imported(*folders: str) -> set[str]:
    """Return the dotted names of all imports in these folders."""
    sources = [path.read_text("utf-8") for name in folders for path in (ROOT / name).rglob("*.py")]
    nodes = [node for source in sources for node in ast.walk(ast.parse(source))]
    modules = {item.name for node in nodes if isinstance(node, ast.Import) for item in node.names}
    froms = [(node.module, node.names) for node in nodes if isinstance(node, ast.ImportFrom)]
    return modules | {f"{module}.{item.name}" for module, names in froms for item in names}


def _packages(*folders: str) -> set[str]:
    """Return the PyPI names of the packages that the code in these folders imports."""
    theirs = {name.split(".")[0] for name in _imported(*folders)} - {"bot", "handlers", "sandbox"}
    packages = packages_distributions()
    found = {packages[name][0] for name in theirs - sys.stdlib_module_names}
    return {re.sub(r"[-_.]+", "-", name).lower() for name in found}


def test_the_declared_dependencies_are_those_imported() -> None:
    declared = tomllib.loads(read("pyproject.toml"))["project"]["dependencies"]
    names = {re.split(r"[\[><=]", item)[0] for item in declared}
    # SQLAlchemy loads its SQLite driver by name, and `zoneinfo` loads its data.
    assert names == _packages("bot", "handlers") | {"aiosqlite", "tzdata"}


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]*)(?:#[^)]*)?\)", text):
        if target and not target.startswith("http"):
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.name)
def test_anchors_are_headings(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#]*)#([^)]*)\)", text):
        if target.startswith("http"):
            continue
        there = text if not target else (page.parent / target).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", there, re.MULTILINE)
        slugs = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert anchor in slugs


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/decisions").glob("*.md")), ids=lambda page: page.name
)
def test_a_decision_bears_the_number_of_its_file(page: Path) -> None:
    assert page.read_text(encoding="utf-8").startswith(f"# {page.name[:4]}. ")


def test_the_pages_stay_short_enough_to_read() -> None:
    assert len(read("docs/operations.md").split()) <= 4_500
    assert len(read("README.md").split()) <= 1_500


def test_no_test_name_is_longer_than_80_characters() -> None:
    sources = (path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py"))
    long = [name for text in sources for name in re.findall(r"def (test_\w{76,})\(", text)]
    assert long == []
