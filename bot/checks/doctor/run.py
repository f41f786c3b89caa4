"""The whole examination, from the settings alone: beside a running bot, or before its start."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import aiohttp
from pydantic import SecretStr
from yarl import URL

from bot.checks.doctor.database import examine_database
from bot.checks.doctor.environment import examine_environment, half_configured
from bot.checks.doctor.findings import Finding, skipped
from bot.checks.doctor.gateway import examine_gateway
from bot.checks.doctor.record import examine_clocks
from bot.checks.doctor.roles import SUBJECT as ROLES
from bot.checks.doctor.roles import RolesExam
from bot.checks.doctor.services import (
    examine_data_center,
    examine_email,
    examine_flows,
    examine_form_field,
)
from bot.checks.doctor.slack import (
    examine_app_token,
    examine_channel,
    examine_identity,
    refused_token,
)
from bot.configured import email_client, flow_client, inventory_access, quota_terms, redactor_of
from bot.emailkey import EmailClient
from bot.errors import DatabaseUnavailable, SlackError
from bot.ops.clock import Clock, SystemClock
from bot.organizations import listings
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import Listing
from bot.quotas.guard import Guard
from bot.quotas.incidents import Incidents
from bot.services.calls import Observed
from bot.services.http import ServiceHttp, open_session
from bot.settings import Settings, revealed
from bot.slack.client import SlackClient, slack_web_client
from bot.store.engine import Database
from bot.tasks import Tasks
from bot.testusers.client import FlowClient

SLACK_SECONDS = 10


async def examine(
    settings: Settings, clock: Clock | None = None, environment: Mapping[str, str] | None = None
) -> list[Finding]:
    """Try everything that is configured; one finding a line, in the order of the report.

    `environment` is where the settings are from, with the names that are none.
    """
    clock = clock or SystemClock()
    database = Database(settings.database_url.get_secret_value(), clock)
    async with open_session() as session:
        try:
            exam = _Examination(settings, clock, database, session)
            return [*examine_environment(settings, environment or {}), *await exam.run()]
        finally:
            await database.close()


class _Examination:
    def __init__(
        self, settings: Settings, clock: Clock, database: Database, session: aiohttp.ClientSession
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._database = database
        self._http = ServiceHttp(session, redactor_of(settings), _unobserved, clock)
        token = settings.slack_bot_token.get_secret_value()
        web = slack_web_client(token, settings.slack_api_url, session, SLACK_SECONDS)
        self._slack = SlackClient(web, clock)

    async def run(self) -> list[Finding]:
        database = await examine_database(self._database)
        return [
            *await self._slack_and_roles(),
            *await self._inventory(can_be_granted=database.is_well),
            *await self._flows(),
            *await self._email(),
            *await self._gateway(),
            database,
            *(await examine_clocks(self._database, self._clock) if database.is_well else []),
        ]

    async def _slack_and_roles(self) -> list[Finding]:
        settings, slack = self._settings, self._slack
        try:
            me = await slack.who_am_i()
        except SlackError as error:
            return [
                refused_token(error),
                _not_known("slack scopes"),
                *await self._app_token(),
                *(_not_known(name) for name in ("ALERTS_CHANNEL", "APPROVALS_CHANNEL", ROLES)),
            ]
        needed = settings.approvals_needed if not settings.missing_for("flow") else 0
        return [
            *examine_identity(me, self._clock.now()),
            *await self._app_token(),
            *await examine_channel(
                slack, "ALERTS_CHANNEL", settings.alerts_channel, is_private_wanted=False
            ),
            *await examine_channel(
                slack, "APPROVALS_CHANNEL", settings.approvals_channel, is_private_wanted=True
            ),
            *await RolesExam(slack, settings.policy, me.team_id, needed).run(),
        ]

    async def _app_token(self) -> list[Finding]:
        return await examine_app_token(self._slack, revealed(self._settings.slack_app_token))

    async def _inventory(self, *, can_be_granted: bool) -> list[Finding]:
        centers = self._settings.inventory_data_centers
        if not centers:
            return [_not_configured("inventory", ["INVENTORY_DATA_CENTERS"])]
        if not can_be_granted:
            sentence = "Not tried: a call needs the database, where all processes count theirs."
            return [Finding(f"inventory {name}", "not_tried", sentence) for name in centers]
        terms = quota_terms(self._settings)
        incidents = Incidents(terms)
        guard = Guard(self._database, self._clock, terms, incidents, Tasks())
        access = inventory_access(self._settings, self._http, self._clock)
        client = InventoryClient(self._http, guard.call, access)
        known = await self._representatives(client)
        exams = (
            examine_data_center(client, name, one.organization_id, known.get(name))
            for name, one in centers.items()
        )
        return list(await asyncio.gather(*exams))

    async def _representatives(self, client: InventoryClient) -> dict[str, str]:
        """Return the organization that the next listing of each data center names."""
        directory = OrganizationDirectory(client, self._database, self._clock, 0, {})
        reports = (await directory.known()).reports
        return {
            report.data_center: report.listing.representative()
            for report in reports
            if report.listing
        }

    async def _flows(self) -> list[Finding]:
        settings = self._settings
        client = flow_client(settings, self._http)
        if client is None:
            half = half_configured(settings, "flow")
            return [half or _not_configured("flow", settings.missing_for("flow"))]
        spoilt = settings.model_copy(update={"flow_auth_token": SecretStr("no-such-token")})
        with_wrong_token = flow_client(spoilt, self._http) or client
        found = await examine_flows(client, settings.flow_aliases, with_wrong_token)
        if not all(finding.is_well for finding in found):
            return found

        def through(form_field: str) -> FlowClient:
            changed = settings.model_copy(update={"flow_form_field": form_field})
            return flow_client(changed, self._http) or client

        flow_sid = next(iter(settings.flow_aliases.values()), None)
        return found + await examine_form_field(through, settings.flow_form_field, flow_sid)

    async def _gateway(self) -> list[Finding]:
        settings = self._settings
        stored: list[Listing | None] = []
        with suppress(DatabaseUnavailable):
            async with self._database.read_only() as tx:
                stored = [
                    await listings.load(tx, center) for center in settings.inventory_data_centers
                ]
        known = {listing.data_center: listing for listing in stored if listing is not None}
        return examine_gateway(settings, known)

    async def _email(self) -> list[Finding]:
        settings = self._settings
        client = email_client(settings, self._http)
        if client is None or settings.email_base_url is None or settings.email_api_key is None:
            half = half_configured(settings, "email")
            return [half or _not_configured("email", settings.missing_for("email"))]
        url = URL(settings.email_base_url)
        as_bearer = EmailClient(self._http, url, settings.email_api_key, "bearer")
        return [await examine_email(client, as_bearer)]


def _not_configured(subject: str, missing: Sequence[str]) -> Finding:
    return skipped(
        subject, f"is not configured; its commands say what they need: {', '.join(missing)}."
    )


def _not_known(subject: str) -> Finding:
    return Finding(subject, "not_tried", "Not tried: Slack has to take the token first.")


def _unobserved(observed: Observed) -> None:
    """The doctor keeps no metrics."""
