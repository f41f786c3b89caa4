"""`gatehouse check` reports each mistake that an operator is likely to make."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from sqlalchemy import text

from bot.check import as_table, examine, examine_settings
from bot.checks.rules import Finding
from bot.store.sqlite import file_id, process_lock
from sandbox.services.faults import Fault as ServiceFault
from sandbox.services.faults import FaultKind
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW, ServicesState
from sandbox.slack.faults import Fault as SlackFault
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.postgres import connect
from tests.support.settings import read_settings
from tests.support.world import ROLES, environment_for, running_world

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-2345-abcd",
    "SLACK_SIGNING_SECRET": "0123456789abcdef0123456789abcdef",
    "ALERTS_CHANNEL": "C1",
    "APPROVALS_CHANNEL": "C2",
    "HOST": "127.0.0.1",
}
UNKNOWN_FLOW = "FW000000000000000000000000000000FF"
EU_REFUSED = ("inventory eu", "credentials_refused", "")


@dataclass
class Site:
    """A bot's environment, which is correct until a test breaks something."""

    slack: RunningSlack
    services: RunningServices
    environment: dict[str, str] = field(default_factory=dict)

    async def codes(self) -> dict[str, str]:
        """Return the code of each problem, keyed by subject."""
        findings = await examine(read_settings(self.environment))
        return {finding.subject: finding.code for finding in findings if not finding.is_well}

    async def sentence(self, code: str) -> str:
        findings = await examine(read_settings(self.environment))
        (found,) = [finding.sentence for finding in findings if finding.code == code]
        return found

    def roles(self, **changed: list[str]) -> None:
        self.environment["ROLES"] = json.dumps({**ROLES, **changed})

    def data_center(self, **settings: object) -> None:
        """Keep only the data center `eu`, and change some of its settings."""
        centers = json.loads(self.environment["INVENTORY_DATA_CENTERS"])
        self.environment["INVENTORY_DATA_CENTERS"] = json.dumps({"eu": centers["eu"] | settings})


Spoil = Callable[[Site], object]


@pytest.fixture
async def site(sqlite_url) -> AsyncIterator[Site]:
    async with running_services(ServicesState()) as services, running_slack() as slack:
        site = Site(slack, services, environment_for(slack, services, sqlite_url))
        site.data_center()
        yield site


def fails(service: str, **fault: object) -> Spoil:
    """Make this fault occur in every call to the service."""
    kind = FaultKind[str(fault.pop("kind", "STATUS"))]
    return lambda site: site.services.state.faults.add(ServiceFault(kind, service, **fault))


def setting(**changed: str) -> Spoil:
    return lambda site: site.environment.update(changed)


def roles(**changed: list[str]) -> Spoil:
    return lambda site: site.roles(**changed)


def data_center(**changed: object) -> Spoil:
    return lambda site: site.data_center(**changed)


def oauth(spoil: Callable[[object], object]) -> Spoil:
    """Make the data center `eu` use OAuth, and break the token issuer."""

    def act(site: Site) -> None:
        spoil(site.services.state.oauth)
        oauth = {
            "client_id": "demo-client",
            "client_secret": "demo-client-secret",
            "refresh_token": "demo-refresh-eu",
            "token_url": site.services.token_url,
        }
        center = {"oauth": oauth, "base_url": site.services.inventory_url("eu")}
        site.environment["INVENTORY_DATA_CENTERS"] = json.dumps({"eu": center})

    return act


def nowhere(site: Site) -> None:
    site.environment["FLOW_BASE_URL"] = site.services.url + "/nothing/here"


def nobody_in_the_group(site: Site) -> None:
    site.roles(approver=["S0APPROVERS"], admin=[])
    site.slack.workspace.groups["S0APPROVERS"].members.clear()


def is_public(site: Site) -> None:
    site.slack.workspace.channels["C0APPROVALS"].is_private = False


