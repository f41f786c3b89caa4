"""The parser for `/ratelimits` commands."""

from dataclasses import dataclass
from typing import Literal

from bot.commands import RATELIMITS
from bot.quotas.rules.limits import Plan
from bot.slack.parse import asks_for_help, name_in, words_of
from bot.spelling import folded

_PLANS = ", ".join(plan.value for plan in Plan)


@dataclass(frozen=True)
class RatelimitsRequest:
    """A parsed `/ratelimits` command, with the organization's ID or name and the plan to set."""

    form: Literal["all", "one", "check", "plan", "help"]
    organization: str = ""
    plan: Plan | None = None


def parse_ratelimits(text: str) -> RatelimitsRequest:
    """Parse the text after `/ratelimits`. A name that is also a keyword must be in quotes."""
    words = words_of(text, RATELIMITS)
    if not words:
        return RatelimitsRequest("all")
    first = words[0].keyword
    if asks_for_help(words):
        return RatelimitsRequest("help")
    if first == "check":
        if len(words) == 1:
            raise RATELIMITS.misuse("Which organization?", "check")
        return RatelimitsRequest("check", name_in(text, words[0].end, words[1:]))
    if first != "plan":
        return RatelimitsRequest("one", name_in(text, 0, words))
    if len(words) < 3:  # noqa: PLR2004 - "plan", the organization and the plan
        raise RATELIMITS.misuse(f"Which organization, and which plan ({_PLANS})?", "plan")
    wanted = folded(words[-1].text)
    if wanted not in set(Plan):
        raise RATELIMITS.misuse(f"The last word must be a plan: {_PLANS}.", "plan")
    name = name_in(text[: words[-2].end], words[0].end, words[1:-1])
    return RatelimitsRequest("plan", name, Plan(wanted))
