"""A typo is asked about: it never becomes a test user."""

import random
import string

import pytest

from bot.errors import UsageError
from bot.model.durations import parse_duration
from bot.parsing.testusers import ChangeRequest, parse_testusers

KEYWORDS = ("for", "from", "now", "because")
FLOWS = ("welcome", "survey")
PEOPLE = ("+15550100", "whatsapp:+15550101", "ada@example.com", "person-17", "U0CHAT")
DURATIONS = ("2h", "30m", "3d", "2 hours", "90 min", "1h30m")
LINES = 10_000


def mistyped(word: str, chance: random.Random) -> str:
    """The word with one or two of its letters changed, left out, doubled or swapped."""
    for _ in range(chance.choice((1, 2))):
        at = chance.randrange(len(word)) if word else 0
        letter = chance.choice(string.ascii_lowercase)
        swapped = word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
        left_out = word[:at] + word[at + 1 :]
        changed = (word[:at] + letter + word[at + 1 :], left_out, word[:at] + letter + word[at:])
        word = chance.choice((*changed, swapped))
    return word


def line(chance: random.Random) -> tuple[str, list[str]]:
    """A command with one of its own words mistyped, and the people it names."""
    people = chance.sample(PEOPLE, chance.randint(1, 3))
    words = ["add", chance.choice(FLOWS), *people]
    start = len(words)
    if chance.random() < 0.8:
        words += ["for", *chance.choice(DURATIONS).split()]
    if chance.random() < 0.3:
        words += ["from", "tomorrow", "9:00"]
    if chance.random() < 0.3:
        words += ["now"]
    words += ["because", "Friday", "demo"] if len(words) == start or chance.random() < 0.5 else []
    own = [at for at, word in enumerate(words) if word not in (*people, "add", "Friday", "demo")]
    at = chance.choice(own)
    words[at] = mistyped(words[at], chance)
    return " ".join(words), people


@pytest.mark.slow
def test_no_mistyped_word_becomes_a_test_user() -> None:
    chance = random.Random(19)
    taken = 0
    for _ in range(LINES):
        typed, people = line(chance)
        try:
            request = parse_testusers(typed)
        except UsageError:
            continue
        assert isinstance(request, ChangeRequest)
        assert set(request.identities) <= set(people), typed
        assert not any(parse_duration(one) for one in request.identities), typed
        taken += 1
    assert taken > LINES / 20


def test_no_word_that_lost_its_space_becomes_a_test_user() -> None:
    chance = random.Random(21)
    for _ in range(LINES // 10):
        glued = f"{chance.choice(('for', 'For'))}{chance.choice(DURATIONS)}"
        typed = f"add welcome {chance.choice(PEOPLE)} {chance.choice((glued, 'from9:00'))}"
        with pytest.raises(UsageError, match="Did you mean"):
            parse_testusers(typed)


def test_a_mistyped_keyword_beside_plain_names_is_asked_about_too() -> None:
    chance = random.Random(20)
    for _ in range(LINES // 10):
        keyword = mistyped(chance.choice(KEYWORDS), chance)
        if not keyword.strip() or keyword in KEYWORDS:
            continue
        try:
            request = parse_testusers(f"add welcome gracehopper {keyword} 2h")
        except UsageError:
            continue
        raise AssertionError((keyword, request))
