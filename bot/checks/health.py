"""This process's own health: noted as it happens and checked regularly."""

from collections.abc import Mapping

import structlog

from bot.checks.rules.clocks import ahead_or_behind, is_wrong
from bot.checks.rules.health import READINESS, Part, Trouble
from bot.errors import SlackUnreachable
from bot.ops.clock import Clock
from bot.slack.manifest import missing_scopes
from bot.store.causes import DatabaseCause

log = structlog.get_logger(__name__)

# Slack itself closes the socket now and then, and it is opened again at once.
DEAF_SECONDS = 60.0
# By which Slack says that the token is no good any more.
TOKEN_ERRORS = frozenset(
    {
        *("invalid_auth", "token_revoked", "token_expired", "account_inactive", "not_authed"),
        *("team_disabled", "app_uninstalled"),
    }
)
CHANNEL_ERRORS = {
    "channel_not_found": "is not known to Slack, or the bot was removed from it: /invite it",
    "not_in_channel": "is a channel that the bot is not in: /invite it",
    "is_archived": "is archived: unarchive it, or choose another one",
}
# Whose channel says whether the bot can post there; the others only look.
POSTING = frozenset({"chat_postMessage", "chat_update"})
# Called with another token.
OTHER_TOKEN = frozenset({"apps_connections_open"})


class Health:
    """Notes what goes wrong and what goes right, and says what is broken now.

    Args:
        clock: For how long things last.
        channels: The id of each channel that the bot posts to.
    """

    def __init__(self, clock: Clock, channels: Mapping[Part, str]) -> None:
        self._clock = clock
        self._channels = dict(channels)
        self._troubles: dict[Part, Trouble] = {}
        self._deaf_since: float | None = None
        self._team_id = ""

    def troubles(self) -> list[Trouble]:
        """Return what is broken now, the worst first."""
        return [self._troubles[part] for part in Part if part in self._troubles]

    def missing(self) -> str | None:
        """Return what readiness lacks: `database`, `slack`, or nothing."""
        words = {READINESS.get(trouble.part) for trouble in self.troubles()} - {None}
        return min(words, default=None)  # type: ignore[type-var]

    def besides(self) -> list[str]:
        """Return what is broken and no reason to be unready, by the names of metrics."""
        return [trouble.part.value for trouble in self.troubles() if trouble.part not in READINESS]

    def meet(self, team_id: str) -> None:
        """Learn which workspace is ours."""
        self._team_id = team_id

    def note_slack(self, method: str, error: str | None, channel_id: str | None) -> None:
        """Note a call of the Web API: None as `error` when it was taken, else Slack's name.

        What goes wrong before Slack has said who we are, the start tells by itself.
        """
        if method in OTHER_TOKEN or not self._team_id:
            return
        if error in TOKEN_ERRORS:
            self._begin(
                Part.SLACK_TOKEN,
                f"Slack refuses SLACK_BOT_TOKEN ({error}). Install the app again, set its token.",
            )
        elif error is None:
            self._end(Part.SLACK_TOKEN)
        if error == SlackUnreachable.outcome:
            self._begin(
                Part.SLACK_API, "Slack's API cannot be reached. Messages wait until it answers."
            )
        else:
            self._end(Part.SLACK_API)
        if method in POSTING and (error is None or error in CHANNEL_ERRORS):
            for part in (part for part, its_id in self._channels.items() if its_id == channel_id):
                self.note_channel(part, error)

    def note_scopes(self, granted: frozenset[str]) -> None:
        """Note the scopes of the token; empty where Slack does not tell them."""
        missing = missing_scopes(granted)
        if missing:
            self._begin(Part.SLACK_SCOPES, missing)
        else:
            self._end(Part.SLACK_SCOPES)

    def note_channel(self, part: Part, error: str | None) -> None:
        """Note whether the bot can post to a channel."""
        if error is None:
            self._end(part)
            return
        setting, what = part.value.upper(), CHANNEL_ERRORS[error]
        self._begin(part, f"{setting} {self._channels[part]} {what} ({error}).")

    def note_socket(self, *, is_connected: bool) -> None:
        """Note whether Socket Mode is connected; it is broken when it was not for a minute."""
        now = self._clock.monotonic()
        if is_connected:
            self._deaf_since = None
            self._end(Part.SOCKET)
            return
        self._deaf_since = now if self._deaf_since is None else self._deaf_since
        if now - self._deaf_since >= DEAF_SECONDS:
            self._begin(
                Part.SOCKET,
                "No Socket Mode connection, so no command arrives. See SLACK_APP_TOKEN.",
            )

    def note_clocks(self, machine: float, database: float) -> None:
        """Note how many seconds the machine's clock and the database's are ahead of Slack's."""
        if is_wrong(machine):
            self._begin(
                Part.CLOCK,
                f"This machine's clock is {ahead_or_behind(machine)} Slack's. Turn time"
                " synchronisation on.",
            )
        elif is_wrong(database):
            self._begin(
                Part.CLOCK,
                f"The clock of the database's server is {ahead_or_behind(database)} Slack's, and"
                " requests expire by it. Turn time synchronisation on there.",
            )
        else:
            self._end(Part.CLOCK)

    def note_database(self, cause: DatabaseCause | None) -> None:
        """Note whether the database can be written, or why not."""
        if cause is None:
            self._end(Part.DATABASE)
        else:
            self._begin(Part.DATABASE, cause.sentence)

    def _begin(self, part: Part, sentence: str) -> None:
        old = self._troubles.get(part)
        since = self._clock.now() if old is None else old.since
        self._troubles[part] = Trouble(part, sentence, since)
        if old is None:
            log.error("health.broken", part=part.value, reason=sentence)

    def _end(self, part: Part) -> None:
        if self._troubles.pop(part, None) is not None:
            log.info("health.mended", part=part.value)
