"""`gatehouse check`: every mistake an operator can make, by name."""

import json
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
from sqlalchemy import text

from bot.check import examine
from bot.checks.environment import examine_environment
from bot.checks.findings import Finding, as_json, as_table
from bot.settings import read_settings
from sandbox.services.faults import Fault as ServiceFault
from sandbox.services.faults import FaultKind
from sandbox.services.running import RunningServices, running_services
from sandbox.services.state import ServicesState
from sandbox.slack.faults import Fault as SlackFault
from sandbox.slack.server import RunningSlack, running_slack
from tests.support.postgres import connect
from tests.support.world import ROLES, environment_for, running_world

LEAST = {
    "SLACK_BOT_TOKEN": "xoxb-2345-abcd",
    "SLACK_SIGNING_SECRET": "0123456789abcdef0123456789abcdef",
    "ALERTS_CHANNEL": "C1",
    "APPROVALS_CHANNEL": "C2",
    "HOST": "127.0.0.1",
}
UNKNOWN_FLOW = "FW000000000000000000000000000000FF"


def ahead(seconds: float) -> SimpleNamespace:
    """The module `time`, so many seconds ahead."""
    return SimpleNamespace(**{**vars(time), "time": lambda: time.time() + seconds})


@dataclass
class Site:
    """A well configured bot's surroundings, to be spoilt."""

    slack: RunningSlack
    services: RunningServices
    environment: dict[str, str] = field(default_factory=dict)

    async def codes(self) -> dict[str, str]:
        """What is not well: subject → code."""
        findings = await examine(read_settings(self.environment))
        return {finding.subject: finding.code for finding in findings if not finding.is_well}

    async def sentence(self, code: str) -> str:
        findings = await examine(read_settings(self.environment))
        (found,) = [finding.sentence for finding in findings if finding.code == code]
        return found

    def roles(self, **changed: list[str]) -> None:
        self.environment["ROLES"] = json.dumps({**ROLES, **changed})

    def data_center(self, **settings: object) -> None:
        """Leave `eu` alone, with some of its settings changed."""
        centers = json.loads(self.environment["INVENTORY_DATA_CENTERS"])
        self.environment["INVENTORY_DATA_CENTERS"] = json.dumps({"eu": centers["eu"] | settings})


@pytest.fixture
async def site(sqlite_url) -> AsyncIterator[Site]:
    async with running_services(ServicesState()) as services, running_slack() as slack:
        site = Site(slack, services, environment_for(slack, services, sqlite_url))
        site.data_center()
        yield site


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
            "FLOW_FORM_FIELD",
            "email",
            "database",
        ),
        "ok",
    )


async def test_it_works_beside_a_running_bot(sqlite_url) -> None:
    async with running_world(sqlite_url) as world:
        findings = await examine(read_settings(world.environment))
        assert [finding for finding in findings if not finding.is_well] == []


async def test_after_a_refused_token_other_slack_checks_are_not_tried(
    site: Site,
) -> None:
    site.environment["SLACK_BOT_TOKEN"] = "xoxb-old"
    untried = ("slack scopes", "ALERTS_CHANNEL", "APPROVALS_CHANNEL", "roles")
    expected = {"slack token": "token_refused", **dict.fromkeys(untried, "not_tried")}
    assert await site.codes() == expected
    site.environment["SLACK_APP_TOKEN"] = "xapp-old"
    assert await site.codes() == {**expected, "slack app token": "app_token_refused"}


async def test_slack_that_is_away_is_not_a_wrong_token(site: Site) -> None:
    site.environment["SLACK_API_URL"] = "http://127.0.0.1:9/api/"
    assert (await site.codes())["slack token"] != "token_refused"


async def test_every_missing_scope_is_named(site: Site) -> None:
    site.slack.workspace.scopes = ("commands", "chat:write", "channels:read", "groups:read")
    assert await site.codes() == {"slack scopes": "scope_missing", "roles": "scope_missing"}
    findings = await examine(read_settings(site.environment))
    (scopes,) = [finding.sentence for finding in findings if finding.subject == "slack scopes"]
    assert "users:read" in scopes
    assert "usergroups:read" in scopes
    assert "chat:write" not in scopes


async def test_a_refused_token_of_socket_mode_is_named(site: Site) -> None:
    site.environment["SLACK_APP_TOKEN"] = "xapp-old"
    assert await site.codes() == {"slack app token": "app_token_refused"}


