"""Alert messages about incidents, their button actions, and the jobs that update them."""

from dataclasses import dataclass
from datetime import UTC, datetime

from bot.errors import NotConfigured, NotFound, OrganizationBlocked, QuotaExhausted
from bot.organizations.directory import InventoryListings, OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.permissions import Person
from bot.quotas.incidents import MUTE_SECONDS, Incidents, card_message, mute_job, probe_job
from bot.quotas.messages import incidents as ui
from bot.quotas.rules.blocks import Incident
from bot.quotas.store import incidents
from bot.quotas.store import ledger as quotas
from bot.services.calls import PROBE, CallCause
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError, ServiceRefused
from bot.slack.sender import CardNow, Note
from bot.store import outbox
from bot.store.audit import AuditStore
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.outbox import OutboxMessage

EDIT_SECONDS = 10.0
# Outcomes that mean the organization doesn't exist or isn't ours.
_DECLINED = (ServiceRefused, CredentialsRefused, PermissionMissing)


class Probes:
    """Runs the `probe` jobs; any running process makes the single call at the end of a pause.

    Args:
        inventory: Makes the call; its guard grants one probe at a time and records the outcome.
        directory: Stores the listing that a successful call returns.
        incidents: Records calls that were not made, and why.
    """

    def __init__(
        self,
        inventory: InventoryListings,
        directory: OrganizationDirectory,
        incidents: Incidents,
    ) -> None:
        self._inventory = inventory
        self._directory = directory
        self._incidents = incidents

    async def plan(self, tx: Transaction) -> None:
        """Add a probe job for every organization that is blocked."""
        for incident in await incidents.all_open(tx):
            await probe_job(tx, incident.organization, incident.key, incident.blocks, ensure=True)

    async def run(self, job: Job, lease: Lease) -> datetime | None:
        """Make the call if the organization is still blocked; return the time of the next attempt.

        If the call was made or must wait, this also schedules the next job and updates the time
        shown in the organization's alerts.
        """
        key = OrganizationKey.of_path(job.subject)
        async with lease.database.read_only() as tx:
            due = await self._incidents.next_try(tx, key)
        if due is None:
            return None
        await lease.confirm()
        try:
            found = await self._inventory.organizations(key, CallCause(PROBE))
        except OrganizationBlocked as blocked:
            # Another process is making the call, or died while making it.
            return blocked.until
        except QuotaExhausted as full:
            await self._postpone(lease.database, key, full.free_at)
        except NotConfigured:
            # The data center was removed from the settings.
            await self._end(lease.database, key, "is no longer in the settings")
        except ServiceError as error:
            if isinstance(error, ServiceRefused):
                # The data center lists no organizations anymore, or its listings are blocked like
                # this call.
                self._directory.note_declined(key)
            if isinstance(error, _DECLINED) and await self._is_gone(key):
                await self._end(lease.database, key, "is no longer listed by the service")
                return None
            # The attempt may have failed before it reached the guard, for example while renewing a
            # token.
            async with lease.database.transaction() as tx:
                await self._incidents.not_reached(tx, key, due)
            raise
        else:
            await self._directory.accept(key, found)
        return None

    async def _is_gone(self, key: OrganizationKey) -> bool:
        listing = (await self._directory.known()).report_on(key.data_center).listing
        is_listed = listing is None or listing.place_of(key.organization_id) is not None
        return bool(key.organization_id) and not is_listed

    async def _end(self, database: Database, key: OrganizationKey, why: str) -> None:
        async with database.transaction() as tx:
            await self._incidents.gone(tx, key, why)

    async def _postpone(self, database: Database, key: OrganizationKey, until: datetime) -> None:
        async with database.transaction() as tx:
            await self._incidents.postpone(tx, key, until)


