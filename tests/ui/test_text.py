"""Tests that invisible characters in external text become visible, and other text is unchanged."""

import html
import re
import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.slack.messages import block_kit, text

ANYTHING = st.text(max_size=400)
PIECES = (
    "<!channel> <@U0ADA> <https://evil.example|ok> &lt;!here&gt; & < > ` ``` *b* _i_ ~s~ :smile: a"
)
UNSEEN = ["> quote", "نور", "שלום", *"\n\r\t\x00\x85\xad\u200b\u202e\u2028\u2066\ud800"]
HOSTILE = st.lists(st.sampled_from([*PIECES.split(), *UNSEEN]), max_size=40).map("".join)
TEXTS = ANYTHING | HOSTILE
ENTITY = re.compile(r"&(?!(?:amp|lt|gt);)")
ORDINARY = st.text(
    st.sampled_from("abcdefghijklmnopqrstuvwxyzABCDEÄÖÜß桜井 0123456789&<>.,;!?()[]/\\'\"+-=@#%$€"),
    max_size=200,
)


def every_way(value):
    return text.escape(value), text.sentence(value), text.code(value), text.plain(value)


TURNING_OR_UNSEEN = "\u061c\u200b\u200e\u200f\u202a\u202e\u2060\u2066\u2069\ufeff"


def test_every_control_character_and_every_unseen_one_gets_a_stand_in():
    controls = [
        character
        for character in map(chr, range(0x110000))
        if unicodedata.category(character) in {"Cc", "Cs"} and not character.isspace()
    ]
    for character in [*controls, *TURNING_OR_UNSEEN]:
        assert text.tidy(f"a{character}b") == f"a{text.VISIBLE_STAND_IN}b"


def test_right_to_left_text_is_isolated_and_other_text_is_not():
    assert text.plain("نور 1") == "\u2068نور 1\u2069"
    assert text.plain("Müller 株") == "Müller 株"


def test_a_sentence_keeps_its_direction_with_any_quotation():
    said = text.sentence("“نور <b> شمس 1” fits 2; “نور 1” too")
    assert said == "“\u2068نور\u2069 &lt;b&gt; \u2068شمس\u2069 1” fits 2; “\u2068نور\u2069 1” too"


def seen(markup: str) -> str:
    """Return the text that people see in Slack."""
    plain = re.sub("[\u2060\u2068\u2069]", "", markup)
    return html.unescape(plain)


@given(TEXTS)
@example("<!channel>")
def test_escaped_text_is_one_line_without_markup_or_directions(value):
    for markup in (text.escape(value), text.sentence(value)):
        assert not set("<>") & set(markup)
        assert not ENTITY.search(markup)
    for markup in every_way(value):
        assert len(markup.splitlines()) <= 1
        depth = 0
        for character in markup:
            assert unicodedata.category(character) not in {"Cc", "Cs", "Zl", "Zp"}
            depth += {"\u2068": 1, "\u2069": -1}.get(character, 0)
            assert character not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u200e\u200f"
            assert 0 <= depth <= 1
            if unicodedata.bidirectional(character) in {"R", "AL", "AN"}:
                assert depth == 1
        assert depth == 0


@given(ORDINARY)
def test_ordinary_text_is_shown_unchanged(value):
    written = " ".join(value.split())
    assert seen(text.escape(value)) == written
    assert seen(text.sentence(value)) == written
    if written:
        assert seen(text.code(value)) == f"`{written}`"


@given(TEXTS)
def test_a_code_span_is_closed_by_its_own_mark_only(value):
    markup = text.code(value)
    assert markup[0] == markup[-1] == "`"
    assert "`" not in markup[1:-1]
    assert len(markup) > 2


@given(TEXTS, st.integers(3, 90))
def test_plain_text_keeps_to_its_limit_and_is_never_empty(value, limit):
    shown = text.plain(value, limit)
    assert 1 <= len(shown) <= limit
    assert not set("<>") & set(shown)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (":white_check_mark: Cleared", ":\u2060white_check_mark: Cleared"),
        ("Ben & Jerry", "Ben & Jerry"),
        ("at 01:00:00 UTC", "at 01:00:00 UTC"),
        (":100: of 10:30", ":\u2060100: of 10:30"),
        ("&lt;!here&gt; &amp;", "&\u2060lt;!here&\u2060gt; &\u2060amp;"),
    ],
)
def test_plain_text_has_no_emoji_and_no_markup(value, shown):
    assert text.plain(value) == shown
    header = block_kit.header(value)["text"]
    assert (header["text"], header["emoji"]) == (shown, False)


@given(st.lists(TEXTS, max_size=6), st.integers(10, 200))
def test_a_cut_leaves_nothing_half_open(values, limit):
    moment = text.time(datetime(2026, 3, 2, tzinfo=UTC))
    parts = [f"{text.escape(value)} {text.code(value)} {moment}" for value in values]
    markup = text.cut("\n".join(parts), limit)
    assert len(markup) <= limit
    assert not ENTITY.search(markup)
    assert markup.count("`") % 2 == 0
    assert markup.count("<") == markup.count(">")
    assert markup.count("\u2068") == markup.count("\u2069")


@pytest.mark.parametrize(
    ("value", "escaped"),
    [
        ("Tom & Jerry", "Tom &amp; Jerry"),
        ("a < b", "a &lt; b"),
        ("*bold*", "\u2060*bold*"),
        ("snake_case_name", "snake_case_name"),
        (":smile:", ":\u2060smile:"),
        ("10:30:15", "10:30:15"),
        ("`code`", "\u02cbcode\u02cb"),
        ("> quote", "\u2060&gt; quote"),
        ("a\nb", "a b"),
        ("", ""),
    ],
)
def test_escaping(value, escaped):
    assert text.escape(value) == escaped


def test_a_time_is_the_reader_s_with_a_fallback():
    at = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
    assert text.time(at) == (
        "<!date^1772443800^{date_short_pretty} at {time}|2026-03-02 09:30 UTC>"
    )


def test_identity_is_a_code_span_and_says_how_other_alphabets_read():
    assert text.identity("chat:ada") == "`chat:ada`"
    assert text.identity("<!channel>") == "`&lt;!channel&gt;`"
    assert text.identity("chat:\u0430da") == "`chat:⟨U+0430⟩da` (chat:\u0430da)"
    assert text.identity("chat:ada\u200d") == "`chat:ada⟨U+200D⟩`"


@pytest.mark.parametrize("shown", [text.escape, text.sentence, text.code, text.plain])
@pytest.mark.parametrize("mark", ["\u0336", "\u0489", "\u20dd"])
def test_marks_do_not_reach_into_other_lines(shown, mark):
    assert shown(f"a{mark * 30}b{mark}c", 60).count(mark) == 5


def test_reading_of_an_identity_covers_no_other_one():
    assert text.identity("chat:\u0430" + "\u0336" * 100).count("\u0336") == 4


@pytest.mark.parametrize("word", ["Việt Nam", "שָׁלוֹם", "नमस्ते", "བོད་ཡིག", "e\u0301\u0323\u0331\u0302"])
def test_marks_of_languages_stay(word):
    assert text.tidy(word) == word