def is_shared(channel: str, how: str = "is_ext_shared") -> Spoil:
    return lambda site: setattr(site.slack.workspace.channels[channel], how, True)


def is_deactivated(site: Site) -> None:
    site.slack.workspace.people["U0APPROVER"].deleted = True


# What is broken, the subject and code of the only finding, and words from its message. The table in
# tests/scenarios/test_told.py has more faults.
MISTAKES = [
    (setting(SLACK_APP_TOKEN="xapp-old"), "slack app token", "app_token_refused", ""),
    (setting(ALERTS_CHANNEL="C0NOWHERE"), "ALERTS_CHANNEL", "channel_unknown", "C0NOWHERE"),
    (setting(ALERTS_CHANNEL="C0GENERAL"), "ALERTS_CHANNEL", "bot_not_in_channel", ""),
    (is_public, "APPROVALS_CHANNEL", "channel_public", ""),
    (is_shared("C0APPROVALS"), "APPROVALS_CHANNEL", "channel_shared", "C0APPROVALS"),
    (is_shared("C0APPROVALS", "is_org_shared"), "APPROVALS_CHANNEL", "channel_shared", ""),
    (is_shared("C0ALERTS"), "ALERTS_CHANNEL", "channel_shared", "C0ALERTS"),
    (is_shared("C0ALERTS", "is_org_shared"), "ALERTS_CHANNEL", "channel_shared", ""),
    (roles(approver=["U0NOBODY", "U0APPROVER"]), "roles", "user_unknown", "U0NOBODY"),
    (roles(approver=["S0NOBODY", "U0APPROVER"]), "roles", "group_unknown", "S0NOBODY"),
    (roles(approver=["U0STRANGER", "U0APPROVER"]), "roles", "user_unknown", "another workspace"),
    (is_deactivated, "roles", "user_unknown", "deactivated"),
    (roles(approver=[], admin=[]), "roles", "too_few_approvers", "Nobody can approve"),
    (nobody_in_the_group, "roles", "too_few_approvers", "Nobody can approve"),
    (setting(APPROVALS_NEEDED="4"), "roles", "too_few_approvers", ""),
    (setting(ACCESS_CONTACT="U0NOBODY"), "roles", "user_unknown", "in ACCESS_CONTACT: "),
    (setting(ACCESS_CONTACT="S0NOBODY"), "roles", "group_unknown", "S0NOBODY"),
    (fails("inventory", status=403), "inventory eu", "permission_missing", ""),
    (fails("inventory", kind="HTML"), "inventory eu", "not_json", "(eu)"),
    (fails("inventory", status=404), "inventory eu", "service_refused", "URL"),
    (fails("inventory", status=500), "inventory eu", "service_failed", ""),
    (oauth(lambda issuer: issuer.revoke_refresh("demo-refresh-eu")), *EU_REFUSED),
    (
        oauth(lambda issuer: setattr(issuer, "rotates", True)),
        *("inventory eu", "rotating_token", ""),
    ),
    (
        data_center(base_url="http://127.0.0.1:9/inventory/v1"),
        *("inventory eu", "unreachable", "(eu)"),
    ),
    (data_center(organization_id="999"), "inventory eu", "organization_not_listed", ""),
    (
        lambda site: site.services.state.set_organizations("eu", []),
        *("inventory eu", "no_organization", ""),
    ),
    (nowhere, "flow", "wrong_host", "FLOW_BASE_URL"),
    (
        setting(FLOW_ALIASES=json.dumps({"gone": UNKNOWN_FLOW})),
        *("flow gone", "flow_unknown", "FLOW_ALIASES"),
    ),
    (setting(EMAIL_API_KEY="SG.limited-key"), "email", "permission_missing", ""),
    (setting(EMAIL_API_KEY="SG.gone", EMAIL_AUTH="basic"), "email", "credentials_refused", ""),
]


