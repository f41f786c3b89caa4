"""`/testusers` does what the text asks for, or explains the problem and shows an example."""

import re
from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.times import LocalTime
from bot.errors import UsageError
from bot.flows.rules import plain
from bot.spelling import DOUBLE_QUOTES, SINGLE_QUOTES
from bot.testusers.parse.command import (
    ChangeRequest,
    Prefilled,
    Subcommand,
    TestusersRequest,
    parse_testusers,
)
from bot.testusers.parse.identities import is_identity

NINE = LocalTime(time(9))


def refused(text: str) -> UsageError:
    """Return the error that refuses this command, whose example is right."""
    with pytest.raises(UsageError) as error:
        parse_testusers(text)
    parse_testusers(error.value.example.removeprefix("/testusers "))
    return error.value


def refusal(text: str) -> str:
    """Return the sentence that refuses this command."""
    return refused(text).sentence


def kept(text: str) -> Prefilled:
    """Return the form that a refused command opens."""
    unsent = refused(text).unsent
    assert unsent is not None
    assert unsent.texts == ()
    return Prefilled.of(unsent.value)


def added(*identities: str, **more: object) -> ChangeRequest:
    return ChangeRequest("add", "welcome", identities, **more)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("", Subcommand("form")),
        ("help", Subcommand("help")),
        ("—help", Subcommand("help")),
        ("requests", Subcommand("requests")),
        ("list welcome", Subcommand("list", "welcome")),
        ("LIST “two words”", Subcommand("list", "two words")),
        ("history welcome", Subcommand("history", "welcome")),
        ("Add welcome +1", added("+1")),
        ("add welcome +1,+2 , +3", added("+1", "+2", "+3")),
        ("remove welcome +1", ChangeRequest("remove", "welcome", ("+1",))),
        (
            "add welcome whatsapp:+1 “now” «because, for»",
            added("whatsapp:+1", "now", "because, for"),
        ),
        (
            "add welcome <mailto:a@b.c|a@b.c> <tel:+1555|+1555> “Ben&amp;Jerry”",
            added("a@b.c", "+1555", "Ben&Jerry"),
        ),
        (
            "add welcome +1 for 2h now because it\u2019s <@U1|ada> — now",
            added("+1", duration_seconds=7200, now=True, reason="it\u2019s @ada — now"),
        ),
        ("add welcome +2 because call +1 555", added("+2", reason="call +1 555")),
        ("add welcome +1 for 2h.", added("+1", duration_seconds=7200)),
        ("add welcome for 5s +1", added("+1", duration_seconds=5)),
        ("add welcome for 2 hours +1", added("+1", duration_seconds=7200)),
        ("add welcome +1 for 1h 30 min", added("+1", duration_seconds=5400)),
        ("add welcome +1 for 1 day, 2 hours, +2", added("+1", "+2", duration_seconds=93_600)),
        ("add welcome +1; \u202a+2\u202c cafe\u0301@b.c", added("+1", "+2", "café@b.c")),
        ("add welcome o\u2019neil@x.test", added("o'neil@x.test")),
        ("add welcome <mailto:Bob@X.test|Bob@X.test>", added("Bob@X.test")),
        ("add welcome +1 until 6pm friday", added("+1", until=LocalTime(time(18), "friday"))),
        ("add welcome whatsapp:+15550142", added("whatsapp:+15550142")),
        (
            "add welcome sip:+1555@x.test sip:ada@x.test",
            added("sip:+1555@x.test", "sip:ada@x.test"),
        ),
        ("add welcome +1 until noon", added("+1", until=LocalTime(time(12)))),
        (
            "add welcome +1 until friday 18:00",
            added("+1", until=LocalTime(time(18), "friday")),
        ),
        ("add welcome +1 @Demo-Team", added("+1", presets=("demo-team",))),
        ("remove welcome @a @b", ChangeRequest("remove", "welcome", (), presets=("a", "b"))),
        ("add welcome “@a” for 2h", added("@a", duration_seconds=7200)),
        ("mine", Subcommand("mine")),
        ("presets", Subcommand("presets")),
        ("review", Subcommand("review")),
        ("Review Welcome", Subcommand("review", "Welcome")),
        ("list welcome +1555 x", Subcommand("list", "welcome", "+1555 x")),
        (
            "preset save Demo-Team +1, +2",
            Subcommand("save_preset", text="demo-team", identities=("+1", "+2")),
        ),
        ("list save", Subcommand("list", "save")),
        ("preset delete @demo-team", Subcommand("delete_preset", text="demo-team")),
        ("add welcome until 9:00 +1", added("+1", until=NINE)),
        ("add welcome +1 because " + "x" * 500, added("+1", reason="x" * 500)),
        ("add\u00a0welcome\u00a0+1 — because x\ny", added("+1", reason="x y")),
        (
            "remove welcome +1 NOW Because x",
            ChangeRequest("remove", "welcome", ("+1",), None, True, "x"),
        ),
    ],
)
def test_typed_commands_are_understood(text: str, request_: TestusersRequest) -> None:
    assert parse_testusers(text) == request_


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("frobnicate", "Unknown subcommand “frobnicate”"),
        ("requests all", "with nothing after it"),
        ("list", "Which flow"),
        ("history welcome x", "Unexpected word: “x”"),
        ("add", "Which flow"),
        ("add +1 welcome for 2h", "Put the flow first"),
        ("add for 2h", "Put the flow first"),
        ("add welcome", "Add at least one"),
        ('add welcome ""', "empty"),
        ("add welcome +1 +1", "“+1” is listed twice"),
        ("add welcome +1 for", "Add a duration after “for”"),
        ("add welcome +1 for 0h", "“0h” as a duration"),
        ("add welcome +1 for 1h for 2h", "only once"),
        ("add welcome +1 for 2 hiurs", "“2 hiurs” as a duration"),
        ("add welcome +1 for 1,5h", "“1,5h” as a duration"),
        ("add welcome +1 until 2026-12-01T09:00", "“2026-12-01T09:00” as a time"),
        ("add welcome +1 for “2 hours” +2", "Add a duration after “for”"),
        ("add welcome +1 for 2h until 9:00", "Use either “for” or “until”, and use it only once."),
        ("add welcome +1 until soon", "“soon” as a time. Try 18:00, friday, tomorrow 9:00 or"),
        ("add welcome +1 until", "Add a time after “until”, e.g. 18:00"),
        ("add welcome +1 until 9:00 until 9:00", "only once"),
        ("add welcome +1 from friday", "“from” and “friday” don't look like a phone number"),
        ("preset", "“preset save” or “preset delete”"),
        ("preset save", "Which preset?"),
        ("preset save a/b +1", "Use up to 40 characters"),
        ("preset save team", "Add at least one"),
        (
            "preset save team +1 because x",
            "“because” and “x” don't look like",
        ),
        ("lst welcome", "Unknown subcommand “lst”. Did you mean “list”?"),
        ("add welcome +1 because", "Add a reason after"),
        ("add welcome +1 now", "needs a reason"),
        ("add welcome +1 because " + "x" * 501, "too long: it has 501 characters"),
        ("remove welcome +1 for 2h", "only works with “add”"),
        ("add welcome sip:" + "x" * 297, "301 bytes"),
        ("add welcome " + "x" * 10_000, "Send at most 10,000 characters"),
        ("add welcome +1 until eod", "“eod” as a time"),
        ("add welcome +1 until the demo is over", "“the demo is over” as a time"),
        ("add welcome vera for soon", "“vera” doesn't look like"),
        ("add welcome vera for soon", "“soon” as a duration"),
        ("add @demo", "Which flow? Put the flow first"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_its_example_is_right(text: str, said: str) -> None:
    assert said in refusal(text)


def test_a_refusal_says_once_that_characters_were_lost() -> None:
    said = refusal('add welcome "Ada \ufffd" because \ufffd')
    assert said.count("stands for a character that was lost") == 1


@pytest.mark.parametrize("unseen", ["\u200b", "\ufeff", "\u200c", "\u200d"])
def test_characters_that_cannot_be_seen_around_an_identity_do_not_matter(unseen: str) -> None:
    typed = parse_testusers(f"add welcome {unseen}+1{unseen}")
    assert isinstance(typed, ChangeRequest)
    assert typed.identities == ("+1",)


quotable = st.text(min_size=1, max_size=40).filter(
    lambda text: text.strip() and not set(text) & set('"\u201c\u201d\u201e\u201f\u00ab\u00bb')
)


@given(st.lists(quotable, min_size=1, max_size=5, unique_by=plain))
def test_quoted_identities_stay_what_they_are(identities: list[str]) -> None:
    escaped = [
        identity.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for identity in identities
    ]
    parsed = parse_testusers("add welcome " + ", ".join(f"“{item}”" for item in escaped))
    assert parsed == ChangeRequest("add", "welcome", tuple(identities))


@pytest.mark.parametrize(
    ("typed", "odd"),
    [
        ("+1 555 0142", ["+1 555 0142"]),
        ("+1   555\t01\u202f42", ["+1   555\t01\u202f42"]),
        ("+1 (555) 010-0100, +2", ["+1 (555) 010-0100"]),
        ("+1 555.0142.", ["+1 555.0142."]),
        ("+49 (0) 170 12345;", ["+49 (0) 170 12345"]),
        ("(+1) 555 0142", ["(+1) 555 0142"]),
        ("+ 1 555 0142", ["+ 1 555 0142"]),
        ("+1 2 3 4 5 6 7 8 9 0 1 2 3 4 5", ["+1 2 3 4 5 6 7 8 9 0 1 2 3 4 5"]),
        ("0170 555 0142", ["0170 555 0142"]),
        ("+1-555\u20110100", ["+1-555\u20110100"]),
        ("whatsapp:+1 555 0142", ["whatsapp:+1 555 0142"]),
        ("whatsapp:+1 (555) 0142", ["whatsapp:+1 (555) 0142"]),
        ("whatsapp: +15550142", ["whatsapp: +15550142"]),
        ("whatsapp:+1-555-0161", ["whatsapp:+1-555-0161"]),
        ("whatsapp:+1.555.0161", ["whatsapp:+1.555.0161"]),
        ("whatsapp:(555)0161", ["whatsapp:(555)0161"]),
        ("whatsapp:15550142", ["whatsapp:15550142"]),
        ("whatsapp:+1555O142", ["whatsapp:+1555O142"]),
        ("whatsapp:+1234567890123456", ["whatsapp:+1234567890123456"]),
        ("whatsapp:<tel:+15550142|+1 555 0142>", ["whatsapp:+1 555 0142"]),
        ("<tel:+1555|+1 555>", ["+1 555"]),
        ("tel:+15550142 tel:+1-555", ["tel:+15550142", "tel:+1-555"]),
        ("<https://wa.me/15550164|https://wa.me/15550164>", ["https://wa.me/15550164"]),
        ("<https://wa.me/15550164>", ["https://wa.me/15550164"]),
        ("HTTP://a.test zoommtg://a.test ftp:a", ["HTTP://a.test", "zoommtg://a.test", "ftp:a"]),
        ("<mailto:a@b.c|mailto:a@b.c>", ["mailto:a@b.c"]),
        ("<mailto:eve@x.test|ada@x.test>", ["<mailto:eve@x.test|ada@x.test>"]),
        ("sms:+15550142 email:a@b.c", ["sms:+15550142", "email:a@b.c"]),
        ("Mail:a@b.c Tel.:+1555", ["Mail:a@b.c", "Tel.:+1555"]),
        ("cell:+1555 FaceTime:a@b.c", ["cell:+1555", "FaceTime:a@b.c"]),
        ("b.test:8080/home localhost:80/a", ["b.test:8080/home", "localhost:80/a"]),
        ("whatsapp:https://wa.me/1", ["whatsapp:https://wa.me/1"]),
        ("\uff0b\uff11\uff15\uff15", ["\uff0b\uff11\uff15\uff15"]),
        ("+1 555 0142 2h", ["+1 555 0142", "2h"]),
        ("vera John Smith", ["vera", "John", "Smith"]),
        ("*<mailto:ada@x.test|ada@x.test>*", ["*ada@x.test*"]),
        ("_chat:ada_ `chat:ada_` (*chat:ada_*).", ["_chat:ada_", "`chat:ada_`", "(*chat:ada_*)."]),
        ("+1 and +2", ["and"]),
        ("becuase demo", ["becuase", "demo"]),
        ("because:x", ["because:x"]),
        ("+1234567890123456", ["+1234567890123456"]),
        ("1. +15550142 2. +15550143", ["+15550142 2."]),
        ("+1, 555.", ["555."]),
    ],
)
def test_words_that_are_no_identities_are_refused_and_named(typed: str, odd: list[str]) -> None:
    *first, last = (f"“{' '.join(word.split())}”" for word in odd)
    names = f"{', '.join(first)} and {last} don't" if first else f"{last} doesn't"
    problem = refusal(f"add welcome {typed}")
    assert problem.startswith(f"{names} look like a phone number (+15550142, without blanks)")
    assert "put it in quotes" in problem


def test_many_odd_words_are_counted() -> None:
    assert "and 2 more words" in refusal("add welcome " + " ".join(["vera"] * 12))


@pytest.mark.parametrize(
    "typed",
    [
        "\u2022 +15550100 \u2022 ada@x.test",
        "- +15550100\n- ada@x.test",
        "* +15550100\n* ada@x.test",
        "1. +15550100\n2. ada@x.test",
        "1) +15550100, 2) ada@x.test",
        "+15550100 | ada@x.test",
        "+15550100 & \U0001f642 ada@x.test ;",
    ],
)
def test_marks_of_a_pasted_list_are_left_out(typed: str) -> None:
    assert parse_testusers(f"add welcome {typed}") == added("+15550100", "ada@x.test")
    assert kept(f"add welcome {typed} vera").lines == ("+15550100", "ada@x.test", "vera")


def test_a_refused_change_keeps_everything_as_typed() -> None:
    typed = "add welcome +2; +1 555 0142 @Team vera \u201ca b\u201d for 2 hiurs because x"
    lines = ("+2;", "+1 555 0142", "@Team", "vera", "\u201ca b\u201d")
    assert kept(typed) == Prefilled("welcome", duration="for 2 hiurs", reason="x", lines=lines)
    until = LocalTime(time(18), "friday")
    assert kept("add welcome vera until 6pm friday").until == until


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("customer demo for 2h", "for 2h"),
        ("demo for 1 hour 30 min.", "for 1 hour 30 min."),
        ("for 2h", "for 2h"),
        ("demo _for 2h_", "_for 2h_"),
        ("demo for 2h \U0001f642", "for 2h"),
        ("demo (for 2h)", "(for 2h)"),
        ("demo \u2014for\u00a02h", "\u2014for 2h"),
        ("demo until 6pm friday", "until 6pm friday"),
        ("demo Until friday at 17:00", "Until friday at 17:00"),
    ],
)
def test_a_reason_that_ends_in_an_end_is_asked_about(reason: str, end: str) -> None:
    for words in ("", "now "):
        assert f"ends in “{end}”" in refusal(f"add welcome +1 {words}because {reason}")


