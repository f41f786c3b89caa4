"""People act while processes die, and repeat any action that has no visible result."""

import asyncio
from contextlib import suppress

from sandbox.services.faults import Fault, FaultKind
from sandbox.slack.messages import Message
from tests.support.fleet import NoAnswerError, is_silence
from tests.support.story import (
    ADMIN,
    ALERTS,
    APPROVER,
    MARKS,
    REQUESTER,
    SECOND,
    TRUE_SECONDS,
    ExpectedRequest,
    Story,
)

MOST_PRESSES = 60
AGAIN_SECONDS = 0.5
# A little less than the time that handlers.listening waits for a click to be stored.
KEPT_SECONDS = 1.4
# Other processes take over a dead process's work within 30 s, and then write the result.
CARD_SECONDS = 60.0
IN_DOUBT_SECONDS = 60.0
OK = 200
BLOCK_SECONDS = 4.0
WITHOUT_APPROVAL = "without approval"


async def pressed(story: Story, user: str, card: Message, button: str) -> None:
    """Press until the bot accepts the click.

    Slack waits three seconds for the acknowledgement, so a late one may have been sent before the
    click was stored. A person who then sees no result presses again.
    """
    for _ in range(MOST_PRESSES):
        before = len(story.fleet.seen_by(user))
        delivery = await story.fleet.slack.click(user, card, button)
        if delivery.status == OK and delivery.seconds < KEPT_SECONDS:
            break
        if delivery.status == OK and await sees_something(story, user, before):
            break
        await asyncio.sleep(AGAIN_SECONDS)


async def sees_something(story: Story, user: str, before: int) -> bool:
    """Return True if the person gets an answer."""
    try:
        await story.fleet.answer(user, after=before)
    except NoAnswerError:
        return False
    return True


async def asked(
    story: Story, expected: ExpectedRequest, extra: str = "", seconds: float = TRUE_SECONDS
) -> Message:
    """Ask, and check for the card before asking again."""
    story.expected_requests[expected.identity] = expected
    words = f"add {expected.flow} {expected.identity} {extra}".strip()
    for _ in range(MOST_PRESSES):
        try:
            answer = await story.fleet.ask(expected.requester, "/testusers", words)
        except NoAnswerError:
            answer = None
        if answer is not None and not is_silence(answer):
            break
        # Only clicks are durable. A person without an answer looks for the card, then asks again.
        with suppress(AssertionError):
            return await story.card(expected.identity)
    return await story.card(expected.identity, seconds)


async def pending(story: Story) -> Message:
    """Prepare a pending request."""
    return await story.request()


async def applied(story: Story, extra: str = "") -> Message:
    """Prepare an applied request."""
    card = await story.request(extra=extra)
    await story.press(APPROVER, card, "Approve", "applied")
    await story.comes_true()
    return card


async def ask(story: Story, _: Message | None) -> None:
    """Ask for a test user."""
    await asked(story, ExpectedRequest(story.new_identity(), "welcome"))


async def ask_now(story: Story, _: Message | None) -> None:
    """Add a test user without approval."""
    expected = ExpectedRequest(
        story.new_identity(), "welcome", "applied", requester=ADMIN, says=WITHOUT_APPROVAL
    )
    # A card without approval shows the result, and a POST can be in doubt for a minute.
    await asked(story, expected, "now because of the drill", TRUE_SECONDS + IN_DOUBT_SECONDS)


async def approve(story: Story, card: Message) -> None:
    """Approve until the change is applied."""
    await pressed(story, APPROVER, card, "Approve")
    story.becomes(card, "applied")


async def approve_by_two(story: Story, card: Message) -> None:
    """Have two people approve: the first approval alone changes nothing."""
    await pressed(story, APPROVER, card, "Approve")
    await story.fleet.slack.until(lambda: "1 of 2 approvals" in card.all_text, timeout=CARD_SECONDS)
    await pressed(story, SECOND, card, "Approve")
    story.becomes(card, "applied")


async def undo(story: Story, card: Message) -> None:
    """Ask to undo an applied change, and approve that request."""
    expected = story.of(card)
    await pressed(story, REQUESTER, card, "Undo")
    expected.undo = "pending"
    undoing = await story.undo_card(expected.identity, CARD_SECONDS)
    await pressed(story, APPROVER, undoing, "Approve")
    expected.undo = "applied"


async def deny(story: Story, card: Message) -> None:
    """Deny with a reason: press until the form opens, then submit it until the bot accepts it."""
    slack = story.fleet.slack
    for _ in range(MOST_PRESSES):
        view = slack.workspace.open_view(APPROVER)
        if view is None:
            await slack.click(APPROVER, card, "Deny")
        elif (await slack.submit(APPROVER, view, {"Reason": "not now"})).status == OK:
            break
        await asyncio.sleep(AGAIN_SECONDS)
    story.becomes(card, "denied")


async def failed(story: Story) -> Message:
    """Prepare a failed request."""
    card = await story.request()
    fault = story.fleet.services.state.faults.add(Fault(FaultKind.STATUS, "flow"))
    await story.press(APPROVER, card, "Approve", "failed")
    await story.fleet.slack.until(lambda: MARKS["failed"] in card.text, timeout=30)
    fault.lift()
    return card


async def retry(story: Story, card: Message) -> None:
    """Press `Retry` until the change is applied."""
    await pressed(story, APPROVER, card, "Retry")
    story.becomes(card, "applied")


async def cancel(story: Story, card: Message) -> None:
    """Cancel one's own request."""
    await pressed(story, REQUESTER, card, "Cancel")
    story.becomes(card, "cancelled")


async def opened(story: Story, user: str) -> None:
    """Open the Home tab until the bot accepts the event."""
    for _ in range(MOST_PRESSES):
        if (await story.fleet.slack.open_home(user)).status == OK:
            break
        await asyncio.sleep(AGAIN_SECONDS)


async def pending_at_home(story: Story) -> Message:
    """Prepare a pending request that is shown on its requester's Home tab."""
    await opened(story, REQUESTER)
    return await story.request()


async def open_and_cancel(story: Story, card: Message) -> None:
    """Have another person open the Home tab, and cancel the request."""
    story.has_homes = True
    await opened(story, APPROVER)
    await cancel(story, card)


async def expire(story: Story, card: Message) -> None:
    """Let the request get its reminder and then expire."""
    story.becomes(card, "expired")


async def end(story: Story, card: Message) -> None:
    """Let the grant end."""
    story.of(card).ended = True


async def listed(story: Story) -> None:
    """List the organizations."""
    await story.fleet.ask(REQUESTER, "/orgs")


async def alert(story: Story, _: Message | None) -> None:
    """Block an organization. An alert opens after a person's check and clears by itself."""
    at = ("jp", "80004410")
    story.fleet.services.state.limits.block(at, 1070, BLOCK_SECONDS)
    story.cleared_alerts.add(at[1])
    for _ in range(MOST_PRESSES):
        with suppress(NoAnswerError):
            answer = await story.fleet.ask(REQUESTER, "/ratelimits", f"check {at[1]}")
            if "was blocked" in answer.all_text:
                break
        if story.fleet.slack.workspace.messages(ALERTS):
            break
        # No call has run into the block yet.
        await asyncio.sleep(AGAIN_SECONDS)
        story.fleet.services.state.limits.block(at, 1070, BLOCK_SECONDS)


async def nothing(story: Story) -> None:
    """Prepare nothing."""
