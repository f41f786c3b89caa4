"""Simulates people who repeat an action until they see its result, even if processes die."""

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
    """Keep pressing a button until the bot accepts the click.

    Slack waits only three seconds for an acknowledgement. If the bot can't store a click quickly,
    it acknowledges the click anyway. If people then see no result, they press the button again.
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
    """Request a test user, and return the request's card.

    If the bot doesn't answer, look for the card before repeating the request.
    """
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
    """Send a request to add a test user."""
    await asked(story, ExpectedRequest(story.new_identity(), "welcome"))


async def ask_now(story: Story, _: Message | None) -> None:
    """Add a test user without approval."""
    expected = ExpectedRequest(
        story.new_identity(), "welcome", "applied", requester=ADMIN, says=WITHOUT_APPROVAL
    )
    # A card without approval shows the result, and a POST can be in doubt for a minute.
    await asked(story, expected, "now because of the drill", TRUE_SECONDS + IN_DOUBT_SECONDS)


async def approve(story: Story, card: Message) -> None:
    """Keep pressing `Approve` until the bot accepts the click.

    Expect the change to be applied.
    """
    await pressed(story, APPROVER, card, "Approve")
    story.becomes(card, "applied")


async def approve_by_two(story: Story, card: Message) -> None:
    """Have two people approve a request that needs two approvals."""
    await pressed(story, APPROVER, card, "Approve")
    await story.fleet.slack.until(lambda: "1 of 2 approvals" in card.all_text, timeout=CARD_SECONDS)
    await pressed(story, SECOND, card, "Approve")
    story.becomes(card, "applied")


async def undo(story: Story, card: Message) -> None:
    """Press `Undo` on an applied change, and approve the request to undo the change."""
    expected = story.of(card)
    await pressed(story, REQUESTER, card, "Undo")
    expected.undo = "pending"
    undoing = await story.undo_card(expected.identity, CARD_SECONDS)
    await pressed(story, APPROVER, undoing, "Approve")
    expected.undo = "applied"


async def deny(story: Story, card: Message) -> None:
    """Press `Deny` and submit a reason, repeating each step until it succeeds."""
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
    """Keep pressing `Retry` until the bot accepts the click.

    Expect the change to be applied.
    """
    await pressed(story, APPROVER, card, "Retry")
    story.becomes(card, "applied")


async def cancel(story: Story, card: Message) -> None:
    """Cancel the request."""
    await pressed(story, REQUESTER, card, "Cancel")
    story.becomes(card, "cancelled")


async def opened(story: Story, user: str) -> None:
    """Keep opening the Home tab until the bot accepts the event."""
    for _ in range(MOST_PRESSES):
        if (await story.fleet.slack.open_home(user)).status == OK:
            break
        await asyncio.sleep(AGAIN_SECONDS)


async def pending_at_home(story: Story) -> Message:
    """Prepare a pending request that appears on the requester's Home tab."""
    await opened(story, REQUESTER)
    return await story.request()


async def open_and_cancel(story: Story, card: Message) -> None:
    """Have an approver open the Home tab, and then have the requester cancel the request."""
    story.has_homes = True
    await opened(story, APPROVER)
    await cancel(story, card)


async def expire(story: Story, card: Message) -> None:
    """Expect the request to expire after a reminder."""
    story.becomes(card, "expired")


async def end(story: Story, card: Message) -> None:
    """Expect the grant to end."""
    story.of(card).ended = True


async def listed(story: Story) -> None:
    """List the organizations."""
    await story.fleet.ask(REQUESTER, "/orgs")


async def alert(story: Story, _: Message | None) -> None:
    """Block an organization, and check its limits until the bot reports the block.

    The bot must then open an alert, and clear the alert when the block ends.
    """
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
