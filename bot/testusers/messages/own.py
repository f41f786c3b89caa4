"""`/testusers mine`: a person's own requests, and the people they requested access for."""

from bot.approvals.rules.approval import State
from bot.slack.messages import block_kit, ids, paging, text
from bot.slack.messages.message import Message, SlackBlock
from bot.testusers.messages.buttons import decision_buttons, extend_buttons, form_button
from bot.testusers.messages.pages import FlowPage
from bot.testusers.messages.phrases import (
    Show,
    brief,
    change_of,
    flow_name,
    how_many,
    in_full,
    masked,
    state_of,
)
from bot.testusers.rules.pages import GrantGroup, OwnPage
from bot.testusers.rules.requests import Request

CANCELLABLE = frozenset({State.PENDING, State.SCHEDULED})
REQUESTS_SHOWN = 10
NO_REQUESTS = "You have no requests from the last 7 days."
NO_ACCESS = "You haven't requested access for anyone."


def own(page: OwnPage, *, sees_identities: bool, asks: bool) -> Message:
    """Return a person's own requests and grants, with buttons where they may ask for changes."""
    show = in_full if sees_identities else masked
    rows = [
        *(_requests(page, show, asks=asks) if page.page == 0 else []),
        (_people_title(page), None),
    ]
    body = [block_kit.section(line, button) for line, button in rows]
    lines = [line for line, _ in rows]
    for group in page.groups:
        line, blocks = group_blocks(group, show, asks=asks)
        lines.append(line)
        body += blocks
    if asks and not (page.requests or page.people):
        change = block_kit.button("Change test users", ids.HOME_TESTUSERS, "mine", style="primary")
        body.append(block_kit.actions(change))
    turns = paging.turns(
        ids.TESTUSERS_MINE_PAGE, page.page, page.pages, lambda to: FlowPage("", to).value()
    )
    turning = [
        block_kit.context(f"Page {page.page + 1} of {page.pages}"),
        block_kit.actions(*turns),
    ]
    return Message("\n".join(lines), (*body, *(turning if turns else [])))


def group_blocks(group: GrantGroup, show: Show, *, asks: bool) -> tuple[str, list[SlackBlock]]:
    """Return people with the same access as a line, and as blocks with buttons to extend it."""
    until = f"until {text.time(group.ends_at)}" if group.ends_at else "no end date"
    many = len(group.identities) > 1
    people = f"*{how_many(len(group.identities))}*" if many else show(group.identities[0])
    names = f": {brief(group.identities, show)}" if many else ""
    line = f"• {people} on {flow_name(group.flow)} · {until}{names}"
    if group.ends_at:
        buttons = extend_buttons(group.flow, group.identities)
    else:
        button = form_button(group.flow, group.identities, "Set an end date")
        buttons = [button] if button else []
    row = [block_kit.actions(*buttons)] if asks and buttons else []
    return line, [block_kit.section(line), *row]


def _requests(page: OwnPage, show: Show, *, asks: bool) -> list[tuple[str, SlackBlock | None]]:
    if not page.requests:
        return [(NO_REQUESTS, None)]
    rows: list[tuple[str, SlackBlock | None]] = [
        (f"*Your requests* ({len(page.requests):,})", None)
    ]
    for request in page.requests[:REQUESTS_SHOWN]:
        asked_at = text.time(request.created_at)
        line = f"• {change_of(request, show)} · *{state_of(request)}* · {asked_at}"
        can_cancel = asks and request.state in CANCELLABLE
        rows.append((line, _cancel(request) if can_cancel else None))
    left = len(page.requests) - REQUESTS_SHOWN
    return [*rows, (f"And {left:,} more.", None)] if left > 0 else rows


def _people_title(page: OwnPage) -> str:
    return f"*People you requested access for* ({page.people:,})" if page.people else NO_ACCESS


def _cancel(request: Request) -> SlackBlock:
    (button,) = decision_buttons(request, decides=False)
    return button
