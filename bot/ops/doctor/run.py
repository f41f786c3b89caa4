"""The whole examination, from the settings alone: beside a running bot, or before its start."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress

import aiohttp
from pydantic import SecretStr
from yarl import URL

from bot.background.tasks import Tasks
from bot.clients.calls import Observed
from bot.clients.configured import (
    email_client,
    flow_client,
    inventory_access,
    quota_terms,
    redactor_of,
)
from bot.clients.email import EmailClient
from bot.clients.http import ServiceHttp, open_session
from bot.clients.inventory import InventoryClient
from bot.clients.proxies import slack_web_client
from bot.clients.slack import SlackClient
from bot.errors import DatabaseUnavailable, SlackError
from bot.ops.clock import Clock, SystemClock
from bot.ops.doctor.database import examine_database
from bot.ops.doctor.environment import examine_environment, half_configured
from bot.ops.doctor.findings import Finding, skipped
from bot.ops.doctor.gateway import examine_gateway
from bot.ops.doctor.record import examine_record
from bot.ops.doctor.roles import SUBJECT as ROLES
from bot.ops.doctor.roles import RolesExam
from bot.ops.doctor.services import examine_data_center, examine_email, examine_flows
from bot.ops.doctor.slack import (
    examine_app_token,
    examine_channel,
    examine_identity,
    refused_token,
)
from bot.settings import Settings, revealed
from bot.store import listings
from bot.store.engine import Database
from bot.store.listings import StoredListing
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.quotas.guard import Guard
from bot.workflows.quotas.incidents import Incidents

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
        key = self._settings.audit_key_bytes
        return [
            *await self._slack_and_roles(),
            *await self._inventory(can_be_granted=database.is_well),
            *await self._flows(),
            *await self._email(),
            *await self._gateway(),
            database,
            *(await examine_record(self._database, key, self._clock) if database.is_well else []),
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
                *(_not_known(one) for one in ("ALERTS_CHANNEL", "APPROVALS_CHANNEL", ROLES)),
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
        client = InventoryClient(self._http, guard, access)
        known = await self._representatives(client)
        exams = (
            examine_data_center(client, name, one.organization_id, known.get(name))
            for name, one in centers.items()
        )
        return list(await asyncio.gather(*exams))

    async def _representatives(self, client: InventoryClient) -> dict[str, str]:
        """Whom the next listing of each data center names, as the bot knows it."""
        directory = OrganizationDirectory(client, self._database, self._clock, 0, {})
        reports = (await directory.known()).reports
        return {one.data_center: one.listing.representative() for one in reports if one.listing}

    async def _flows(self) -> list[Finding]:
        settings = self._settings
        client = flow_client(settings, self._http)
        if client is None:
            half = half_configured(settings, "flow")
            return [half or _not_configured("flow", settings.missing_for("flow"))]
        spoilt = settings.model_copy(update={"flow_auth_token": SecretStr("no-such-token")})
        with_wrong_token = flow_client(spoilt, self._http) or client
        return await examine_flows(client, settings.flow_aliases, with_wrong_token)

    async def _gateway(self) -> list[Finding]:
        settings = self._settings
        stored: list[StoredListing | None] = []
        with suppress(DatabaseUnavailable):
            async with self._database.read_only() as tx:
                stored = [await listings.load(tx, one) for one in settings.inventory_data_centers]
        known = {one.data_center: listings.read(one) for one in stored if one is not None}
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