@dataclass(frozen=True)
class Alerts:
    """The alerts in `ALERTS_CHANNEL`.

    Args:
        database: Stores the incidents.
        audit: Records mutes.
        directory: Provides organization names.
        channel_id: `ALERTS_CHANNEL`.
    """

    database: Database
    audit: AuditStore
    directory: OrganizationDirectory
    channel_id: str

    async def card(self, outbox_message: OutboxMessage) -> CardNow | None:
        """Return the incident's current message; None if it was muted before posting."""
        incident = await self._load(int(outbox_message.subject))
        if incident is None:
            return None
        if incident.muted_until is not None and not await self._is_posted(outbox_message.key):
            return None
        seconds = EDIT_SECONDS if incident.closed_at is None else 0.0
        message = ui.card(incident, await self._name(incident.key))
        return CardNow(self.channel_id, message, seconds)

    async def note(self, outbox_message: OutboxMessage) -> Note | None:
        """Return the reply that announces the incident's end in its thread."""
        incident = await self._load(int(outbox_message.subject))
        if incident is None or not await self._is_posted(outbox_message.key):
            return None
        message = ui.cleared_note(incident, await self._name(incident.key))
        return Note(self.channel_id, message, in_thread=True)

    async def after_mute(self, job: Job, _lease: Lease) -> None:
        """Run the `alert` jobs: report incidents that began during a mute and are still open."""
        incident = await self._load(int(job.subject))
        if incident is None or incident.closed_at is not None:
            return
        async with self.database.transaction() as tx:
            await outbox.put(tx, card_message(incident.id))

    async def mute(self, person: Person, incident_id: int) -> tuple[str, datetime]:
        """Mute alerts about the incident's organization for an hour.

        Return the organization's name and the end of the mute.

        Raises:
            NotFound: No such incident.
        """
        async with self.database.transaction() as tx:
            incident = await _existing(tx, incident_id)
            until = (await tx.now()).timestamp() + MUTE_SECONDS
            organization = await quotas.mute(tx, incident.key, until, person.name)
            for open_id in await incidents.open_ids(tx, organization):
                await mute_job(tx, open_id, until)
            await outbox.put(tx, card_message(incident_id))
            detail = {"incident": incident_id, "seconds": MUTE_SECONDS}
            entry = AuditEntry(person.slack_user_id, "alert.muted", str(incident.key), detail)
            await self.audit.append(tx, entry)
        return await self._name(incident.key), datetime.fromtimestamp(until, UTC)

    async def unmute(self, person: Person, incident_id: int) -> str:
        """Unmute alerts about the incident's organization; return the organization's name.

        Raises:
            NotFound: No such incident.
        """
        async with self.database.transaction() as tx:
            incident = await _existing(tx, incident_id)
            organization = await quotas.mute(tx, incident.key, 0.0, None)
            # Post the alerts that the mute suppressed.
            for open_id in {incident_id, *await incidents.open_ids(tx, organization)}:
                await outbox.put(tx, card_message(open_id))
            detail = {"incident": incident_id}
            entry = AuditEntry(person.slack_user_id, "alert.unmuted", str(incident.key), detail)
            await self.audit.append(tx, entry)
        return await self._name(incident.key)

    async def key_of(self, incident_id: int) -> OrganizationKey:
        """Return the organization that an incident is about.

        Raises:
            NotFound: No such incident.
        """
        incident = await self._load(incident_id)
        if incident is None:
            raise NotFound("That alert no longer exists.")
        return incident.key

    async def _load(self, incident_id: int) -> Incident | None:
        async with self.database.read_only() as tx:
            return await incidents.load(tx, incident_id)

    async def _is_posted(self, key: str) -> bool:
        async with self.database.read_only() as tx:
            return await outbox.sent_card(tx, key) is not None

    async def _name(self, key: OrganizationKey) -> str:
        return (await self.directory.known()).name_of(key)


async def _existing(tx: Transaction, incident_id: int) -> Incident:
    incident = await incidents.load(tx, incident_id)
    if incident is None:
        raise NotFound("That alert no longer exists.")
    return incident