@pytest.mark.parametrize(
    ("spoil", "subject", "code", "words"), MISTAKES, ids=[code for _, _, code, _ in MISTAKES]
)
async def test_mistake_is_named_and_nothing_else(site: Site, spoil, subject, code, words) -> None:
    spoil(site)
    findings = await examine(read_settings(site.environment))
    (found,) = [finding for finding in findings if not finding.is_well]
    assert (found.subject, found.code) == (subject, code)
    assert words in found.sentence


# A team's settings: two flows, two gateway clients, a policy with a rule, and roles by group.
TEAM = {
    "ROLES": {
        "viewer": ["*"],
        "operator": ["S0TESTERS", "U0OPERATOR"],
        "approver": ["S0APPROVERS", "U0APPROVER"],
        "admin": ["U0ADMIN"],
    },
    "FLOW_POLICIES": {
        "welcome": {
            "approvers": ["S0APPROVERS", "U0APPROVER"],
            "requesters": ["U0OPERATOR"],
            "notify": ["S0APPROVERS"],
            "escalate_after": "2h",
            "escalate_to": ["U0ADMIN"],
            "channel": "C0APPROVALS",
        },
        "survey": {"auto": {"from": ["U0OPERATOR"], "longest": "4h", "a_day": 5}},
    },
    "FLOW_ALIASES": {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW},
    "GATEWAY_PORT": 3001,
    "GATEWAY_CLIENTS": {
        "nightly": {"token_sha256": "ab" * 32, "organizations": ["eu/20077314"]},
        "restock": {"token_sha256": "cd" * 32, "organizations": "*"},
    },
}
WELCOME_POLICY = "FLOW_POLICIES/welcome"


async def found_in_team(site: Site, key: str = "", value: object = None) -> list[Finding]:
    """Change one of the team's settings, and return the problems that the check finds."""
    team = json.loads(json.dumps(TEAM))
    *keys, last = key.split("/")
    table = team
    for name in keys:
        table = table[name]
    if last:
        table[last] = value
    given = {name: json.dumps(part) for name, part in team.items()}
    findings = await examine(read_settings({**site.environment, **given}))
    return [finding for finding in findings if not finding.is_well]


async def test_settings_of_a_team_are_well(site: Site) -> None:
    assert await found_in_team(site) == []


@pytest.mark.parametrize(
    ("key", "value", "subject", "code", "words"),
    [
        ("ROLES/operator", ["S0TEAM", "U0OPERATOR"], "roles", "group_unknown", "S0TEAM in ROLES: "),
        (f"{WELCOME_POLICY}/notify", ["U0GONE"], "roles", "user_unknown", "in FLOW_POLICIES: "),
        (f"{WELCOME_POLICY}/escalate_to", ["S0GONE"], "roles", "group_unknown", "FLOW_POLICIES: "),
        (f"{WELCOME_POLICY}/requesters", ["U0VIEWER"], "roles", "nobody_can_ask", "requesters"),
        (f"{WELCOME_POLICY}/approvals_needed", 4, "roles", "too_few_approvers", "flow welcome"),
        (f"{WELCOME_POLICY}/channel", "C0ALERTS", "APPROVALS_CHANNEL", "channel_public", "C0ALERT"),
        ("FLOW_POLICIES/survey/auto/from", ["U0VIEWER"], "roles", "nobody_can_ask", "auto"),
        ("FLOW_POLICIES/survey/requesters", ["U0APPROVER"], "roles", "nobody_can_ask", "auto"),
        ("FLOW_ALIASES/survey", UNKNOWN_FLOW, "flow survey", "flow_unknown", UNKNOWN_FLOW),
        (
            "GATEWAY_CLIENTS/nightly/organizations",
            ["eu/999"],
            *("gateway", "organization_not_listed", "eu/999 (nightly)"),
        ),
        ("GATEWAY_CLIENTS", {}, "gateway", "half_configured", "GATEWAY_CLIENTS"),
    ],
)
async def test_each_mistake_in_settings_of_a_team_is_named(
    site: Site, key, value, subject, code, words
) -> None:
    (found,) = await found_in_team(site, key, value)
    assert (found.subject, found.code, words in found.sentence) == (subject, code, True)