@pytest.mark.parametrize("offset", [63, -63, 400])
async def test_a_clock_off_by_more_than_a_minute_is_named(
    site: Site, offset: int, monkeypatch
) -> None:
    monkeypatch.setattr("bot.ops.clock.time", ahead(offset))
    findings = await examine(read_settings(site.environment))
    (clock,) = [finding for finding in findings if finding.subject == "clock"]
    assert clock.code == "clock_off"
    assert ("ahead of" if offset > 0 else "behind") in clock.sentence


async def test_channels_that_cannot_be_used_are_told_apart(site: Site) -> None:
    workspace = site.slack.workspace
    site.environment["ALERTS_CHANNEL"] = "C0NOWHERE"
    assert await site.codes() == {"ALERTS_CHANNEL": "channel_unknown"}
    site.environment["ALERTS_CHANNEL"] = "C0GENERAL"
    assert await site.codes() == {"ALERTS_CHANNEL": "bot_not_in_channel"}
    workspace.channels["C0GENERAL"].is_archived = True
    assert await site.codes() == {"ALERTS_CHANNEL": "channel_archived"}


async def test_a_public_approvals_channel_is_named(site: Site) -> None:
    site.slack.workspace.channels["C0APPROVALS"].is_private = False
    assert await site.codes() == {"APPROVALS_CHANNEL": "channel_public"}


@pytest.mark.parametrize(
    ("approvers", "code"),
    [
        (["U0NOBODY", "U0APPROVER"], "user_unknown"),
        (["S0NOBODY", "U0APPROVER"], "group_unknown"),
        (["U0STRANGER", "U0APPROVER"], "user_of_another_workspace"),
    ],
)
async def test_who_is_not_there_is_named(site: Site, approvers: list[str], code: str) -> None:
    site.roles(approver=approvers)
    assert await site.codes() == {"roles": code}
    assert approvers[0] in await site.sentence(code)


async def test_a_deactivated_account_is_named(site: Site) -> None:
    site.slack.workspace.people["U0APPROVER"].deleted = True
    assert await site.codes() == {"roles": "user_deactivated"}


async def test_nobody_can_approve(site: Site) -> None:
    site.roles(approver=[], admin=[])
    assert await site.codes() == {"roles": "nobody_can_approve"}
    site.roles(approver=["S0APPROVERS"], admin=[])
    site.slack.workspace.groups["S0APPROVERS"].members.clear()
    assert await site.codes() == {"roles": "nobody_can_approve"}


async def test_nobody_can_approve_for_one_flow(site: Site) -> None:
    site.environment["FLOW_APPROVERS"] = json.dumps({"welcome": ["U0NOBODY"]})
    findings = await examine(read_settings(site.environment))
    codes = [finding.code for finding in findings if not finding.is_well]
    assert codes == ["user_unknown", "nobody_can_approve"]


async def test_fewer_approvers_than_approvals_are_named(site: Site) -> None:
    site.environment["APPROVALS_NEEDED"] = "4"
    assert await site.codes() == {"roles": "too_few_approvers"}
    site.environment["APPROVALS_NEEDED"] = "3"
    assert await site.codes() == {"roles": "lonely_approver"}
    site.environment["APPROVALS_NEEDED"] = "2"
    assert await site.codes() == {}


async def test_approver_whom_nobody_can_approve_is_named(site: Site) -> None:
    site.environment["ROLES"] = json.dumps({"admin": ["U0ADMIN"]})
    assert await site.codes() == {"roles": "lonely_approver"}
    assert "U0ADMIN" in await site.sentence("lonely_approver")
    site.environment["ALLOW_SELF_APPROVAL"] = "true"
    assert await site.codes() == {}


@pytest.mark.parametrize(
    ("contact", "code"), [("U0NOBODY", "user_unknown"), ("S0NOBODY", "group_unknown")]
)
async def test_contact_that_does_not_exist_is_named(site: Site, contact: str, code: str) -> None:
    site.environment["ACCESS_CONTACT"] = contact
    assert await site.codes() == {"ACCESS_CONTACT": code}
    assert contact in await site.sentence(code)
    assert "name the admins" in await site.sentence(code)


