"""The demo: a rule that needs no second person, and a week in which 20 people ask.

Most requests of a team that tests drafts are somebody's own number for a few hours. The flow
`practice` takes those by a rule; the two flows that customers use wait for a second person.
"""

import json
from collections.abc import Iterator

from sandbox.people import Person

PRACTICE_FLOW = "FW00000000000000000000000000000003"
TESTERS = "S0TESTERS"
FLOW_POLICIES = json.dumps(
    {"practice": {"auto": {"from": [TESTERS], "longest": "4h", "a_day": 5}, "auto_remove": True}}
)
WORKDAYS = range(5)


def testers() -> list[Person]:
    """Return the 20 people of the week."""
    return [
        Person(f"U0TESTER{number:02}", f"tess{number}", f"Tess Tester {number}", "operator")
        for number in range(20)
    ]


def requests(day: int) -> Iterator[tuple[Person, str]]:
    """Yield who asks for what on a workday, as text of `/testusers`.

    Everybody tries a draft, every third person leaves early, and three bring in somebody else.
    """
    for number, person in enumerate(testers()):
        own = f"+1555300{number:04}"
        yield person, f"add practice {own} for 2h because trying a draft"
        if number % 3 == day % 3:
            yield person, f"remove practice {own}"
        if number % 7 == day:
            flow = ("welcome", "survey")[number % 2]
            yield person, f"add {flow} +1555400{number:03}{day} for 3d because a colleague joins in"
