"""Drills in which Slack's Web API fails, but replies through `response_url` still arrive."""

from collections.abc import Callable
from functools import partial

from sandbox.services.limits import TOO_MANY_AT_ONCE
from sandbox.slack.faults import Faults
from tests.faults.drill import Drill, Notes, lasts
from tests.support.databases import database_of
from tests.support.fleet import running_fleet
from tests.support.steady import seconds_now
from tests.support.story import APPROVER, REQUESTER, ExpectedRequest, Story

WRITING = ("chat.postMessage", "chat.update")
LOOKING_UP = ("users.info", "usergroups.users.list", "usergroups.list")
RETRY_AFTER_SECONDS = 3
ORGANIZATION, BLOCK_SECONDS = ("jp", "80004410"), 4.0

Break = Callable[[Faults, str], None]


async def disturbed(notes: Notes, fails: Break, methods: tuple[str, ...]) -> None:
    """Check that cards and messages arrive after Slack recovers from a failure."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url) as fleet:
        story = Story(fleet)
        waiting = await story.request()
        await fleet.ask(APPROVER, "/testusers", "requests")
        await fleet.ask(REQUESTER, "/orgs")
        faults = fleet.slack.workspace.faults
        calls_before = len(fleet.slack.workspace.calls_of("chat.postMessage"))
        for method in methods:
            fails(faults, method)
        began = seconds_now()
        later = story.new_identity()
        answer = await fleet.ask(REQUESTER, "/testusers", f"add welcome {later}")
        notes.saw(answer, "Sent to")
        story.expected_requests[later] = ExpectedRequest(later, "welcome")
        await notes.click_says(story, waiting, "Approve", "You approved")
        story.becomes(waiting, "applied")
        fleet.services.state.limits.block(ORGANIZATION, TOO_MANY_AT_ONCE, BLOCK_SECONDS)
        answer = await fleet.ask(REQUESTER, "/ratelimits", f"check {ORGANIZATION[1]}")
        notes.saw(answer, "was blocked")
        story.cleared_alerts.add(ORGANIZATION[1])
        if "users.info" in methods:
            await notes.people_see(fleet, "U0VIEWER", "/orgs", "", "verify who you are")
        await lasts(began, notes.seconds)
        faults.clear()
        async with notes.recovery():
            await story.comes_true()
        tried = len(fleet.slack.workspace.calls_of("chat.postMessage")) - calls_before
        assert tried <= 4 * (notes.seconds / RETRY_AFTER_SECONDS + 4), f"{tried} posts"
        await notes.all_holds(story)


def ratelimited(faults: Faults, method: str) -> None:
    """Make Slack respond with 429 and a `Retry-After` header."""
    faults.ratelimit(method, retry_after=RETRY_AFTER_SECONDS, times=None)


def server_error(faults: Faults, method: str) -> None:
    """Make Slack respond with 500 and an empty body."""
    faults.status(method, 500, times=None)


def a_page(faults: Faults, method: str) -> None:
    """Respond with a web page, as a proxy in front of Slack might."""
    faults.html(method, times=None)


def refused(name: str) -> Break:
    """Return a function that makes Slack respond with `ok: false` and this error."""
    return lambda faults, method: faults.error(method, name, times=None)


def nothing(faults: Faults, method: str) -> None:
    """Make calls to Slack hang without a response."""
    faults.hang(method, times=None)


def lost_answers(faults: Faults, method: str) -> None:
    """Let the call take effect, but close the connection before Slack responds."""
    faults.cut(method, times=None)


PROMISE = (
    "Commands and clicks are answered and followed; cards, messages and alerts wait,"
    " and then each is there once and true."
)
EVERYTHING = (*WRITING, *LOOKING_UP)
DRILLS = tuple(
    Drill(f"Slack {name}", PROMISE, partial(disturbed, fails=fails, methods=methods))
    for name, fails, methods in (
        ("answers 429", ratelimited, EVERYTHING),
        ("answers 500", server_error, EVERYTHING),
        ("answers HTML", a_page, EVERYTHING),
        ("answers channel_not_found", refused("channel_not_found"), WRITING),
        ("answers token_revoked", refused("token_revoked"), EVERYTHING),
        ("answers nothing", nothing, EVERYTHING),
        ("does it and loses the answer", lost_answers, WRITING),
    )
)