# Who may ask, who may approve, how many must, and whether anybody's request could be approved.
APPROVABLE = [
    ([], ["U0APPROVER"], 1, False),
    (["U0OPERATOR"], ["U0APPROVER"], 1, True),
    (["U0APPROVER"], ["U0APPROVER"], 1, False),
    ([], ["S0APPROVERS"], 1, False),
    ([], ["S0APPROVERS", "U0APPROVER"], 1, True),
    (["U0OPERATOR"], ["U0APPROVER"], 2, False),
    ([], ["U0APPROVER", "U0ADMIN"], 2, False),
    (["U0OPERATOR"], ["U0APPROVER", "U0ADMIN"], 2, True),
    (["*"], ["U0APPROVER"], 1, True),
    ([], ["*"], 1, False),
    (["U0OPERATOR"], ["*"], 1, True),
    ([], ["*", "U0APPROVER"], 1, True),
    ([], [], 1, False),
]


@pytest.mark.parametrize(("operators", "approvers", "needed", "is_well"), APPROVABLE)
async def test_somebodys_request_must_be_approvable(
    site: Site, operators, approvers, needed, is_well
) -> None:
    site.roles(viewer=["*"], operator=operators, approver=approvers, admin=[])
    site.environment["APPROVALS_NEEDED"] = str(needed)
    codes = await site.codes()
    assert codes == ({} if is_well else {"roles": "too_few_approvers"})
    if approvers == ["U0APPROVER"] and not is_well:
        sentence = await site.sentence("too_few_approvers")
        assert "(welcome, survey)" in sentence
        assert "Only U0APPROVER can approve" in sentence
        site.environment["ALLOW_SELF_APPROVAL"] = "on"
        assert await site.codes() == ({} if needed == 1 else codes)


@pytest.mark.parametrize(
    "spoil",
    [
        roles(approver=["*"], admin=[]),
        setting(APPROVALS_NEEDED="3"),
        setting(ACCESS_CONTACT="S0APPROVERS"),
        setting(EMAIL_AUTH="basic"),
        oauth(lambda _: None),
    ],
)
async def test_other_ways_to_be_right_are_well(site: Site, spoil) -> None:
    spoil(site)
    assert await site.codes() == {}


async def test_no_call_goes_without_the_database(site: Site) -> None:
    site.environment["DATABASE_URL"] = "postgresql://nobody:data-word@127.0.0.1:9/none"
    assert await site.codes() == {
        "database": "database_refused",
        "inventory eu": "not_tried",
    }
    assert [call.service for call in site.services.state.calls if call.service == "inventory"] == []


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("?options=-c%20nonsense%3D1", "nonsense"),
        ("?target_session_attrs=standby", "hot standby"),
        ("?sslmode=require", "SSL"),
    ],
)
async def test_the_reason_a_server_cannot_be_used_is_logged(
    site: Site, postgres_url, more, words
) -> None:
    site.environment["DATABASE_URL"] = postgres_url + more
    findings = await examine(read_settings(site.environment))
    (found,) = [finding for finding in findings if finding.code == "database_refused"]
    assert words in found.explanation
    assert words not in found.sentence


@pytest.mark.postgres
async def test_a_user_without_the_right_to_create_tables_reads_the_cure(
    site: Site, empty_postgres_url
):
    """Since PostgreSQL 15, `GRANT ALL ON DATABASE` doesn't allow a role to create tables."""
    name, role = empty_postgres_url.rsplit("/", 1)[1], f"role_{uuid.uuid4().hex[:8]}"
    admin = await connect(empty_postgres_url)
    await admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'word'")
    try:
        await admin.execute(f'GRANT ALL ON DATABASE "{name}" TO {role}')
        await admin.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        place = empty_postgres_url.partition("@")[2]
        site.environment["DATABASE_URL"] = f"postgresql://{role}:word@{place}"
        assert (await site.codes())["database"] == "database_permission"
        assert "ALTER DATABASE" in await site.sentence("database_permission")
        await admin.execute(f"ALTER ROLE {role} SET search_path = nowhere")
        assert (await site.codes())["database"] == "database_refused"
    finally:
        await admin.execute(f"DROP OWNED BY {role}")
        await admin.execute(f"DROP ROLE {role}")
        await admin.close()


