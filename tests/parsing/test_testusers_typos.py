"""A typo is asked about: it never becomes a test user."""

import random
import string
from dataclasses import dataclass

import pytest

from bot.errors import UsageError
from bot.model.testusers.changes import find_flow
from bot.parsing.testusers import (
    ChangeRequest,
    HistoryRequest,
    ListRequest,
    SavePreset,
    TestusersRequest,
    parse_testusers,
)
from bot.parsing.testusers_doubts import near_flow, near_keyword

FLOWS = ("welcome", "survey", "onboarding-2", "demo", "qa")
ALIASES = {alias: f"FW{number:032}" for number, alias in enumerate(FLOWS)}
SID = "FW00000000000000000000000000000001"
NUMBERS = ("+15550100", "whatsapp:+15550101", "ada@example.com", "person-17", "U0CHAT", "0170-5550")
NAMES = ("gracehopper", "margaret.hamilton", "chloë", "katherine", "o'neil", "edsger-dijkstra")
DURATIONS = ("2h", "30m", "3d", "5s", "2 hours", "90 min", "1h30m", "1 week", "1h 30 minutes")
TIMES = ("9:00", "tomorrow 9:00", "2026-12-01 09:00", "friday 17:30", "today 9:15 pm")
REASONS = ("because Friday demo", "because of a demo for 2h now", "because x")
LETTERS = string.ascii_lowercase + string.digits + " "
LINES = 10_000


@dataclass
class Line:
    """A command in words; `own` are the places of its keywords, flows, durations and times."""

    words: list[str]
    people: tuple[str, ...]

    def __post_init__(self) -> None:
        end = self.words.index("because") + 1 if "because" in self.words else len(self.words)
        named = {*self.people, "demo-team", "@demo-team"}
        self.own = [at for at in range(end) if self.words[at] not in named]


def mistyped(word: str, edits: int, chance: random.Random) -> str:
    """The word with so many letters changed, left out, added or swapped."""
    for _ in range(edits):
        at = chance.randrange(len(word) + 1)
        letter = chance.choice(LETTERS)
        swapped = word[:at] + word[at + 1 : at + 2] + word[at : at + 1] + word[at + 2 :]
        left_out, added = word[:at] + word[at + 1 :], word[:at] + letter + word[at:]
        word = chance.choice((word[:at] + letter + word[at + 1 :], left_out, added, swapped))
    return word


def some_people(chance: random.Random) -> tuple[str, ...]:
    known = chance.choice((NUMBERS, NAMES))
    return tuple(chance.sample(known, chance.randint(1, 3)))


def change_line(chance: random.Random) -> Line:
    """An `add` or a `remove`, with what may stand in it in any order that is understood."""
    kind, people = chance.choice(("add", "add", "add", "remove")), some_people(chance)
    options = []
    if kind == "add" and chance.random() < 0.7:
        options.append(f"for {chance.choice(DURATIONS)}")
    if kind == "add" and chance.random() < 0.4:
        options.append(f"from {chance.choice(TIMES)}")
    elif chance.random() < 0.3:
        options.append("now")
    chance.shuffle(options)
    preset = " @demo-team" if chance.random() < 0.2 else ""
    parts = [" ".join(people) + preset, *options]
    if chance.random() < 0.1:
        parts.reverse()
    reason = [chance.choice(REASONS)] if chance.random() < 0.5 or "now" in options else []
    flow = chance.choice((*FLOWS, SID))
    return Line(" ".join((kind, flow, *parts, *reason)).split(), people)


def other_line(chance: random.Random) -> Line:
    """Any other form of the command."""
    flow, people = chance.choice(FLOWS), some_people(chance)
    text = chance.choice(
        (
            *(f"list {flow}", f"list {flow} +1555", f"history {flow}", "requests", "mine"),
            *("presets", "help", "preset delete demo-team"),
            *([f"preset save demo-team {' '.join(people)}"] * 4),
        )
    )
    return Line(text.split(), people)


def some_line(chance: random.Random) -> Line:
    return change_line(chance) if chance.random() < 0.8 else other_line(chance)


def spoiled(line: Line, chance: random.Random) -> str:
    """The line with one or two letters wrong, in one of its own words or in two."""
    words = list(line.words)
    first, second = chance.choice(line.own), chance.choice(line.own)
    for at, most in ((first, 1), (second, 1)) if chance.random() < 0.3 else ((first, 2),):
        words[at] = mistyped(words[at], chance.randint(1, most), chance)
    return " ".join(words)


