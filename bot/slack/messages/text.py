"""Makes text from people and services safe to show in Slack. No other module escapes text.

Slack reads markup in `mrkdwn` objects and in a message's `text`, where `&`, `<` and `>` are escaped
(docs.slack.dev, "Formatting message text"). Formatting characters can't be escaped, but adding a
word joiner disables them. Slack doesn't document whether it decodes entities in plain text
(headers, buttons, table cells), so this module breaks up entities and replaces angle brackets.
"""

import re
from datetime import datetime
from functools import lru_cache

from bot import spelling
from bot.slack.parse import escaped
from bot.spelling import UNSEEN

ELLIPSIS = "…"
FIRST_STRONG_ISOLATE = "\u2068"
POP_ISOLATE = "\u2069"
WORD_JOINER = "\u2060"
VISIBLE_STAND_IN = "\ufffd"
# The Unicode blocks of scripts that are written from right to left.
RIGHT_TO_LEFT = (
    "\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
)
RIGHT_TO_LEFT_STRETCH = re.compile(
    rf"[{RIGHT_TO_LEFT}](?:[\W\d_{RIGHT_TO_LEFT}]*[{RIGHT_TO_LEFT}])?"
)
STAND_IN_FOR_BACKTICK = "\u02cb"
# Escaped text is cached, because escaping is the most expensive part of an answer: a page of
# organizations has two hundred texts, many of them repeated.
REMEMBERED = 4096
READING_CHARACTERS = 40
HEAD_TIMES = 4
# Matches more than four combining marks on one character.
MARK = r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
STACKED_MARKS = re.compile(f"({MARK}{{4}}){MARK}+")
FORMATTING = re.compile(r"(?<![^\W_])[*_~](?=\S)|^>")
ENTITY = re.compile(r"&(?=(?:amp|lt|gt);)")
# Leave the colons in times unchanged, because people copy and search for times.
EMOJI = re.compile(r":(?!(?<=\d:)\d\d:\d\d)(?=[\w+'-]+:)")
# Dates (which have a fallback), emoji, bold text, and what disables formatting.
_WRITTEN = re.compile(
    rf"<[^<>|]*\|([^<>]*)>|:[a-z_]+:\s?|(?<![\w{WORD_JOINER}])\*([^*{WORD_JOINER}]+)\*(?!\w)"
    rf"|[{WORD_JOINER}{FIRST_STRONG_ISOLATE}{POP_ISOLATE}]"
)
ESCAPED_CUT = re.compile(r"&(?:a|am|amp|l|lt|g|gt)?$")


def tidy(value: str) -> str:
    """Put the text on one line, replace invisible characters, and limit combining marks."""
    return STACKED_MARKS.sub(r"\1", UNSEEN.sub(VISIBLE_STAND_IN, " ".join(value.split())))


def shorten(value: str, limit: int) -> str:
    """Shorten the text to at most `limit` characters, with an ellipsis if anything is cut."""
    return value if len(value) <= limit else value[: limit - 1].rstrip() + ELLIPSIS


def escape(value: str, limit: int = 300) -> str:
    """Return external text for a `mrkdwn` object or a message's `text`.

    The text looks the same, but can't create formatting, links or mentions.
    """
    return _isolated(_inert(value[: HEAD_TIMES * limit], limit))


def sentence(value: str, limit: int = 300) -> str:
    """Escape one of the bot's own sentences, which may contain external names and words.

    Unlike `escape`, this function isolates only the right-to-left parts of the text.
    """
    shown = _inert(value[: HEAD_TIMES * limit], limit)
    return RIGHT_TO_LEFT_STRETCH.sub(rf"{FIRST_STRONG_ISOLATE}\g<0>{POP_ISOLATE}", shown)


def code(value: str, limit: int = 300) -> str:
    """Return external text as a code span, which has no formatting and is easy to copy."""
    shown = _line(value[: HEAD_TIMES * limit], limit) or " "
    return f"`{_isolated(escaped(shown))}`"