@pytest.mark.parametrize("name", ["gone/x.db", ""])
async def test_file_that_cannot_be_made_is_named(site: Site, tmp_path, name) -> None:
    site.environment["DATABASE_URL"] = f"sqlite:///{tmp_path}/{name}"
    assert (await site.codes())["database"] == "database_no_file"


async def test_installation_in_a_whole_organization_is_refused(site: Site) -> None:
    site.slack.workspace.is_organization_wide = True
    assert (await site.codes())["slack token"] == "organization_wide_install"
    assert "in one workspace" in await site.sentence("organization_wide_install")


async def test_check_before_the_first_start_makes_no_file(site: Site, tmp_path) -> None:
    site.environment["DATABASE_URL"] = f"sqlite:///{tmp_path}/new.db"
    before = sorted(tmp_path.iterdir())
    assert await site.codes() == {}
    assert sorted(tmp_path.iterdir()) == before


async def test_check_beside_a_bot_whose_file_was_removed_makes_no_file(
    site: Site, sqlite_url
) -> None:
    path = Path(sqlite_url.removeprefix("sqlite:///"))
    site.environment["DATABASE_URL"] = sqlite_url
    with process_lock(sqlite_url):
        await asyncio.to_thread(path.unlink)
        assert (await site.codes())["database"] == "database_replaced"
        assert file_id(path) is None


async def test_a_good_configuration_is_well_in_every_line(site: Site) -> None:
    findings = await examine(read_settings(site.environment))
    assert {finding.subject: finding.code for finding in findings} == dict.fromkeys(
        (
            "slack token",
            "slack scopes",
            "clock",
            "ALERTS_CHANNEL",
            "APPROVALS_CHANNEL",
            "roles",
            "inventory eu",
            "flow welcome",
            "flow survey",
            "email",
            "database",
        ),
        "ok",
    )


async def test_refused_token_is_named_and_nothing_that_needs_it_is_well(site: Site) -> None:
    site.environment["SLACK_BOT_TOKEN"] = "xoxb-old"
    expected = {"slack token": "token_refused"}
    assert await site.codes() == expected
    site.environment["SLACK_APP_TOKEN"] = "xapp-old"
    assert await site.codes() == {**expected, "slack app token": "app_token_refused"}


async def test_every_missing_scope_is_named(site: Site) -> None:
    site.slack.workspace.scopes = ("commands", "chat:write", "channels:read", "groups:read")
    assert await site.codes() == {"slack scopes": "scope_missing", "roles": "slack_refused"}
    findings = await examine(read_settings(site.environment))
    (scopes,) = [finding.sentence for finding in findings if finding.subject == "slack scopes"]
    assert "users:read" in scopes
    assert "usergroups:read" in scopes
    assert "chat:write" not in scopes


@pytest.mark.parametrize(
    ("reserve", "is_warned"),
    [
        ({"*": {"day": 1_000}}, True),
        ({"*": {"minute": 99, "day": 999}}, False),
        ({"eu/1": {"day": 2_000}}, True),
        ({"eu/1": {"day": 1_999}}, False),
        ({"*": {"day": 500}, "com/2": {"day": 3_000}}, True),
    ],
)
def test_a_reserve_of_the_whole_day_is_a_warning(reserve, is_warned) -> None:
    centers = {name: {"authtoken": "x"} for name in ("com", "eu")}
    environment = {
        **LEAST,
        "INVENTORY_BASE_URL": "https://inventory.example.com/inventory/v1",
        "INVENTORY_DATA_CENTERS": json.dumps(centers),
        "INVENTORY_RESERVE": json.dumps(reserve),
        "INVENTORY_PLANS": json.dumps({"eu/1": "standard", "com/1": "standard"}),
    }
    found = examine_settings(read_settings(environment))
    assert [item.code for item in found] == (["reserve_too_large"] if is_warned else [])
    assert all(item.is_well for item in found)


