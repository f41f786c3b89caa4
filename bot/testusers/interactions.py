"""Button clicks, which are stored before Slack gets a response so that no click is lost in a crash.

Any running process can carry out a stored click in the job `click:<id>`. The reply goes to the
click's response_url. Repeating the job, for example after a crash, has no further effect.
"""

from dataclasses import dataclass
from datetime import timedelta

import structlog
from pydantic import TypeAdapter

from bot.approvals.rules import Act
from bot.errors import DatabaseUnavailable, GatehouseError, UnknownPerson
from bot.slack.messages import ids, replies
from bot.slack.messages.block_kit import Message
from bot.slack.received_events import taking_in
from bot.store import jobs
from bot.store.job_loop import Lease, Outcome
from bot.store.jobs import Again, Job
from bot.store.tables import EPOCH
from bot.testusers.asking import undo
from bot.testusers.deciding import Click, decide
from bot.testusers.messages import notes
from bot.testusers.parse.command import ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.reading import reader_of
from bot.testusers.rendering import answer_to

log = structlog.get_logger(__name__)

INTERACTION = "testusers.interaction"
# Undo clicks have their own kind of job, because reading the list can take a long time.
UNDO = "testusers.undo"
READY_SECONDS = 0.5
STORED = Message(
    "Your click was saved, but then the database became unavailable. I'll process the click as"
    " soon as the database is available again."
)
# The number of tries for a click while Slack is unavailable, and the seconds between tries.
WHO_TRIES, WHO_SECONDS = 60, 10.0


@dataclass(frozen=True)
class StoredInteraction:
    """A stored click: the person, the action, the request, and where to send the reply.

    `version` is the version of what the clicked card says, or 0 if the button doesn't have one.
    """

    act: Act
    request_id: str
    slack_user_id: str
    team_ids: tuple[str, ...]
    reply_to: str
    denial_reason: str = ""
    version: int = 0


_STORED = TypeAdapter(StoredInteraction)


async def store_click(bot: Parts, interaction: StoredInteraction) -> None:
    """Store a click so that a job carries it out, in another process if this one crashes.

    Raises:
        DatabaseUnavailable: The click wasn't stored, so it won't be carried out.
        Replayed: The click has already been stored.
    """
    async with taking_in(bot.database) as tx:
        job = Job(
            f"click:{bot.new_id()}",
            UNDO if interaction.act is Act.UNDO else INTERACTION,
            interaction.request_id[:255],
            EPOCH,
            _STORED.dump_python(interaction, mode="json"),
        )
        await jobs.put_after(tx, job)


async def run_click(bot: Parts, job: Job, lease: Lease) -> Outcome:
    """Carry out a stored click and reply, or wait if Slack can't say who clicked."""
    if not bot.people.is_ready:
        return await bot.database.now() + timedelta(seconds=READY_SECONDS)
    interaction = _STORED.validate_python(job.payload)
    try:
        message, outcome = await _answer(bot, interaction, job.key)
    except DatabaseUnavailable as error:
        # The job is repeated until the database is back. Only its first run says so.
        waited = bot.clock.now() - job.due_at
        if error.is_passing and waited < timedelta(seconds=jobs.LEASE_SECONDS):
            await bot.replies.say(interaction.reply_to, STORED, to=interaction.slack_user_id)
        raise
    is_told = True
    # A click on the Home tab has no URL to reply to. If all is well, the tab shows the result.
    if interaction.reply_to or outcome != "ok":
        # The job isn't repeated for the reply, because that would record the click again.
        to = interaction.slack_user_id
        is_told = await bot.replies.say(interaction.reply_to, message, to=to)
    if outcome == UnknownPerson.outcome and not is_told and job.tries < WHO_TRIES:
        # Slack is unavailable, so nothing was done and the person got no answer.
        at = await bot.database.now() + timedelta(seconds=WHO_SECONDS)
        return Again(at, job.tries + 1)
    async with bot.database.transaction() as tx:
        await bot.refresh_home(tx, interaction.slack_user_id)
        await lease.finish(tx)
    return None


async def _answer(
    bot: Parts, interaction: StoredInteraction, reference: str
) -> tuple[Message, str]:
    """Carry out a click, and return the reply and the outcome for metrics and logs.

    `reference` is what the person reads after an unexpected error.
    """
    act = interaction.act
    name = f"testusers.{act}"
    outcome = "ok"
    shown = ShownRequest(interaction.request_id, interaction.version)
    try:
        person = await bot.people.find(interaction.slack_user_id, interaction.team_ids)
        if act is Act.UNDO:
            message = await answer_to(bot, person, await undo(bot, person, shown))
        else:
            decided = await decide(bot, Click(person, act, shown, interaction.denial_reason))
            message = notes.decided(act, decided, reader_of(bot, person).show)
    except DatabaseUnavailable:
        raise
    except GatehouseError as error:
        message = replies.sorry(error)
        if error.is_passing:
            message = replies.with_retry(message, f"{ids.TESTUSERS_ACT}{act}", shown.value())
        outcome = error.outcome
    except Exception:
        log.exception("click.broken", name=name, reference=reference)
        message = replies.broken(reference)
        outcome = "broken"
    bot.metrics.count_command(name, outcome)
    log.info("answered", name=name, outcome=outcome)
    return message, outcome