@pytest.mark.parametrize("contact", ["U0ADMIN", "S0APPROVERS"])
async def test_contact_that_exists_is_well(site: Site, contact: str) -> None:
    site.environment["ACCESS_CONTACT"] = contact
    findings = await examine(read_settings(site.environment))
    assert [finding.code for finding in findings if finding.subject == "ACCESS_CONTACT"] == ["ok"]


@pytest.mark.parametrize(
    ("host", "token", "is_warned"),
    [("0.0.0.0", None, True), ("127.0.0.1", None, False), ("0.0.0.0", "m" * 16, False)],
)
def test_metrics_without_a_token_are_warned_of(host, token, is_warned) -> None:
    environment = {**LEAST, "HOST": host, **({"METRICS_TOKEN": token} if token else {})}
    codes = [item.code for item in examine_environment(read_settings(environment), environment)]
    assert codes == (["metrics_without_token"] if is_warned else [])


async def test_service_that_answers_404_to_everything_is_no_flow_service(site: Site) -> None:
    for aliases in ("{}", json.dumps({"welcome": "FW" + "0" * 31 + "1"})):
        site.environment["FLOW_ALIASES"] = aliases
        site.environment["FLOW_BASE_URL"] = site.services.url + "/nothing/here"
        assert await site.codes() == {"flow": "wrong_host"}
        assert "FLOW_BASE_URL" in await site.sentence("wrong_host")


@pytest.mark.parametrize(
    ("missing", "service"),
    [("FLOW_AUTH_TOKEN", "flow"), ("FLOW_BASE_URL", "flow"), ("EMAIL_API_KEY", "email")],
)
async def test_service_that_is_half_set_up_is_named(site: Site, missing: str, service: str) -> None:
    del site.environment[missing]
    assert await site.codes() == {service: "half_configured"}
    assert missing in await site.sentence("half_configured")


async def test_key_of_earlier_versions_is_reported_as_unused(site: Site) -> None:
    site.environment["AUDIT_KEY"] = "x" * 32
    assert "AUDIT_KEY" not in await site.codes()
    assert "Remove the setting" in await site.sentence("setting_unused")


@pytest.mark.postgres
async def test_clock_of_the_database_that_differs_is_named(
    site: Site, postgres_url, monkeypatch
) -> None:
    site.environment["DATABASE_URL"] = postgres_url
    monkeypatch.setattr("bot.ops.clock.time", ahead(20))
    findings = await examine(read_settings(site.environment))
    assert "database_clock_off" in {finding.code for finding in findings}


async def test_names_that_mean_nothing_are_warned_of(site: Site) -> None:
    environment = {**site.environment, "FLOW_COLOUR": "red", "SLACK_WEBHOOK": "x", "EDITOR": "vi"}
    findings = await examine(read_settings(environment), environment)
    warned = [finding.subject for finding in findings if finding.code == "setting_unknown"]
    assert warned == ["FLOW_COLOUR", "SLACK_WEBHOOK"]
    assert all(finding.is_well for finding in findings)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("METRICS_TOKEN", "a-long-random-word", "example_secret"),
        ("FLOW_AUTH_TOKEN", "<token>", "example_secret"),
        ("SLACK_SIGNING_SECRET", "hello-world-hello-world", "signing_secret_form"),
    ],
)
def test_secrets_that_are_none_are_named(name: str, value: str, code: str) -> None:
    assert examine_environment(read_settings(LEAST), LEAST) == []
    (found,) = examine_environment(read_settings({**LEAST, name: value}), LEAST)
    assert (found.subject, found.code) == (name, code)


async def test_everybody_may_approve_where_the_settings_say_so(site: Site) -> None:
    site.roles(approver=["*"], admin=[])
    assert await site.codes() == {}


