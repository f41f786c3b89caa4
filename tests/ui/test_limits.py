"""Tests that messages stay within Slack's limits, even with very long or unusual data.

The text of a message must also make sense without the message's blocks.
"""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import __version__
from bot.audit import messages as audit
from bot.checks import messages as checks
from bot.checks.rules import Finding, JobCount, Part, Status, Trouble
from bot.commands import COMMANDS
from bot.errors import Ambiguous, NotFound, UsageError
from bot.gatehouse import whoami
from bot.organizations import messages as orgs
from bot.organizations.rules import DataCenterReport, Directory, Listing, Organization
from bot.permissions import Person, Role
from bot.services.calls import ServiceSeen
from bot.slack.messages import ids, replies, text
from bot.slack.messages.block_kit import Message, Wanted
from bot.store.audit_entry import RecordedEntry
from sandbox.slack.validation import UPDATE_TEXT, check_message

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CENTERS = ("com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa")
NASTY = [
    "&" * 300,
    "<!channel>" * 30,
    "نور" * 100,
    "`*_~" * 75,
    "x" * 300,
    "\u202e" * 300,
    "😀" * 300,
]
anything = st.text(max_size=400) | st.sampled_from(NASTY)


def check(message: Message) -> None:
    payload = message.payload()
    check_message(payload["text"], payload.get("blocks"), most_text=UPDATE_TEXT)
    assert len(message.slack_blocks) <= 50


def words_of(message: Message) -> str:
    """Return the text in a message's context blocks."""
    contexts = [block for block in message.slack_blocks if block["type"] == "context"]
    return "\n".join(part["text"] for block in contexts for part in block["elements"])


def ids_in(message: Message) -> list[str]:
    """Return the IDs of the organizations that a message lists."""
    (table,) = [block for block in message.slack_blocks if block["type"] == "table"]
    return [row[1]["text"] for row in table["rows"][1:]]


def ids_of(places) -> list[str]:
    return [place.organization.organization_id for place in places]


def organization(number: int, name: str, words: str | None = None) -> Organization:
    return Organization(
        organization_id=str(10**9 + number),
        name=name,
        contact_name=words,
        email=words,
        currency_code=words,
        currency_symbol=words,
        currency_format=words,
        time_zone=words,
        language_code=words,
        account_created_date=words,
        currency_id=words,
        fiscal_year_start_month=11,
        price_precision=2,
    )


def many(names: list[str], count: int, failure: str | None = None) -> Directory:
    """Return a directory of `count` organizations whose names are taken in turn from `names`."""
    each = count // len(CENTERS)
    return Directory(
        tuple(
            DataCenterReport(
                center,
                Listing(
                    center, tuple(organization(n, names[n % len(names)]) for n in range(each)), AT
                ),
                failure,
            )
            for center in CENTERS
        )
    )


