"""No matter how people type an identity, the bot either reads it correctly or refuses it."""

from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.errors import UsageError
from bot.flows.rules import identities_problem
from bot.slack.parse import escaped
from bot.testusers.parse.command import (
    ChangeRequest,
    Prefilled,
    Subcommand,
    as_line,
    parse_form,
    parse_testusers,
)
from handlers.conversation import command_in, unwrapped

VALUE = st.from_regex(r"[A-Za-z0-9&+_.*~`-]{1,20}", fullmatch=True)
PHONES = st.from_regex(r"\+[0-9]{1,15}", fullmatch=True)
SCHEMES = st.builds("{}:{}".format, st.sampled_from(("chat", "whatsapp", "sip")), VALUE)
EMAILS = st.from_regex(r"[a-z0-9][a-z0-9'_.+&-]{0,8}@[a-z]{1,5}\.[a-z]{2,3}", fullmatch=True)
QUOTABLE = st.text(min_size=1, max_size=20).filter(
    lambda text: not set(text) & set('\n"\u201c\u201d\u201e\u201f\u00ab\u00bb')
)
IDENTITIES = PHONES | SCHEMES | EMAILS
DECORATIONS = st.sampled_from(
    ["{}", "*{}*", "_{}_", "~{}~", "`{}`", "*_{}_*", "({})", "{}.", "{},", " {} ", "\u200b{}\u200b"]
)


def marked(identity: str) -> str:
    """Escape the identity and add link markup, as Slack does."""
    sent = escaped(identity)
    if identity.startswith("+"):
        return f"<tel:{sent}|{sent}>"
    return f"<mailto:{sent}|{sent}>" if "@" in identity else sent


def marked_inside(identity: str) -> str:
    """Add link markup only to the part after the scheme, as Slack sometimes does."""
    scheme, colon, value = identity.rpartition(":")
    return f"{scheme}{colon}{marked(value)}"


def of_command(text: str) -> tuple[str, ...]:
    try:
        typed = parse_testusers(text)
    except UsageError:
        return ()
    return typed.identities if isinstance(typed, ChangeRequest | Subcommand) else ()


def of_form(line: str) -> tuple[str, ...]:
    typed = parse_form(Prefilled("welcome", lines=(line,)))
    return typed.identities if isinstance(typed, ChangeRequest) else ()


def allowed(identity: str, decoration: str) -> set[tuple[str, ...]]:
    """Return the acceptable results: a refusal, the identity, or the unchanged text."""
    whole = decoration.format(identity).strip(" ,;\u200b")
    return {(), (identity,), (whole,)}


@given(IDENTITIES, DECORATIONS, st.sampled_from([escaped, marked, marked_inside]))
def test_decoration_never_makes_another_identity(identity, decoration, as_sent):
    sent = as_sent(identity)
    decorated = decoration.format(sent)
    expected = allowed(identity, decoration)
    assert of_command(f"remove welcome {decorated}") in expected
    assert of_command(f"preset save team {decorated}") in expected
    assert of_form(decoration.format(identity)) in expected


@given(IDENTITIES, st.sampled_from(["{}", "*{}*", "_{}_", "~{}~", "`{}`", "```{}```"]))
def test_formatting_of_a_direct_message_never_makes_another_identity(identity, decoration):
    written = decoration.format(f"testusers remove welcome {escaped(identity)}")
    first, text = command_in(written, "U0BOT")
    if first == "testusers":
        assert of_command(text) in {(), (identity,)}


@pytest.mark.parametrize("mark", ["*", "_", "~", "`"])
@pytest.mark.parametrize("after", [" ", ", ", "\n"])
def test_mark_that_ends_inside_a_direct_message_does_not_wrap_it(mark, after):
    text = f"{mark}testusers remove welcome chat:bob{mark}{after}chat:ada{mark}"
    assert unwrapped(text) == text


@given(IDENTITIES | QUOTABLE)
def test_identity_in_quotes_is_exact(identity):
    if not identities_problem((identity,)):
        assert of_command(f'remove welcome "{escaped(identity)}"') == (identity,)
        assert of_form(f'"{identity}"') == (identity,)


@given(IDENTITIES | QUOTABLE)
def test_form_that_is_filled_in_holds_the_same_identity(identity):
    if not identities_problem((identity,)):
        assert of_form(as_line(identity)) == (identity,)


@pytest.mark.parametrize(
    "written",
    [
        *("orgs show 1", "/orgs show 1", " ORGS show 1 ", "*orgs* show 1", "`/orgs` show 1"),
        *("`orgs show 1`", "```orgs show 1```", "```\norgs show 1\n```", "*_orgs show 1_*"),
        *("<@U0BOT> orgs show 1", "<@U0BOT|gatehouse>: orgs show 1", "@Gatehouse orgs show 1"),
        *("*<@U0BOT> orgs show 1*", "<@U0BOT>, `orgs show 1`", "&gt; orgs show 1", "• orgs show 1"),
        *(
            "\u200borgs show 1\ufeff",
            "\u202aorgs\u202c show 1",
            "\u00a0orgs show 1",
        ),
    ],
)
def test_command_is_found_in_a_message(written):
    assert command_in(written, "U0BOT") == ("orgs", "show 1")


@pytest.mark.parametrize("written", ["", " ", "*", "<@U0BOT>", "\u200b", "``", "<@U0OTHER> orgs"])
def test_message_without_a_command_has_none(written):
    assert command_in(written, "U0BOT")[0] != "orgs"


SEPARATORS = st.sampled_from(
    [" ", ", ", ",", "; ", ";", "\n", "\u00a0", "\u202f", " \u2014 ", "\n\u2022 ", "\n- ", " & "]
)
AROUND = st.sampled_from(
    ["{}", "\u201c{}\u201d", "\u201e{}\u201c", "\u00ab{}\u00bb", "'{}'", "{};", "1. {}"]
)
PEOPLE = st.lists(
    st.tuples(IDENTITIES, DECORATIONS | AROUND, st.sampled_from([escaped, marked, marked_inside])),
    min_size=1,
    max_size=6,
    unique_by=itemgetter(0),
)


def kept(error: UsageError) -> str:
    """Return the people that the form's button and the texts to copy contain, one after another."""
    unsent = error.unsent
    assert unsent is not None
    return "".join([*Prefilled.of(unsent.value).lines, *unsent.texts])


@given(PEOPLE, SEPARATORS)
def test_a_list_arrives_unchanged_or_is_refused_and_kept(people, separator):
    sent = separator.join(decoration.format(mark(item)) for item, decoration, mark in people)
    identities = of_command(f"remove welcome {sent}")
    if not identities:
        with pytest.raises(UsageError) as error:
            parse_testusers(f"remove welcome {sent}")
        assert [item for item, *_ in people if item not in kept(error.value)] == []
        return
    for identity, (item, decoration, _) in zip(identities, people, strict=True):
        assert (identity,) in allowed(item, decoration)


@given(PEOPLE)
def test_a_form_with_lines_arrives_unchanged_or_is_refused(people):
    lines = tuple(decoration.format(item) for item, decoration, _ in people)
    parsed = parse_form(Prefilled("welcome", "remove", lines=lines))
    if isinstance(parsed, ChangeRequest):
        for identity, (item, decoration, _) in zip(parsed.identities, people, strict=True):
            assert (identity,) in allowed(item, decoration)