async def test_an_unknown_approver_and_the_flow_without_approvers_are_both_named(site: Site):
    site.environment["FLOW_POLICIES"] = json.dumps({"welcome": {"approvers": ["U0NOBODY"]}})
    findings = await examine(read_settings(site.environment))
    codes = [finding.code for finding in findings if not finding.is_well]
    assert codes == ["user_unknown", "too_few_approvers"]


def test_signing_secret_of_another_form_is_named() -> None:
    assert examine_settings(read_settings(LEAST)) == []
    name = "SLACK_SIGNING_SECRET"
    (found,) = examine_settings(read_settings({**LEAST, name: "hello-world-hello"}))
    assert (found.subject, found.code) == (name, "signing_secret_form")


async def test_beside_a_bot_the_listing_names_an_organization(
    sqlite_url,
) -> None:
    async with running_world(sqlite_url, inventory_watch="off") as world:
        await world.ask("U0VIEWER", "/orgs")
        before = len(world.services.state.calls)
        assert all(item.is_well for item in await examine(read_settings(world.environment)))
        named = {
            call.data_center: call.organization_id
            for call in world.services.state.calls[before:]
            if call.service == "inventory"
        }
    assert named["eu"] == "20077314"
    assert len(named) == 8
    assert all(named.values())


async def test_check_never_writes_to_a_service(site: Site) -> None:
    site.services.state.flow_fields = ("TestUsers",)
    await examine(read_settings(site.environment))
    assert {call.method for call in site.services.state.calls} == {"GET"}


async def test_flow_credentials_are_tried_without_any_alias(site: Site) -> None:
    site.environment["FLOW_ALIASES"] = "{}"
    assert await site.codes() == {}
    site.environment["FLOW_AUTH_TOKEN"] = "old-token"
    assert await site.codes() == {"flow": "credentials_refused"}


async def test_services_that_are_not_configured_are_not_mistakes(site: Site) -> None:
    kept = {
        name: value
        for name, value in site.environment.items()
        if not name.startswith(("INVENTORY_", "FLOW_", "EMAIL_"))
    }
    site.environment = kept
    findings = await examine(read_settings(kept))
    assert all(finding.is_well for finding in findings)
    assert sum("not configured" in finding.sentence for finding in findings) == 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_a_database_of_another_version_is_named(site: Site, database, database_url) -> None:
    site.environment["DATABASE_URL"] = database_url
    for version, code in (
        ("9999", "database_too_new"),
        ("0001", "database_too_old"),
        ("0020", "database_outdated"),
    ):
        async with database.transaction() as tx:
            await tx.connection.execute(
                text("UPDATE alembic_version SET version_num = :v"), {"v": version}
            )
        assert (await site.codes())["database"] == code


async def test_slack_troubles_in_between_are_findings_and_not_tracebacks(site: Site) -> None:
    for method in ("conversations.info", "users.info", "usergroups.users.list"):
        site.slack.workspace.faults.add(method, SlackFault(status=500, body="<html>", times=None))
    codes = await site.codes()
    assert set(codes) == {"ALERTS_CHANNEL", "APPROVALS_CHANNEL", "roles"}


def test_words_of_others_stay_on_their_line_of_the_table() -> None:
    line = as_table([Finding("slack token", "ok", "of \x1b[2Aa\nb.")]).splitlines()[0]
    assert line == "ok     slack token  of \\x1b[2Aa\\nb."
