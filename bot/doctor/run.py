"""The whole examination, from the settings alone: beside a running bot, or before its start."""

import asyncio
from collections.abc import Sequence

import aiohttp
from slack_sdk.web.async_client import AsyncWebClient
from yarl import URL

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
from bot.clients.slack import SlackClient
from bot.clock import Clock, SystemClock
from bot.doctor.database import examine_database
from bot.doctor.findings import Finding, well
from bot.doctor.roles import SUBJECT as ROLES
from bot.doctor.roles import RolesExam
from bot.doctor.services import examine_data_center, examine_email, examine_flows
from bot.doctor.slack import (
    examine_app_token,
    examine_channel,
    examine_identity,
    refused_token,
)
from bot.errors import SlackError
from bot.settings import Settings, revealed
from bot.store.engine import Database
from bot.tasks import Tasks
from bot.workflows.directory import OrganizationDirectory
from bot.workflows.guard import Guard
from bot.workflows.incidents import Incidents

SLACK_SECONDS = 10


async def examine(settings: Settings, clock: Clock | None = None) -> list[Finding]:
    """Try everything that is configured; one finding a line, in the order of the report."""
    clock = clock or SystemClock()
    database = Database(settings.database_url.get_secret_value(), clock)
    async with open_session() as session:
        try:
            return await _Examination(settings, clock, database, session).run()
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
        web = AsyncWebClient(
            token=settings.slack_bot_token.get_secret_value(),
            base_url=settings.slack_api_url.rstrip("/") + "/",
            session=session,
            timeout=SLACK_SECONDS,
        )
        self._slack = SlackClient(web, clock)

    async def run(self) -> list[Finding]:
        database = await examine_database(self._database)
        return [
            *await self._slack_and_roles(),
            *await self._inventory(can_be_granted=database.is_well),
            *await self._flows(),
            *await self._email(),
            database,
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
        incidents = Incidents(terms, _nobody_to_wake)
        guard = Guard(self._database, self._clock, terms, incidents, Tasks())
        access = inventory_access(self._settings, self._http, self._clock)
        client = InventoryClient(self._http, guard, access)
        known = await self._spokesmen(client)
        exams = (
            examine_data_center(client, name, one.organization_id, known.get(name))
            for name, one in centers.items()
        )
        return list(await asyncio.gather(*exams))

    async def _spokesmen(self, client: InventoryClient) -> dict[str, str]:
        """Whom the next listing of each data center names, as the bot knows it."""
        directory = OrganizationDirectory(client, self._database, self._clock, 0, {})
        reports = (await directory.known()).reports
        return {one.data_center: one.listing.spokesman() for one in reports if one.listing}

    async def _flows(self) -> list[Finding]:
        client = flow_client(self._settings, self._http)
        if client is None:
            return [_not_configured("flow", self._settings.missing_for("flow"))]
        return await examine_flows(client, self._settings.flow_aliases)

    async def _email(self) -> list[Finding]:
        settings = self._settings
        client = email_client(settings, self._http)
        if client is None or settings.email_base_url is None or settings.email_api_key is None:
            return [_not_configured("email", settings.missing_for("email"))]
        url = URL(settings.email_base_url)
        as_bearer = EmailClient(self._http, url, settings.email_api_key, "bearer")
        return [await examine_email(client, as_bearer)]


def _not_configured(subject: str, missing: Sequence[str]) -> Finding:
    return well(
        subject, f"is not configured; its command names what is missing: {', '.join(missing)}."
    )


def _not_known(subject: str) -> Finding:
    return Finding(subject, "not_tried", "Not tried: Slack has to take the token first.")


def _unobserved(observed: Observed) -> None:
    """The doctor keeps no metrics."""


def _nobody_to_wake() -> None:
    """The job loop runs in the bot, which finds the doctor's jobs within a second."""
