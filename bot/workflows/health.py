"""What this process knows of its own health: noted as it happens, looked at again and again."""

from collections import Counter, deque
from collections.abc import Mapping

import structlog

from bot.errors import SlackUnreachable
from bot.model.clocks import ahead_or_behind, is_wrong
from bot.model.health import READINESS, REFUSED, Part, Refusal, Trouble
from bot.ops.clock import Clock
from bot.store.causes import DatabaseCause

log = structlog.get_logger(__name__)

# For so long a refused request counts; within it one that was not refused proves the secret.
REFUSED_SECONDS = 300.0
LOG_SECONDS = 60.0
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
        self._own_refused: deque[tuple[float, Refusal]] = deque(maxlen=1000)
        self._taken_at: float | None = None
        self._unlogged: Counter[str] = Counter()
        self._logged_at: float | None = None
        self._deaf_since: float | None = None
        self._team_id = ""

    def troubles(self) -> list[Trouble]:
        """Return what is broken now, the worst first."""
        self._judge_signatures()
        return [self._troubles[part] for part in Part if part in self._troubles]

    def missing(self) -> str | None:
        """Return what readiness lacks: `database`, `slack`, or nothing."""
        words = {READINESS.get(trouble.part) for trouble in self.troubles()} - {None}
        return min(words, default=None)  # type: ignore[type-var]

    def besides(self) -> list[str]:
        """Return what is broken and no reason to be unready, by the names of metrics."""
        return [one.part.value for one in self.troubles() if one.part not in READINESS]

    def meet(self, team_id: str) -> None:
        """Learn which workspace is ours."""
        self._team_id = team_id

    def note_request(self, refusal: Refusal | None, body: str) -> None:
        """Note a request to `/slack/events`: refused, or None when it is Slack's.

        A refused one that names our workspace is probably Slack's: nobody else knows it.
        """
        now = self._clock.monotonic()
        if refusal is None:
            self._taken_at = now
            return
        if refusal in REFUSED and self._team_id and self._team_id in body:
            self._own_refused.append((now, refusal))
        self._unlogged[refusal] += 1
        self.log_refused()

    def log_refused(self) -> None:
        """Log how many requests were refused, and why; at most once a minute."""
        now = self._clock.monotonic()
        if self._unlogged and (self._logged_at is None or now - self._logged_at >= LOG_SECONDS):
            log.warning("slack.refused", requests=dict(self._unlogged))
            self._unlogged.clear()
            self._logged_at = now

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

    def _judge_signatures(self) -> None:
        """Broken while Slack's requests come in, and every one of five minutes was refused."""
        since = self._clock.monotonic() - REFUSED_SECONDS
        while self._own_refused and self._own_refused[0][0] < since:
            self._own_refused.popleft()
        is_taken = self._taken_at is not None and self._taken_at >= since
        if not self._own_refused or is_taken:
            self._end(Part.SIGNATURES)
            return
        sentence = REFUSED[self._own_refused[-1][1]]
        self._begin(Part.SIGNATURES, f"{sentence[:1].upper()}{sentence[1:]}.")

    def _begin(self, part: Part, sentence: str) -> None:
        old = self._troubles.get(part)
        since = self._clock.now() if old is None else old.since
        self._troubles[part] = Trouble(part, sentence, since)
        if old is None:
            log.error("health.broken", part=part.value, reason=sentence)

    def _end(self, part: Part) -> None:
        if self._troubles.pop(part, None) is not None:
            log.info("health.mended", part=part.value)