def disordered(line: Line, chance: random.Random) -> str:
    """The line with one of its own words in another place, whole or with a letter wrong."""
    words = list(line.words)
    word = words.pop(chance.choice(line.own))
    if word.isalpha() and word not in " ".join(TIMES):
        word = mistyped(word, chance.randint(0, 1), chance)
    end = words.index("because") if "because" in words else len(words)
    words.insert(chance.randint(0, end), word)
    return " ".join(words)


def people_of(request: TestusersRequest | None) -> set[str]:
    return set(request.identities) if isinstance(request, ChangeRequest | SavePreset) else set()


def understood(typed: str) -> TestusersRequest | None:
    """What is taken of a line; None where something in it is asked about."""
    try:
        request = parse_testusers(typed, FLOWS)
    except UsageError:
        return None
    is_of_flow = isinstance(request, ChangeRequest | ListRequest | HistoryRequest)
    return None if is_of_flow and find_flow(request.flow, ALIASES) is None else request


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [spoiled, disordered])
def test_no_mistyped_word_becomes_a_test_user(spoil) -> None:
    chance = random.Random(19)
    wrong, taken = [], 0
    for _ in range(LINES):
        line = some_line(chance)
        typed = spoil(line, chance)
        request = understood(typed)
        taken += request is not None
        if not people_of(request) <= set(line.people):
            wrong.append((typed, people_of(request) - set(line.people)))
    assert not wrong, (len(wrong), wrong[:60])
    assert taken > LINES / 20


@pytest.mark.slow
def test_every_line_is_understood_before_it_is_spoiled() -> None:
    chance = random.Random(20)
    for _ in range(LINES):
        line = some_line(chance)
        request = understood(" ".join(line.words))
        assert request is not None, line.words
        assert people_of(request) in (set(line.people), set())


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("add survey welcome", "“welcome” is a flow. One request changes one flow. If “welcome”"),
        ("add survey ada WELCÓME", "“WELCÓME” is a flow."),
        ("add survey w\u0435lcom\u0435", "is a flow."),
        (
            "add survey ada welcmoe",
            "Did you mean the flow “welcome”? One request changes one flow.",
        ),
        ("add survey ada demp", "Did you mean the flow “demo”?"),
        (f"add welcome +1 {SID}", "is a flow."),
        ("add +1 +2 welcome", "“welcome” is a flow. Put the flow first."),
        ("preset save demo-team ada welcome", "“welcome” is a flow. A preset only names people."),
        (
            "remove welcome ada remove bertrand",
            "“remove” is a command of its own. Send it separately.",
        ),
        ("add welcome help", "“help” is a command of its own."),
        ("add welcome ada remuve", "“remuve” is a command of its own."),
        ("add welcome ada 2hh", "Is “2hh” a duration? Write it like “for 2h”."),
        ("add welcome ada 2jours", "Is “2jours” a duration?"),
        ("add welcome ada 1dd", "Is “1dd” a duration?"),
        ("add welcome ada 3ours", "Is “3ours” a duration?"),
        ("add welcome ada 20m1n", "Is “20m1n” a duration?"),
        ("add welcome ada 2 h", "Did you mean “for 2 h”?"),
        ("add welcome ada 90 mni", "Did you mean “for 90 mni”?"),
        ("add welcome ada for 2h ours", "I can't read “2h ours” as a duration."),
        ("add welcome ada from 9:00 p", "I can't read “9:00 p” as a time."),
        ("add welcome ada from 9:00 tomorrow", "I can't read “9:00 tomorrow” as a time."),
        ("add welcome ada tomorow", "Did you mean “from tomorow”?"),
        ("add welcome ada 2026-12-1", "Did you mean “from 2026-12-1”?"),
        ("add welcome ada for 2h Friday demo", "Did you mean “from Friday”?"),
        ("add welcome ada for 2h spring demo", "Did you mean “because” before “spring”?"),
        ("add welcome ada from 9:00 spring demo", "Did you mean “because” before “spring”?"),
        ("add welcome ada now spring demo", "Did you mean “because” before “spring”?"),
        ("add welcome +1 @team 17", "Did you mean “because” before “17”?"),
        (f"add welcome +1 {'x' * 81}", f"before “{'x' * 80}”? If “{'x' * 80}” is"),
        ("add welcome @team spring demo", "Did you mean “because” before “spring”?"),
        ("add welcome ada be cause", "Did you mean “because” instead of “be cause”?"),
        ("add welcome ada be couse x", "Did you mean “because” instead of “be couse”?"),
        ("add welcome ada becauseFriday", "Did you mean “because” instead of “becauseFriday”?"),
        ("add welcome ada \uff46\uff4f\uff52 2h", "Did you mean “for” instead of"),
        ("add welcome ada b\u0435\u0441\u0430us\u0435 x", "Did you mean “because” instead of"),
        ("add welcome ada nw2o", "Did you mean “now” instead of “nw2o”?"),
    ],
)
def test_a_word_that_is_no_person_is_asked_about(typed: str, said: str) -> None:
    with pytest.raises(UsageError) as question:
        parse_testusers(typed, FLOWS)
    assert said in question.value.sentence


