"""`/emailkey`: the verdict on the key, and the templates."""

from collections.abc import Sequence

from bot.model.emailkey import EmailTemplate, EmailTemplates, KeyCheck, KeyVerdict
from bot.model.paging import page_count
from bot.ui import block_kit, ids, paging, text
from bot.ui.message import Message, SlackBlock

PAGE = 20
VERDICTS = {
    KeyVerdict.GOOD: ":white_check_mark: *The email key works.*",
    KeyVerdict.REFUSED: ":x: *The email key was rejected.*",
    KeyVerdict.LACKS_PERMISSION: ":warning: *The email key doesn't have permission for this.*",
    KeyVerdict.UNKNOWN: ":warning: *Couldn't check the email key.*",
}


def verdict(check: KeyCheck) -> Message:
    """Whether the key works, how it was sent, and what to do."""
    asked = text.code(f"GET /v3/{check.resource}")
    lines = [VERDICTS[check.verdict]]
    lines += [text.sentence(check.advice, 1000)] if check.advice else []
    footnote = f"Tested with {asked} ({text.escape(check.mode)})"
    markup = "\n".join(lines)
    return Message(
        f"{markup}\n{footnote}", (block_kit.section(markup), block_kit.context(footnote))
    )


def templates(found: EmailTemplates, page: int = 0) -> Message:
    """A page of the templates, or what can be said about a listing of another form."""
    if found.count is None:
        return _only("The response has no list of templates.")
    if not found.templates:
        return _only(_nameless(found.count))
    pages = page_count(len(found.templates), PAGE)
    page = min(page, pages - 1)
    shown = found.templates[page * PAGE : (page + 1) * PAGE]
    summary = f"*{text.count(found.count, 'template')}*"
    unnamed = found.count - len(found.templates)
    if unnamed:
        summary += f", {unnamed:,} without a name or ID"
    return Message(
        _fallback(summary, shown),
        (
            block_kit.section(summary),
            block_kit.table([("Name", "ID"), *(_row(one) for one in shown)]),
            *_turning(page, pages),
        ),
    )


def _nameless(count: int) -> str:
    if count == 0:
        return "There are no templates."
    return f"{text.count(count, 'template')}, but no names or IDs."


def _row(one: EmailTemplate) -> tuple[str, str]:
    return one.name or "–", one.template_id or "–"


def _fallback(summary: str, shown: Sequence[EmailTemplate]) -> str:
    lines = [" · ".join(text.escape(cell, 90) for cell in _row(one)) for one in shown]
    return "\n".join([summary, *lines])


def _turning(page: int, pages: int) -> list[SlackBlock]:
    buttons = paging.turns(ids.EMAILKEY_PAGE, page, pages)
    if not buttons:
        return []
    return [block_kit.context(f"Page {page + 1} of {pages}"), block_kit.actions(*buttons)]


def _only(markup: str) -> Message:
    return Message(markup, (block_kit.section(markup),))
