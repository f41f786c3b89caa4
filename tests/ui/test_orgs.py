"""The pages of `/orgs`."""

from datetime import UTC, datetime

import pytest

from bot.organizations.messages import OrgsPage, listing, problems
from bot.organizations.rules import DataCenterReport, Directory, Listing, Organization

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)


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