def test_two_thousand_organizations_with_long_names_fit():
    directory = many(NASTY, 2_000, failure="It broke: " + NASTY[0])
    for page in (*range(0, 133, 10), 133, 10**9):
        message = orgs.listing(directory, Wanted("", page), may_refresh=True)
        check(message)
        number = min(page, 133) + 1
        assert f"Page {number} of 134" in words_of(message)
        assert ids_in(message) == ids_of(directory.places[15 * number - 15 : 15 * number])
    for name in NASTY:
        check(orgs.listing(directory, Wanted(name[:200], 3), may_refresh=True))
    for place in directory.places[:: len(directory.places) // 20]:
        check(orgs.one(place, directory.reports[0]))


@given(name=anything, words=anything, failure=anything)
def test_a_list_and_one_organization_with_any_texts(name, words, failure):
    report = DataCenterReport(
        "eu", Listing("eu", tuple(organization(n, name, words) for n in range(20)), AT), failure
    )
    directory = Directory((report, DataCenterReport("jp", None, failure)))
    check(orgs.listing(directory, Wanted(words[:200], 1), may_refresh=True))
    everything = orgs.listing(directory, Wanted(), may_refresh=False)
    check(everything)
    assert "Page 1 of 2" in words_of(everything)
    assert ids_in(everything) == ids_of(directory.places[:15])
    check(orgs.one(directory.places[0], report))


@given(st.text() | st.sampled_from(['{"q": 1, "p": "x"}', "[]", "7", '{"q": "a", "p": -1}']))
def test_any_value_of_a_button_is_a_view_or_outdated(value):
    with suppress(NotFound):
        view = Wanted.of(value)
        assert view.page >= 0
        assert Wanted.of(view.value()) == view


def test_a_page_of_earlier_versions_is_read():
    assert Wanted.of('{"q": "wing", "p": 2}') == Wanted("wing", 2)
    # A button of /testusers list from version 0.3.0.
    assert Wanted.of('{"f":"welcome","p":1,"t":"ada"}') == Wanted("ada", 1, "welcome")


@pytest.mark.parametrize("is_allowed", [True, False])
def test_help_fits_into_a_message_and_is_not_cut_off(is_allowed):
    for message in (
        replies.help_of_all(lambda _: is_allowed),
        *(replies.help_of(command, lambda _: is_allowed) for command in COMMANDS),
    ):
        check(message)
        shown = "\n".join(block["text"]["text"] for block in message.slack_blocks)
        # Nothing is cut off in either text.
        assert message.text == shown


@given(anything)
def test_errors(words):
    choices = {f"eu/{number}": words for number in range(10)}
    for error in (
        NotFound(words),
        UsageError(words, "/orgs show <id or name>", "/orgs show 7"),
        Ambiguous(words, choices),
    ):
        message = replies.sorry(error)
        check(message)
        check(replies.with_retry(message, "orgs.refresh", "x"))
        if isinstance(error, UsageError):
            assert "Usage: `/orgs show &lt;id or name&gt;`" in message.text
            assert message.text.endswith("Example: `/orgs show 7`")
    check(replies.broken("abc"))


@pytest.mark.parametrize("name", NASTY, ids=lambda name: ascii(name[:5]))
def test_menu_of_candidates_fits_and_tells_them_apart(name):
    directory = many(["Acme " + name], 160)
    with pytest.raises(Ambiguous) as caught:
        directory.find("acme")
    message = replies.choice(caught.value, ids.ORGS_SHOW)
    check(message)
    (menu,) = message.slack_blocks[-1]["elements"]
    shown = [option["text"]["text"] for option in menu["options"]]
    paths = [option["value"] for option in menu["options"]]
    assert len(set(paths)) == 10
    assert all(path in text for path, text in zip(paths, shown, strict=True))


def entry(position: int, words: str) -> RecordedEntry:
    detail = words * 3
    return RecordedEntry(position, AT, "U0ADA", "request.approved", words[:255], detail, "0", "f")


@given(st.lists(anything, max_size=50))
def test_the_audit_shows_the_number_of_its_entries(texts):
    names = {"U0ADA": "Ada " * 30}
    message = audit.audit([entry(n, words) for n, words in enumerate(texts)], "f" * 64, names)
    check(message)
    if texts:
        shown = sum(
            line.startswith("• #")
            for block in message.slack_blocks
            if block["type"] == "section"
            for line in block["text"]["text"].splitlines()
        )
        assert f"Last {shown} audit entr" in message.text
        assert ("has no room for more" in message.text) is (shown < len(texts))
        assert "`gatehouse audit verify --head`" in message.text


@given(anything)
def test_whoami_and_status(words):
    person = Person("U0ADA", words, frozenset(Role), doubt=words)
    for may in (True, False):
        me = whoami(person, lambda _, may=may: may)
        check(me)
        assert f"You are *{text.escape(words, 80)} (U0ADA)*." in me.text
    services = [ServiceSeen(f"inventory ({center})", AT, AT, words) for center in CENTERS]
    status = Status(1e7, "SQLite", services, JobCount(9, 9, 9), {"open_incidents": 3}, (), ())
    message = checks.status(status)
    check(message)
    assert message.text.count(": OK · last success") == len(services)


def test_status_says_what_works_and_what_failed():
    seen = ServiceSeen("inventory (eu)", AT, AT + timedelta(hours=1), "timeout", is_failing=True)
    said = checks.status(Status(90, "SQLite", [seen], None, {}, (), ())).text
    assert f"Gatehouse {__version__}, up 1 min 30 s" in said
    assert "SQLite database: *unreachable*" in said
    assert "inventory (eu): *failing* · last success" in said
    assert said.startswith(":warning: *Needs attention:* the database, inventory (eu).")


@pytest.mark.parametrize(
    ("jobs", "blocked", "thing"),
    [
        (JobCount(1, 1, 1), [], "late jobs"),
        (JobCount(0, 0, 0), ["Cactus & Co", "Acme"], "Cactus &amp; Co is blocked, Acme is blocked"),
    ],
)
def test_status_says_what_needs_a_look(jobs, blocked, thing):
    status = Status(90, "SQLite", (), jobs, {}, (), blocked)
    assert checks.status(status).text.startswith(f":warning: *Needs attention:* {thing}.")


def recorded(action, subject="bf98ce60cf6ef7ea", actor="U0ADA", **detail):
    return RecordedEntry(1, AT, actor, action, subject, json.dumps(detail), "0", "f")


WELCOME = "FW00000000000000000000000000000001"
NAMES = {"U0ADA": "Ada", "U0OTTO": "Otto", WELCOME: "welcome"}
CHANGE = {"flow": WELCOME, "additions": ["+1", "+2", "+3", "+4"], "removals": []}


@pytest.mark.parametrize(
    ("entry", "line"),
    [
        (
            recorded("request.created", actor="U0OTTO", **CHANGE, reason="demo", undo_of=None),
            (
                "*Otto* asked for a change to *welcome* (request `bf98ce60cf6ef7ea`) ·"
                " additions: `+1`, `+2`, `+3` and 1 more · reason: `demo`"
            ),
        ),
        (
            recorded("request.applied", actor="gatehouse", **CHANGE, approvers=["U0ADA"]),
            (
                "Gatehouse applied a change to *welcome* (request `bf98ce60cf6ef7ea`) ·"
                " additions: `+1`, `+2`, `+3` and 1 more · approvers: *Ada*"
            ),
        ),
        (
            recorded("flow.sent", WELCOME, actor="gatehouse", before=[], after=["+1"]),
            "Gatehouse sent *welcome* a new list of test users · after: `+1`",
        ),
        (
            recorded("flow.changed", WELCOME.lower(), actor="gatehouse", before=[], after=["+1"]),
            "The test users of *welcome* changed · after: `+1`",
        ),
        (
            recorded("permission.refused", "set_plan", reason="role_too_low"),
            "*Ada* was denied the permission `set_plan` · reason: `role_too_low`",
        ),
        (
            RecordedEntry(1, AT, "U0", "thing.happened", "eu/7", "not JSON", "0", "f"),
            "`U0`: thing.happened `eu/7` · detail: `not JSON`",
        ),
    ],
    ids=lambda item: getattr(item, "action", ""),
)
def test_an_entry_of_the_audit_is_one_sentence(entry, line):
    message = audit.audit([entry], "f", NAMES)
    check(message)
    assert message.text.splitlines()[1].endswith(f" – {line}")


def test_only_an_admin_reads_the_drivers_words_in_the_status():
    since = datetime(2026, 11, 20, tzinfo=UTC)
    words = ("Ask whoever runs Gatehouse.", "The role is missing.")
    trouble = Trouble(Part.DATABASE, Finding(Part.DATABASE, "database_refused", *words), since)
    report = Status(90, "PostgreSQL", [], None, {}, [trouble], ())
    assert "The role is missing" in checks.status(report, is_for_admin=True).text
    others = checks.status(report).text
    assert "The role is missing" not in others
    assert "Ask whoever runs Gatehouse" in others
