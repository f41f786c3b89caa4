"""`/testusers` does what the text asks for, or explains the problem and shows an example."""

import re
from datetime import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.approvals.times import LocalTime
from bot.errors import UsageError
from bot.spelling import DOUBLE_QUOTES, SINGLE_QUOTES
from bot.testusers.parse.command import (
    ChangeRequest,
    Subcommand,
    TestusersRequest,
    Unclear,
    parse_testusers,
)
from bot.testusers.parse.identities import is_identity

NINE = LocalTime(time(9))


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
        ("add welcome +1; \u202a+2\u202c cafe\u0301@b.c", added("+1", "+2", "café@b.c")),
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
        ("add welcome +1 for “2 hours” +2", "Add a duration after “for”"),
        ("add welcome +1 for 2h until 9:00", "Use either “for” or “until”, and use it only once."),
        ("add welcome +1 until soon", "“soon” as a time. Try 18:00, friday, tomorrow 9:00 or"),
        ("add welcome +1 until", "Add a time after “until”, e.g. 18:00"),
        ("add welcome +1 until 9:00 until 9:00", "only once"),
        ("add welcome +1 from tomorrow 9:00", "so you can't use “from”. Ask later instead."),
        ("remove welcome +1 from 9:00", "so you can't use “from”. Ask later instead."),
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
        ("add welcome +1 because \ud83d", "a character I can't store"),
        ("add welcome +1 now", "needs a reason"),
        ("add welcome +1 because " + "x" * 501, "too long: it has 501 characters"),
        ("remove welcome +1 for 2h", "only works with “add”"),
        ("add welcome sip:" + "x" * 297, "301 bytes"),
        ("add welcome " + "x" * 12_000, "Send at most 12,000 characters"),
    ],
)
def test_a_refusal_names_what_is_wrong_and_its_example_is_right(text: str, said: str) -> None:
    with pytest.raises(UsageError) as refusal:
        parse_testusers(text)
    assert said in refusal.value.sentence
    parse_testusers(refusal.value.example.removeprefix("/testusers "))


quotable = st.text(min_size=1, max_size=40).filter(
    lambda text: text.strip() and not set(text) & set('"\u201c\u201d\u201e\u201f\u00ab\u00bb')
)


@given(st.lists(quotable, min_size=1, max_size=5, unique=True))
def test_quoted_identities_stay_what_they_are(identities: list[str]) -> None:
    escaped = [
        identity.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        for identity in identities
    ]
    parsed = parse_testusers("add welcome " + ", ".join(f"“{item}”" for item in escaped))
    assert parsed == ChangeRequest("add", "welcome", tuple(identities))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("+1 555 0142", ["“+1 555 0142” doesn't look like", "Did you mean “+15550142”?"]),
        ("+1   555\t01\u202f42", ["“+1 555 01 42” doesn't", "Did you mean “+15550142”?"]),
        ("+1 (555) 010-0100", ["Did you mean “+15550100100”?"]),
        ("+49 (0) 170 12345", ["Did you mean “+4917012345”?"]),
        ("+1-555\u20110100", ["Did you mean “+15550100”?"]),
        ("<tel:+1555|+1 555>", ["Did you mean “+1555”?"]),
        ("\uff0b\uff11\uff15\uff15\uff15", ["Did you mean “+1555”?"]),
        ("+1 555 0142 2h", ["“+1 555 0142” and “2h” don't", "Write “for 2h”.", "“+15550142”?"]),
        ("+1 2 hours", ["“2 hours” doesn't", "Write “for 2 hours”."]),
        ("+1 tomorrow 9:00", ["“tomorrow 9:00” doesn't", "Write “until tomorrow 9:00”."]),
        ("+1 2026-12-01", ["Write “until 2026-12-01”."]),
        ("vera John Smith", ["“vera”, “John” and “Smith” don't look like a phone number"]),
        ("*<mailto:ada@x.test|ada@x.test>*", ["“*ada@x.test*”", "Did you mean “ada@x.test”?"]),
        ("_chat:ada_", ["“_chat:ada_” doesn't", "Did you mean “chat:ada”?"]),
        ("`chat:ada_`", ["Did you mean “chat:ada_”?"]),
        ("(*chat:ada_*).", ["Did you mean “chat:ada_”?"]),
        ("*+15550142", ["Did you mean “+15550142”?"]),
        ("+1 becuase demo", ["“becuase” and “demo” don't", "Did you mean “because”?"]),
        ("fro 2h +1", ["“fro” and “2h” don't", "Write “for 2h”."]),
        ("+1 until 9:00 p.m.", ["“p.m.” doesn't look like"]),
        ("+1 because:x", ["“because:x” doesn't look like"]),
        ("+1234567890123456", ["“+1234567890123456” doesn't look like"]),
        (" ".join(["vera"] * 12), ["and 2 more words"]),
    ],
)
def test_odd_words_are_refused_together_with_what_was_probably_meant(typed, said) -> None:
    parsed = parse_testusers(f"add welcome {typed}")
    assert isinstance(parsed, Unclear)
    assert "put it in quotes" in parsed.problem
    assert [part for part in said if part not in parsed.problem] == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("`chat:ada_", "“chat:ada_”"), ("(chat:ada_", "“chat:ada_”"), ("**", ""), ("*", "")],
)
def test_no_other_identity_is_suggested(typed: str, meant: str) -> None:
    parsed = parse_testusers(f"add welcome {typed}")
    assert isinstance(parsed, Unclear)
    assert parsed.problem.partition("Did you mean ")[2].partition("?")[0] == meant


def test_the_form_keeps_the_words_that_were_understood() -> None:
    parsed = parse_testusers("add welcome +2 +1 555 0142 @team vera for 2h because demo")
    assert isinstance(parsed, Unclear)
    understood = added("+2", duration_seconds=7200, presets=("team",), reason="demo")
    assert parsed.understood == understood
    assert parsed.form == "add"


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
