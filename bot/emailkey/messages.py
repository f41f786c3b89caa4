"""`/emailkey`: the result of checking the key, and the templates."""

from collections.abc import Sequence

from bot.emailkey.rules import EmailTemplate, EmailTemplates, KeyCheck, KeyVerdict
from bot.paging import page_count
from bot.slack.messages import block_kit, ids, paging, text
from bot.slack.messages.message import Message, SlackBlock

PAGE = 20
RESULTS = {
    KeyVerdict.GOOD: "works",
    KeyVerdict.REFUSED: "key rejected",
    KeyVerdict.LACKS_PERMISSION: "no permission",
    KeyVerdict.UNKNOWN: "not checked",
}
VERDICTS = {
    KeyVerdict.GOOD: ":white_check_mark: *The email key works.*",
    KeyVerdict.REFUSED: ":x: *The email key was rejected.*",
    KeyVerdict.LACKS_PERMISSION: ":warning: *The email key doesn't have permission for this.*",
    KeyVerdict.UNKNOWN: ":warning: *Couldn't check the email key.*",
}


def verdicts(checks: Sequence[KeyCheck]) -> Message:
    """Show the result for each resource, and each piece of advice once."""
    if len(checks) == 1:
        return _verdict(checks[0])
    good = sum(check.verdict is KeyVerdict.GOOD for check in checks)
    mark = ":white_check_mark:" if good == len(checks) else ":warning:"
    summary = f"{mark} *The email key works for {good} of {len(checks)} resources.*"
    rows = [(f"/v3/{check.resource}", RESULTS[check.verdict]) for check in checks]
    advice = dict.fromkeys(text.sentence(check.advice, 500) for check in checks if check.advice)
    footnote = f"Tested with {text.escape(checks[0].mode)}"
    fallback = [f"{text.code(path)} {result}" for path, result in rows]
    return Message(
        "\n".join([summary, *fallback, *advice, footnote]),
        (
            block_kit.section(summary),
            block_kit.table([("Resource", "Result"), *rows]),
            *(block_kit.section(sentence) for sentence in advice),
            block_kit.context(footnote),
        ),
    )


def _verdict(check: KeyCheck) -> Message:
    asked = text.code(f"GET /v3/{check.resource}")
    lines = [VERDICTS[check.verdict]]
    lines += [text.sentence(check.advice, 1000)] if check.advice else []
    footnote = f"Tested with {asked} ({text.escape(check.mode)})"
    markup = "\n".join(lines)
    return Message(
        f"{markup}\n{footnote}", (block_kit.section(markup), block_kit.context(footnote))
    )


def templates(found: EmailTemplates, page: int = 0) -> Message:
    """Show a page of the templates; explain a listing in an unknown format."""
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
            block_kit.table([("Name", "ID"), *(_row(template) for template in shown)]),
            *_turning(page, pages),
        ),
    )


def _nameless(count: int) -> str:
    if count == 0:
        return "There are no templates."
    return f"{text.count(count, 'template')}, but no names or IDs."


def _row(template: EmailTemplate) -> tuple[str, str]:
    return template.name or "–", template.template_id or "–"


def _fallback(summary: str, shown: Sequence[EmailTemplate]) -> str:
    lines = [" · ".join(text.escape(cell, 90) for cell in _row(template)) for template in shown]
    return "\n".join([summary, *lines])


def _turning(page: int, pages: int) -> list[SlackBlock]:
    buttons = paging.turns(ids.EMAILKEY_PAGE, page, pages)
    if not buttons:
        return []
    return [block_kit.context(f"Page {page + 1} of {pages}"), block_kit.actions(*buttons)]


def _only(markup: str) -> Message:
    return Message(markup, (block_kit.section(markup),))