async def test_a_refused_data_center_credential_is_named(site: Site) -> None:
    site.data_center(authtoken="old-token")
    assert await site.codes() == {"inventory eu": "credentials_refused"}


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (ServiceFault(FaultKind.STATUS, "inventory", status=403), "listing_scope_missing"),
        (ServiceFault(FaultKind.HTML, "inventory"), "wrong_host"),
        (ServiceFault(FaultKind.REDIRECT, "inventory"), "wrong_host"),
        (ServiceFault(FaultKind.STATUS, "inventory", status=404), "wrong_host"),
        (ServiceFault(FaultKind.STATUS, "inventory", status=500), "service_failed"),
    ],
)
async def test_what_a_data_center_answers_is_told_apart(
    site: Site, fault: ServiceFault, code: str
) -> None:
    site.services.state.faults.add(fault)
    assert await site.codes() == {"inventory eu": code}


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda _: None, None),
        (lambda issuer: issuer.revoke_refresh("demo-refresh-eu"), "credentials_refused"),
        (lambda issuer: setattr(issuer, "rotates", True), "rotating_token"),
    ],
)
async def test_what_is_wrong_with_oauth_is_told_apart(site: Site, spoil, code) -> None:
    spoil(site.services.state.oauth)
    oauth = {
        "client_id": "demo-client",
        "client_secret": "demo-client-secret",
        "refresh_token": "demo-refresh-eu",
        "token_url": site.services.token_url,
    }
    center = {"oauth": oauth, "base_url": site.services.inventory_url("eu")}
    site.environment["INVENTORY_DATA_CENTERS"] = json.dumps({"eu": center})
    assert await site.codes() == ({"inventory eu": code} if code else {})


async def test_a_wrong_host_is_named(site: Site) -> None:
    site.data_center(base_url="http://127.0.0.1:9/inventory/v1")
    assert await site.codes() == {"inventory eu": "wrong_host"}
    assert "base_url" in await site.sentence("wrong_host")


async def test_a_data_center_without_organizations_is_named(site: Site) -> None:
    site.services.state.set_organizations("eu", [])
    assert await site.codes() == {"inventory eu": "no_organization"}


async def test_a_configured_organization_that_is_not_listed_is_named(site: Site) -> None:
    site.data_center(organization_id="999")
    assert await site.codes() == {"inventory eu": "organization_not_listed"}


async def test_listing_counts_against_the_organization_it_names(
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


async def test_an_organization_that_is_gone_does_not_hide_the_listing(sqlite_url) -> None:
    async with running_world(sqlite_url, inventory_watch="off") as world:
        await world.ask("U0VIEWER", "/orgs")
        organizations = world.services.state.data_centers["eu"].organizations
        world.services.state.set_organizations("eu", organizations[1:])
        assert all(item.is_well for item in await examine(read_settings(world.environment)))


async def test_refused_flow_credentials_are_named_once(site: Site) -> None:
    site.environment["FLOW_AUTH_TOKEN"] = "old-token"
    assert await site.codes() == {"flow welcome": "credentials_refused"}


async def test_an_alias_without_a_flow_is_named(site: Site) -> None:
    aliases = json.loads(site.environment["FLOW_ALIASES"])
    site.environment["FLOW_ALIASES"] = json.dumps({"gone": UNKNOWN_FLOW, **aliases})
    assert await site.codes() == {"flow gone": "flow_unknown"}
    assert "FLOW_ALIASES" in await site.sentence("flow_unknown")


async def test_a_form_field_that_the_service_does_not_take_is_named(site: Site) -> None:
    flows = site.services.state.flows
    site.services.state.flow_fields = ("TestUsers",)
    assert await site.codes() == {"FLOW_FORM_FIELD": "form_field_wrong"}
    assert "set FLOW_FORM_FIELD=TestUsers" in await site.sentence("form_field_wrong")
    site.environment["FLOW_FORM_FIELD"] = "TestUsers"
    assert await site.codes() == {}
    assert [flow.history for flow in flows.values()] == [[], []]


async def test_flow_credentials_are_tried_without_any_alias(site: Site) -> None:
    site.environment["FLOW_ALIASES"] = "{}"
    assert await site.codes() == {}
    site.environment["FLOW_AUTH_TOKEN"] = "old-token"
    assert await site.codes() == {"flow": "credentials_refused"}


@pytest.mark.parametrize(
    ("key", "auth", "code"),
    [
        ("SG.gone", "bearer", "credentials_refused"),
        ("SG.gone", "basic", "credentials_refused"),
        ("SG.limited-key", "bearer", "permission_missing"),
    ],
)
async def test_what_is_wrong_with_the_email_key_is_told_apart(
    site: Site, key: str, auth: str, code: str
) -> None:
    site.environment |= {"EMAIL_API_KEY": key, "EMAIL_AUTH": auth}
    assert await site.codes() == {"email": code}


async def test_basic_that_two_factor_authentication_forbids_is_named(site: Site) -> None:
    site.environment["EMAIL_AUTH"] = "basic"
    assert await site.codes() == {}
    site.services.state.faults.add(ServiceFault(FaultKind.STATUS, "email", status=403, times=1))
    assert "two-factor" in await site.sentence("basic_refused")


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


async def test_a_database_that_is_away_is_named_and_no_call_goes_without_it(site: Site) -> None:
    site.environment["DATABASE_URL"] = "postgresql://nobody:data-word@127.0.0.1:9/none"
    assert await site.codes() == {
        "database": "database_not_listening",
        "inventory eu": "not_tried",
    }
    assert [call.service for call in site.services.state.calls if call.service == "inventory"] == []


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda url: url + "_gone", "database_missing"),
        (lambda url: url.replace("postgres@", "nobody_here@"), "database_login_refused"),
        (lambda url: url.replace("127.0.0.1", "no-such-host.invalid"), "database_host_unknown"),
        (lambda url: url + "?sslmode=require", "database_tls"),
        (lambda url: url + "?options=-c%20nonsense%3D1", "database_parameter"),
        (lambda url: url + "?target_session_attrs=standby", "database_not_writable"),
    ],
)
async def test_why_a_server_cannot_be_used_is_named(site: Site, postgres_url, spoil, code) -> None:
    site.environment["DATABASE_URL"] = spoil(postgres_url)
    assert (await site.codes())["database"] == code


