"""`/testusers mine`: what somebody has asked for, and whom they gave access."""

from bot.model.testusers.approval import State
from bot.model.testusers.pages import OwnGrant, OwnPage
from bot.model.testusers.requests import Request
from bot.ui import block_kit, text
from bot.ui.message import Message, SlackBlock
from bot.ui.testusers.buttons import decision_buttons, extend_button
from bot.ui.testusers.phrases import Show, change_of, flow_name, in_full, masked, state_of

CANCELLABLE = frozenset({State.PENDING, State.SCHEDULED})


def own(page: OwnPage, *, sees_identities: bool, asks: bool) -> Message:
    """A person's own requests and grants, with `Cancel` and `Extend` where they may ask."""
    show = in_full if sees_identities else masked
    body: list[SlackBlock] = []
    lines = (
        [f"*Your requests* ({len(page.requests)})"] if page.requests else ["No requests lately."]
    )
    body.append(block_kit.section(lines[0]))
    for request in page.requests:
        asked_at = text.time(request.created_at)
        line = f"• {change_of(request, show)} · *{state_of(request)}* · {asked_at}"
        lines.append(line)
        can_cancel = asks and request.state in CANCELLABLE
        body.append(block_kit.section(line, _cancel(request) if can_cancel else None))
    title = f"*Access you gave* ({len(page.grants)})" if page.grants else "You gave nobody access."
    lines.append(title)
    body.append(block_kit.section(title))
    for granted in page.grants:
        line = _grant_line(granted, show)
        lines.append(line)
        extend = extend_button(granted.flow, [granted.grant.identity]) if asks else None
        body.append(block_kit.section(line, extend))
    return Message("\n".join(lines), tuple(body))


def _grant_line(granted: OwnGrant, show: Show) -> str:
    ends_at = granted.grant.ends_at
    until = f"until {text.time(ends_at)}" if ends_at else "no end date"
    return f"• {show(granted.grant.identity)} on {flow_name(granted.flow)} · {until}"


def _cancel(request: Request) -> SlackBlock:
    (button,) = decision_buttons(request, decides=False)
    return button