@pytest.mark.parametrize(
    "text",
    [
        "add welcome +1 for 1d because demo for 2h",
        "add welcome +1 until friday because demo for 2h",
        "remove welcome +1 because away for 2h",
        "add welcome +1 because demo “for 2h”",
        "add welcome +1 because for 2h we test",
        "add welcome +1 because we wait for you",
    ],
)
def test_other_reasons_are_not_asked_about(text: str) -> None:
    assert isinstance(parse_testusers(text), ChangeRequest)


@pytest.mark.parametrize(
    "address",
    [
        *("*ada@x.test*", "_ada@x.test_", "~ada@x.test~", "`ada@x.test`", "(ada@x.test)"),
        *(
            "ada@x.test.",
            "ada@x.test)",
            "[ada@x.test]",
            "ada@x..test",
            "ada@-x.test",
            "•ada@x.test",
        ),
    ],
)
def test_address_with_decoration_is_no_address(address: str) -> None:
    assert not is_identity(address)


@pytest.mark.parametrize(
    "address", ["o'neil@x.test", "a.b+c@x-y.test", "a_b@x.test", "é@bücher.de"]
)
def test_address_without_decoration_is_an_address(address: str) -> None:
    assert is_identity(address)


@pytest.mark.parametrize("text", ["add welcome +1 for\u200b 2h", "add welcome +1 for 2h\u200b"])
def test_invisible_characters_in_the_commands_own_words_do_not_matter(text: str) -> None:
    assert parse_testusers(text) == added("+1", duration_seconds=7200)


@pytest.mark.parametrize(
    ("typed", "unknown", "closest"),
    [("preset sve team +1", "sve", ["save"])],
)
def test_closest_words_are_suggested(typed: str, unknown: str, closest: list[str]) -> None:
    with pytest.raises(UsageError) as error:
        parse_testusers(typed)
    assert (error.value.unknown, [*error.value.closest]) == (unknown, closest)


unquoted = st.text(min_size=1, max_size=12).filter(
    lambda word: not set(word) & {" ", ",", *DOUBLE_QUOTES, *SINGLE_QUOTES}
)


@given(unquoted)
def test_a_word_is_an_identity_by_its_looks_or_refused(word: str) -> None:
    try:
        parsed = parse_testusers(f"add welcome +1 {word}")
    except UsageError:
        return
    if isinstance(parsed, ChangeRequest):
        assert all(
            re.match(r"\+\d{1,15}$|[a-z][\w+.-]*:.|.+@.+\..", identity, re.IGNORECASE)
            for identity in parsed.identities
        )
