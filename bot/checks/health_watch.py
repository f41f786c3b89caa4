"""Looks again and again at what nothing else may look at for hours."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import structlog

from bot.checks.clock_watch import ClockWatch
from bot.checks.health import CHANNEL_ERRORS, Health
from bot.checks.health_alerts import HealthAlerts
from bot.checks.rules.health import Part
from bot.errors import DatabaseTooNew, DatabaseUnavailable, SlackError, SlackRefused
from bot.ops.clock import Clock, since_boot
from bot.store.causes import DatabaseCause, cause_of
from bot.store.engine import Database
from bot.store.migrations import notice_newer

log = structlog.get_logger(__name__)

TICK_SECONDS = 5.0
TOO_NEW = DatabaseCause(
    DatabaseTooNew.outcome,
    "A newer version of Gatehouse has migrated the database. Stop this process.",
)
# In ticks. Slack lets an app look at fifty channels a minute, whatever the number of processes.
TOKEN_EVERY, CHANNELS_EVERY = 3, 12


class SlackProbe(Protocol):
    """The Slack calls that the watch makes. Every method raises `SlackError`s."""

    async def who_am_i(self) -> Any:  # noqa: ANN401 - only when it answered
        """Return who the token belongs to; `answered_at` is the `Date` of the answer."""
        ...

    async def channel(self, channel_id: str) -> Mapping[str, Any]:
        """Return a channel."""
        ...


class HealthWatch:
    """Looks at the database every 5 s, at the token every 15 s, at the channels every minute.

    Args:
        health: What is seen is noted there.
        alerts: Told of what stays broken.
        slack: Asked whether it takes the token, and for the channels.
        database: Written to, without changing anything.
        channels: As for `Health`.
        clock: For the pauses.
    """

    def __init__(
        self,
        health: Health,
        alerts: HealthAlerts,
        slack: SlackProbe,
        database: Database,
        channels: Mapping[Part, str],
        clock: Clock,
    ) -> None:
        self._health = health
        self._alerts = alerts
        self._slack = slack
        self._database = database
        self._channels = channels
        self._clock = clock
        self._clocks = ClockWatch(health, database, clock)

    async def run(self, is_connected: Callable[[], Awaitable[bool | None]]) -> None:
        """Look for ever; `is_connected` says whether Socket Mode is, None where it is not used."""
        tick = 0
        while True:
            await self._clock.sleep(TICK_SECONDS)
            tick += 1
            try:
                await self._look(tick, await is_connected())
            except Exception:
                # Nobody would look any more; what the bot is for goes on.
                log.exception("health.broken_off")

    async def _look(self, tick: int, connected: bool | None) -> None:  # noqa: FBT001
        if connected is not None:
            self._health.note_socket(is_connected=connected)
        await self.look_at_database()
        if tick % TOKEN_EVERY == 0:
            await self.look_at_token()
        if tick % CHANNELS_EVERY == 0:
            await self.look_at_channels()
        await self._alerts.tell(self._health.troubles())

    async def look_at_database(self) -> None:
        """Try a write, unless a newer program has migrated the database."""
        try:
            if await notice_newer(self._database):
                self._health.note_database(TOO_NEW)
                return
            await self._database.try_writing()
        except DatabaseUnavailable as error:
            self._health.note_database(cause_of(error))
        else:
            self._health.note_database(None)

    async def look_at_token(self) -> None:
        """Ask Slack whether it still takes the token: what it says is noted with the call.

        Its answer tells the time, too.
        """
        asked_at = since_boot()
        try:
            me = await self._slack.who_am_i()
        except SlackError:
            return
        self._health.note_scopes(me.scopes)
        await self._clocks.compare(me.answered_at, asked_at)

    async def look_at_channels(self) -> None:
        """Ask Slack for both channels; of one that cannot be looked up nothing is said."""
        looks = (self._look_at_channel(part, id_) for part, id_ in self._channels.items())
        await asyncio.gather(*looks)

    async def _look_at_channel(self, part: Part, channel_id: str) -> None:
        try:
            channel = await self._slack.channel(channel_id)
        except SlackRefused as error:
            if error.error in CHANNEL_ERRORS:
                self._health.note_channel(part, error.error)
        except SlackError:
            return
        else:
            self._health.note_channel(part, _channel_error(channel))


def _channel_error(channel: Mapping[str, Any]) -> str | None:
    if channel.get("is_archived"):
        return "is_archived"
    return "not_in_channel" if channel.get("is_member") is False else None