@pytest.mark.parametrize(
    ("people", "last", "said"),
    [
        (49, "welcmoe", "Did you mean the flow “welcome”?"),
        (50, "welcmoe", "Did you mean “because” before “welcmoe”?"),
        (665, "becuase", "Did you mean “because” instead of “becuase”?"),
        (666, "becuase", "Did you mean “because” before “becuase”?"),
    ],
)
def test_no_more_words_are_looked_at_closely_than_a_request_takes(people, last, said) -> None:
    names = " ".join(f"person-{number}" for number in range(people))
    with pytest.raises(UsageError) as question:
        parse_testusers(f"add survey {names} {last}", FLOWS)
    assert said in question.value.sentence


@pytest.mark.parametrize(
    ("typed", "flow", "is_near"),
    [
        ("a", "a", True),
        ("b", "a", False),
        ("qa", "qa", True),
        ("qb", "qa", False),
        ("abx", "abc", True),
        ("axx", "abc", False),
        ("demx", "demo", True),
        ("dexx", "demo", False),
        ("alpxx", "alpha", True),
        ("alxxx", "alpha", False),
    ],
)
def test_so_many_letters_of_a_flow_may_be_wrong(typed: str, flow: str, is_near: bool) -> None:
    assert near_flow(typed, [flow]) == (flow if is_near else None)


def test_one_letter_of_what_is_typed_for_a_keyword_may_be_wrong() -> None:
    assert near_keyword("sincx") == "because"
    assert near_keyword("sinxx") is None


@pytest.mark.parametrize(
    "typed",
    [
        "add welcome ada “welcome” “2h” “remove” “because”",
        "add welcome for 2h ada grace",
        "add welcome turing stuart gracehopper",
        "add welcome turing hestori",
        "add welcome +1 @team +15550100",
        "add welcome 0170-5550 555-0100 9f86d081 200-4511",
    ],
)
def test_people_are_taken_without_a_question(typed: str) -> None:
    assert isinstance(parse_testusers(typed, FLOWS), ChangeRequest)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("add welcome +1 becuase Friday demo", "add welcome +1 because Friday demo"),
        ("add welcome +1 Friday; demo", "add welcome +1 from Friday demo"),
        ("add welcome +1 for2h", "add welcome +1 for 2h"),
        ("add welcome +1, 2 h because x", "add welcome +1, for 2 h because x"),
        ("add +1 +2 welcmoe for 2h", "add welcome +1 +2 for 2h"),
        ("add welcome +1 spring demo", "add welcome +1 because spring demo"),
        ("preset sve team +1", "preset save team +1"),
    ],
)
def test_what_was_meant_is_offered_where_it_is_understood(typed: str, meant: str) -> None:
    with pytest.raises(UsageError) as question:
        parse_testusers(typed, FLOWS)
    offered = [one.words for one in question.value.meant]
    assert offered == ([meant] if understood(meant) else [])


def realistic(chance: random.Random) -> list[str]:
    """One identity of each kind that a flow has: numbers, addresses of chats, mail, handles."""

    def some(letters: str, count: int) -> str:
        return "".join(chance.choices(letters, k=count))

    digits, hexadecimal = string.digits, string.digits + "abcdef"
    name = some("aeiou", 1) + some(string.ascii_lowercase, 7)
    return [
        f"+{some('123456789', 1)}{some(digits, chance.randint(7, 14))}",
        f"+1-{some(digits, 3)}-{some(digits, 3)}-{some(digits, 4)}",
        f"0{some(digits, chance.randint(8, 10))}",
        f"{some(digits, 3)}-{some(digits, 4)}",
        f"whatsapp:+{some(digits, 11)}",
        f"sip:{name}@voice.example.com",
        f"{name}.{some(string.ascii_lowercase, 8)}+test@example.com",
        f"U0{some(string.ascii_uppercase + digits, 9)}",
        f"US{some(hexadecimal, 32)}",
        "-".join(some(hexadecimal, count) for count in (8, 4, 4, 4, 12)),
        f"{name}{some(digits, 3)}",
        f"tester-{some(digits, 2)}",
    ]


@pytest.mark.slow
def test_people_as_flows_have_them_are_taken_without_a_question() -> None:
    chance = random.Random(22)
    for _ in range(LINES // 10):
        people = realistic(chance)
        typed = f"add welcome {' '.join(people)} for 2h because Friday demo"
        request = parse_testusers(typed, FLOWS)
        assert people_of(request) == set(people)
