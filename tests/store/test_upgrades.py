"""After an upgrade, a bot says the same of the same people as the version before it."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

import bot.app
from tests.support import upgrades
from tests.support.databases import ClockedDatabase
from tests.support.upgrades.loading import load
from tests.support.upgrades.questions import answers_of, facts

# Patterns of differences that are intended. Each must still match something.
SINCE_0_4_0 = {
    # The list names the rule that approved a request.
    r"by / 0:\n  was '.*applied without approval'\n  now '.*approved by an automatic rule'$",
    # Access whose request was deleted has a request again, so that it has one shape only.
    r"^facts / cards / \w+:\n  was None\n  now .*'\+15550101'",
    r"^facts / undo / \w+:\n  was None\n  now .*'\+15550101'",
    # Two spellings are one person, and a removal takes both.
    r"who:\n  was \['\wus@example.com'\]\n  now \['Gus@example.com', 'gus@example.com'\]$",
}
INTENDED = {
    "from_0020": {
        *SINCE_0_4_0,
        # A failed change whose outcome is unknown had a symbol of its own.
        r"^facts / cards / \w+ / state:\n  was ':grey_question:'\n  now ':x:'$",
        # A change couldn't be undone while the same person asked for the opposite.
        r"^facts / undo / \w+ / (does|who):\n  was \[\]\n",
        # A removal that had found nobody to remove offered `Undo`, and then refused it.
        r"^facts / cards / 1f3bef185f378a61 / buttons:\n  was \['Undo'\]\n  now \[\]$",
        r"^facts / undo / 1f3bef185f378a61:\n  was {'does': \[\], ",
    },
    "from_0024": SINCE_0_4_0,
}
DATE = re.compile(r"<!date\^(\d+)\^[^>]*>")
# The bot's clock goes on while the questions are asked.
LATER_SECONDS = 600


def differences(was: Any, now: Any, where: str = "") -> Iterator[str]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in was.keys() | now.keys():
            yield from differences(was.get(name), now.get(name), f"{where} / {name}")
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for nth, (one, other) in enumerate(zip(was, now, strict=True)):
            yield from differences(one, other, f"{where} / {nth}")
    elif not is_same(was, now):
        yield f"{where}:\n  was {was!r}\n  now {now!r}"


def is_same(was: Any, now: Any) -> bool:
    if isinstance(was, int) and isinstance(now, int):
        return abs(was - now) <= LATER_SECONDS
    if not isinstance(was, str) or not isinstance(now, str):
        return bool(was == now)
    dates = [[int(date) for date in DATE.findall(words)] for words in (was, now)]
    return DATE.sub("@", was) == DATE.sub("@", now) and all(map(is_same, *dates))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["from_0020", "from_0024"])
async def test_an_upgraded_database_says_the_same(empty_database_url, name, monkeypatch):
    monkeypatch.setattr(bot.app, "Database", ClockedDatabase)
    day = upgrades.read(upgrades.HERE / f"{name}.json")
    await load(empty_database_url, day)
    answers = await answers_of(empty_database_url, day)
    found = [*differences(day["facts"], facts(answers), "facts")]
    matched = {known for known in INTENDED[name] for one in found if re.search(known, one)}
    left = [one for one in found if not any(re.search(known, one) for known in matched)]
    assert not left, "\n".join(sorted(left))
    assert matched == INTENDED[name]
