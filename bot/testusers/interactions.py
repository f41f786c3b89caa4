"""Button clicks, which are stored before Slack gets a response so that no click is lost in a crash.

Any running process can carry out a stored click in the job `click:<id>`. The reply goes to the
click's response_url. Repeating the job, for example after a crash, has no further effect.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from cachetools import LRUCache
from pydantic import TypeAdapter

from bot.approvals.rules import Act
from bot.errors import DatabaseUnavailable, GatehouseError, Replayed, UnknownPerson
from bot.slack.messages import replies
from bot.slack.received_events import take_in
from bot.store import jobs
from bot.store.job_loop import Again, Lease, Outcome
from bot.store.jobs import Job
from bot.testusers.asking import undo
from bot.testusers.deciding import Click, decide
from bot.testusers.messages import notes
from bot.testusers.parse.form import ShownRequest
from bot.testusers.parts import Parts
from bot.testusers.rendering import answer_to

log = structlog.get_logger(__name__)

INTERACTION = "testusers.interaction"
# Undo clicks have their own kind of job, because reading the list can take a long time.
UNDO = "testusers.undo"
READY_SECONDS = 0.5
# The number of tries for a click while Slack is unavailable, and the seconds between tries.
WHO_TRIES, WHO_SECONDS = 6, 10.0
WAITING_INTERACTIONS = 1_000


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
    async with bot.database.transaction() as tx:
        if not await take_in(tx):
            raise Replayed
        job = Job(
            f"click:{bot.new_id()}",
            UNDO if interaction.act is Act.UNDO else INTERACTION,
            interaction.request_id[:255],
            await tx.now(),
            _STORED.dump_python(interaction, mode="json"),
        )
        await jobs.put(tx, job)


class StoredInteractions:
    """Carries out stored clicks as jobs."""

    def __init__(self, bot: Parts) -> None:
        self._bot = bot
        # Clicks that already got the reply `NOTED`. The reply isn't repeated, because a
        # response_url accepts only five posts.
        self._said_later: LRUCache[str, bool] = LRUCache(WAITING_INTERACTIONS)

    async def run(self, job: Job, lease: Lease) -> Outcome:
        """Carry out a stored click and reply, or wait if the bot hasn't connected to Slack yet."""
        if not self._bot.people.is_ready:
            return await self._soon(READY_SECONDS)
        interaction = _STORED.validate_python(job.payload)
        again = await self._follow(interaction, job)
        if again is None:
            async with self._bot.database.transaction() as tx:
                await self._bot.refresh_home(tx, interaction.slack_user_id)
                await lease.finish(tx)
        return again

    async def _follow(self, interaction: StoredInteraction, job: Job) -> Outcome:
        bot, act, user = self._bot, interaction.act, interaction.slack_user_id
        name, url = f"testusers.{act}", interaction.reply_to
        shown = ShownRequest(interaction.request_id, interaction.version)
        try:
            person, outcome = await bot.people.find(user, interaction.team_ids), "ok"
            if act is Act.UNDO:
                message = await answer_to(bot, person, await undo(bot, person, shown))
            else:
                click = Click(person, act, shown, interaction.denial_reason)
                decided = await decide(bot, click)
                message = notes.decided(act, decided.reason, decided.request, decided.needed)
        except DatabaseUnavailable:
            if job.key not in self._said_later:
                self._said_later[job.key] = True
                await bot.replies.say(url, replies.NOTED, to=user)
            raise
        except GatehouseError as error:
            message, outcome = replies.sorry(error), error.outcome
        except Exception:
            log.exception("click.broken", name=name, reference=job.key)
            message, outcome = replies.broken(job.key), "broken"
        bot.metrics.count_command(name, outcome)
        log.info("answered", name=name, outcome=outcome)
        if not url and outcome == "ok":
            # The click came from the Home tab, which shows the result.
            return None
        if await bot.replies.say(url, message, to=user):
            return None
        if outcome == UnknownPerson.outcome and job.tries < WHO_TRIES:
            # Slack is unavailable, so nothing was done and the person got no answer.
            return Again(await self._soon(WHO_SECONDS), job.tries + 1)
        # A retry would process and record the click again, so an undelivered reply isn't retried.
        # The card shows the result, and an error is sent as a direct message.
        is_told = outcome != "ok" and url and await bot.replies.say("", message, to=user)
        if not is_told:
            log.warning("click.unanswered", name=name)
        return None

    async def _soon(self, seconds: float) -> datetime:
        return await self._bot.database.now() + timedelta(seconds=seconds)
