"""The buttons that turn pages, and what they are worth."""

import pytest

from bot.slack.messages import paging


def labels(page: int, pages: int) -> dict[str, str]:
    shown = paging.turns("orgs.page", page, pages)
    return {button["text"]["text"]: button["value"] for button in shown}


@pytest.mark.parametrize(
    ("page", "pages", "expected"),
    [
        (0, 1, {}),
        (0, 2, {"Next": "1"}),
        (1, 2, {"Previous": "0"}),
        (0, 68, {"Next": "1", "Last": "67"}),
        (1, 68, {"Previous": "0", "Next": "2", "Last": "67"}),
        (40, 68, {"First": "0", "Previous": "39", "Next": "41", "Last": "67"}),
        (66, 68, {"First": "0", "Previous": "65", "Next": "67"}),
        (67, 68, {"First": "0", "Previous": "66"}),
    ],
)
def test_first_and_last_are_offered_where_they_are_further_away(page, pages, expected):
    assert labels(page, pages) == expected


def test_action_ids_of_turns_differ():
    ids = [button["action_id"] for button in paging.turns("orgs.page", 40, 68)]
    assert ids == ["orgs.page.first", "orgs.page.previous", "orgs.page.next", "orgs.page.last"]
