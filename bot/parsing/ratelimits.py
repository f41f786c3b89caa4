"""`/ratelimits` text to a wish."""

from dataclasses import dataclass
from typing import Literal

from bot.errors import UsageError
from bot.model.plans import Plan
from bot.parsing.words import Word, read_words, refuse_endless, rest_of_line

LONGEST_NAME = 400
EXAMPLE = "/ratelimits check 10234695"
USAGE = {
    "all": ("/ratelimits [<org>] | check <org> | plan <org> <plan> | help", EXAMPLE),
    "check": ("/ratelimits check <org>", EXAMPLE),
    "plan": ("/ratelimits plan <org> <plan>", "/ratelimits plan 10234695 standard"),
}
"""The usage and an example of all, and of two forms alone."""
_PLANS = ", ".join(plan.value for plan in Plan)


@dataclass(frozen=True)
class RatelimitsRequest:
    """What is wanted: `organization` is an id or a name, `plan` the one to set."""

    kind: Literal["all", "one", "check", "plan", "help"]
    organization: str = ""
    plan: Plan | None = None


def parse_ratelimits(text: str) -> RatelimitsRequest:
    """Read what was typed after `/ratelimits`.

    An organization that is called like a keyword is quoted, or named by its id.

    Raises:
        UsageError: `check` or `plan` without an organization, no such plan, or far too long.
    """
    refuse_endless(text, *USAGE["all"])
    words = read_words(text)
    if not words:
        return RatelimitsRequest("all")
    first = words[0].keyword
    if first == "help" and len(words) == 1:
        return RatelimitsRequest("help")
    if first == "check":
        if len(words) == 1:
            raise UsageError("Which organization?", *USAGE["check"])
        return RatelimitsRequest("check", _name(text, words[0].end, words[1:]))
    if first == "plan":
        return _plan(text, words)
    return RatelimitsRequest("one", _name(text, 0, words))


def _plan(text: str, words: tuple[Word, ...]) -> RatelimitsRequest:
    if len(words) < 3:  # noqa: PLR2004 - "plan", the organization and the plan
        raise UsageError(f"Which organization, and which plan ({_PLANS})?", *USAGE["plan"])
    wanted = words[-1].text.casefold()
    if wanted not in set(Plan):
        raise UsageError(f"The last word has to be a plan: {_PLANS}.", *USAGE["plan"])
    upto = text[: words[-2].end]
    return RatelimitsRequest("plan", _name(upto, words[0].end, words[1:-1]), Plan(wanted))


def _name(text: str, start: int, words: tuple[Word, ...]) -> str:
    """The organization as typed: one word, quoted or not, or all of the line."""
    name = words[0].text if len(words) == 1 else rest_of_line(text, start)
    if len(name) > LONGEST_NAME:
        raise UsageError(f"That is more than {LONGEST_NAME} characters.", *USAGE["all"])
    return name
