"""The bot recovers what people typed, even if Slack escaped it or a phone autocorrected it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.slack.parse import (
    escaped,
    read_words,
    recover,
)


def texts(text: str, *, commas: bool = True) -> list[str]:
    return [word.text for word in read_words(text, commas=commas)]


@pytest.mark.parametrize(
    ("sent", "typed"),
    [
        ("Ben &amp; Jerry", "Ben & Jerry"),
        ("&lt;!channel&gt;", "<!channel>"),
        ("&amp;lt;", "&lt;"),
        ("<@U012ABCDEF|worf>", "@worf"),
        ("<@U012ABCDEF|@worf>", "@worf"),
        ("<@U012ABCDEF>", "<@U012ABCDEF>"),
        ("<#C012|general>", "#general"),
        ("<#C012|>", "<#C012|>"),
        ("<!subteam^S0123|@team>", "@team"),
        ("<!subteam^S0123>", "<!subteam^S0123>"),
        ("<!channel>", "<!channel>"),
        ("<!channel|everybody>", "<!channel|everybody>"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<mailto:a@b.example>", "a@b.example"),
        ("<tel:+15550100|+1 (555) 0100>", "+1 (555) 0100"),
        ("<tel:+15550100|+15550100>", "+15550100"),
        ("<https://a.example/?x=1&amp;y=2>", "https://a.example/?x=1&y=2"),
        ("<https://a.example|a.example>", "a.example"),
        ("<http://a.example/|a.example>", "a.example"),
        ("<https://evil.example|trusted>", "<https://evil.example|trusted>"),
        ("1 < 2 > 0", "1 < 2 > 0"),
        ("&copy; &nbsp;", "&copy; &nbsp;"),
    ],
)
def test_markup_is_turned_back_into_what_was_typed(sent: str, typed: str) -> None:
    assert recover(sent) == typed


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("", []),
        (" \u00a0\u202f ,, ", []),
        ("add\u00a0welcome\u202f+1,+2 , +3", ["add", "welcome", "+1", "+2", "+3"]),
        ('"a b" c', ["a b", "c"]),
        ("\u201ca, b\u201d,c", ["a, b", "c"]),
        ("\u201ea b\u201c", ["a b"]),
        ("\u00aba b\u00bb", ["a b"]),
        ("\u2018a b\u2019 c", ["a b", "c"]),
        ("O\u2019Neil 'tis", ["O\u2019Neil", "'tis"]),
        ('"5" pipe" x', ["5", 'pipe"', "x"]),
        ('"5"pipe x" y', ['5"pipe x', "y"]),
        ('"open b', ['"open', "b"]),
        ("<tel:+15550100|+1 (555) 0100> x", ["+1 (555) 0100", "x"]),
        ('""', [""]),
        ("a\nb\tc", ["a", "b", "c"]),
    ],
)
def test_words_are_split_as_typed(sent: str, words: list[str]) -> None:
    assert texts(sent) == words


@given(st.text(max_size=300))
def test_typed_text_survives_slacks_escaping(text: str) -> None:
    assert recover(escaped(text)) == text


@given(st.text(max_size=200))
def test_any_text_is_read_and_nothing_is_invented(text: str) -> None:
    words = read_words(text, commas=True)
    assert all(word.is_quoted or (word.text and not word.text.isspace()) for word in words)
    ends = [word.end for word in words]
    assert ends == sorted(set(ends))
    assert all(end <= len(text) for end in ends)