@pytest.mark.parametrize(
    ("name", "code"),
    [("gone/x.db", "database_no_file"), ("", "database_no_file"), ("text", "database_damaged")],
)
async def test_why_a_file_cannot_be_used_is_named(site: Site, tmp_path, name, code) -> None:
    (tmp_path / "text").write_text("no database, and long enough to be seen as none " * 100)
    site.environment["DATABASE_URL"] = f"sqlite:///{tmp_path}/{name}"
    assert (await site.codes())["database"] == code


@pytest.mark.postgres
async def test_a_database_that_is_not_utf_8_is_named(site: Site, empty_postgres_url) -> None:
    name = empty_postgres_url.rsplit("/", 1)[1] + "_latin"
    connection = await connect(empty_postgres_url)
    await connection.execute(
        f'CREATE DATABASE "{name}" TEMPLATE template0'
        " ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'"
    )
    try:
        site.environment["DATABASE_URL"] = empty_postgres_url + "_latin"
        assert (await site.codes())["database"] == "database_encoding"
    finally:
        await connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
        await connection.close()


@pytest.mark.postgres
async def test_a_database_that_can_only_be_read_is_named(site: Site, postgres_url) -> None:
    site.environment["DATABASE_URL"] = postgres_url
    assert await site.codes() == {}
    name = postgres_url.rsplit("/", 1)[1]
    connection = await connect(postgres_url)
    await connection.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    await connection.close()
    assert (await site.codes())["database"] == "database_not_writable"


async def test_a_database_of_another_version_is_named(site: Site, database) -> None:
    site.environment["DATABASE_URL"] = database.url
    for version, code in (
        ("9999", "database_too_new"),
        ("0001", "database_too_old"),
        ("0015", "database_outdated"),
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


def test_the_table_and_the_json_say_the_same() -> None:
    findings = [Finding("slack token", "ok", "is taken."), Finding("email", "x_wrong", "No.")]
    table = as_table(findings).splitlines()
    assert table[0] == "ok     slack token  is taken."
    assert table[1] == "WRONG  email        No. [x_wrong]"
    assert table[-1] == "1 problem to fix."
    skipped = [Finding("flow", "not_configured", "No."), Finding("roles", "not_tried", "Later.")]
    assert [line[:4] for line in as_table(skipped).splitlines()[:2]] == ["SKIP", "SKIP"]
    assert as_table(skipped).splitlines()[-1] == "All is well."
    assert json.loads(as_json(findings)) == {
        "ok": False,
        "checks": [
            {"subject": "slack token", "code": "ok", "sentence": "is taken.", "ok": True},
            {"subject": "email", "code": "x_wrong", "sentence": "No.", "ok": False},
        ],
    }


def test_words_of_others_stay_on_their_line_of_the_table() -> None:
    line = as_table([Finding("slack token", "ok", "of \x1b[2Aa\nb.")]).splitlines()[0]
    assert line == "ok     slack token  of \\x1b[2Aa\\nb."
