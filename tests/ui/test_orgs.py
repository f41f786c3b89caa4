"""The pages of `/orgs`."""

from datetime import UTC, datetime

import pytest

from bot.organizations.messages import OrgsPage, listing, problems
from bot.organizations.rules import DataCenterReport, Directory, Listing, Organization
from bot.testusers.messages import pages

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


def a_directory(*names: str) -> Directory:
    organizations = tuple(
        Organization(organization_id=str(number), name=name) for number, name in enumerate(names)
    )
    return Directory((DataCenterReport("com", Listing("com", organizations, AT)),))


CENTERS = ("com", "eu", "in", "com.au", "jp", "ca", "com.cn", "sa")


@pytest.mark.parametrize("was_listed", [True, False])
def test_each_data_center_that_fails_is_named_even_if_all_do(was_listed):
    reports = []
    for center in CENTERS:
        organizations = (Organization(organization_id="1", name="x"),)
        known = Listing(center, organizations, AT) if was_listed else None
        reports.append(DataCenterReport(center, known, "It has not answered. " * 14))
    message = listing(Directory(tuple(reports)), OrgsPage(), may_refresh=True)
    shown = [block["text"]["text"] for block in message.slack_blocks if block["type"] == "section"]
    named = f":warning: *{', '.join(CENTERS)}* {'are out of date' if was_listed else 'could'}"
    assert [named in item for item in shown] == [False, True]
    assert named in message.text


@pytest.mark.parametrize("words", ["", "EUR"])
def test_nothing_that_could_be_loaded_is_not_nothing_that_matches(words):
    reports = tuple(DataCenterReport(center, None, "The database is away.") for center in CENTERS)
    message = listing(Directory(reports), OrgsPage(words), may_refresh=True)
    assert message.text.startswith("*No organizations could be loaded.*\n:warning: *com")
    assert "match" not in message.text
    assert " 0 " not in message.text


def test_data_centers_with_the_same_problem_share_a_line():
    known = Listing("com", (), AT)
    lines = problems(
        [
            DataCenterReport("com", known, "The inventory service (com) is down."),
            DataCenterReport("eu", None, "The inventory service (eu) is down."),
            DataCenterReport("in", None, "The inventory service (in) is down."),
            DataCenterReport("jp", None, "It is late."),
            DataCenterReport("sa", None),
        ]
    )
    assert [line.partition("*: ")[0] for line in lines][1:] == [
        ":warning: *eu, in* couldn't be loaded: The inventory service is down.",
        ":warning: *jp* couldn't be loaded: It is late.",
        ":warning: *sa* couldn't be loaded.",
    ]
    assert lines[0].startswith(":warning: *com* is out of date (from <!date^")


@pytest.mark.parametrize("may_refresh", [False, True])
def test_usage_under_no_match_is_what_the_person_may_type(may_refresh):
    shown = listing(a_directory("Northwind"), OrgsPage("zzz"), may_refresh=may_refresh).text
    assert "Usage: `/orgs &lt;text&gt; | show &lt;id or name&gt;" in shown
    assert ("refresh" in shown) is may_refresh


PAGES = ["1e400", "Infinity", "1" + "0" * 30, "-1", "[]", '"x"', "[" * 9000]


@pytest.mark.parametrize("page", PAGES, ids=range(len(PAGES)))
def test_page_that_a_forged_button_asks_for_is_one_there_may_be(page):
    assert 0 <= OrgsPage.of(f'{{"q": "", "p": {page}}}').page < 1_000_000
    assert 0 <= pages.FlowPage.of(f'{{"f": "x", "p": {page}}}').page < 1_000_000