def to_copy(line: str, limit: int) -> list[str]:
    """Return a line of external text for code blocks, in parts of up to `limit` characters.

    Tabs and other gaps become spaces, so that words that they separate can be sent again. In quotes
    they may be part of an identity.
    """
    is_quoted = any(quote in line for quote in spelling.DOUBLE_QUOTES)
    gap = VISIBLE_STAND_IN if is_quoted else " "
    seen = UNSEEN.sub(
        lambda found: gap if found[0].isspace() else VISIBLE_STAND_IN, spelling.tidy_identity(line)
    )
    shown = seen.replace("```", 3 * STAND_IN_FOR_BACKTICK)
    size = limit if len(escaped(shown)) <= limit else limit // len("&amp;")
    return [escaped(shown[at : at + size]) for at in range(0, len(shown) or 1, size)]


def identity(value: str, limit: int | None = None) -> str:
    """Return an identity as a code span, with ambiguous characters shown as code points.

    If the identity has non-ASCII letters, the readable form follows in parentheses. `limit`
    shortens the code span, so set it only where nobody makes a decision based on the identity.
    """
    shown = spelling.exactly(value)
    span = f"`{escaped(shorten(shown, limit) if limit else shown)}`"
    letters = "".join(filter(str.isalpha, value))
    return span if letters.isascii() else f"{span} ({escape(value, READING_CHARACTERS)})"


def plain(value: str, limit: int = 75) -> str:
    """Return external text for a plain-text object: a header, button, cell or option."""
    return _plain(value[: HEAD_TIMES * limit], limit)


@lru_cache(REMEMBERED)
def _plain(head: str, limit: int) -> str:
    shown = tidy(head).replace("<", "\u2039").replace(">", "\u203a")
    shown = ENTITY.sub("&" + WORD_JOINER, EMOJI.sub(":" + WORD_JOINER, shown))
    # Leave room for the two isolating characters.
    return _isolated(shorten(shown, limit if shown.isascii() else limit - 2)) or "–"


@lru_cache(REMEMBERED)
def _inert(head: str, limit: int) -> str:
    """Return markup that shows the text, and has no formatting, links or mentions."""
    shown = EMOJI.sub(":" + WORD_JOINER, _line(head, limit))
    return escaped(FORMATTING.sub(rf"{WORD_JOINER}\g<0>", shown))


def _line(head: str, limit: int) -> str:
    return shorten(tidy(head), limit).replace("`", STAND_IN_FOR_BACKTICK)


def _isolated(value: str) -> str:
    is_foreign = RIGHT_TO_LEFT_STRETCH.search(value)
    return f"{FIRST_STRONG_ISOLATE}{value}{POP_ISOLATE}" if is_foreign else value


def cut(markup: str, limit: int) -> str:
    """Shorten escaped markup, at the end of a line if possible, without leaving markup unclosed."""
    if len(markup) <= limit:
        return markup
    head = markup[: limit - 2]
    at_line = head.rfind("\n")
    if at_line > limit // 2:
        return f"{head[:at_line]}\n{ELLIPSIS}"
    head = ESCAPED_CUT.sub("", head)
    if head.rfind("<") > head.rfind(">"):
        head = head[: head.rfind("<")]
    if head.count("`") % 2:
        head = head[: head.rfind("`")]
    is_isolated = head.count(FIRST_STRONG_ISOLATE) > head.count(POP_ISOLATE)
    return head + (POP_ISOLATE if is_isolated else "") + ELLIPSIS


def without_markup(markup: str) -> str:
    """Return escaped markup as plain text, for readers outside Slack."""
    parts = markup.split("`")
    parts[::2] = [
        _WRITTEN.sub(lambda found: found[1] or found[2] or "", part) for part in parts[::2]
    ]
    shown = "".join(parts)
    return shown.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def time(at: datetime) -> str:
    """Return a time that Slack shows in the reader's time zone, with a fallback in UTC."""
    fallback = f"{at:%Y-%m-%d %H:%M} UTC"
    return f"<!date^{int(at.timestamp())}^{{date_short_pretty}} at {{time}}|{fallback}>"


def duration(seconds: float) -> str:
    """Format a duration in its two largest units, such as `2 h 5 min`."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def count(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun, such as `1 organization` or `2,000 organizations`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
