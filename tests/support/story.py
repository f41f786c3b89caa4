"""What people wished and did, and what must therefore be true: the model that drills compare with.

story = Story(fleet)
card = await story.request("person-1")
await story.press("U0APPROVER", card, "Approve", "applied")
await story.comes_true()
"""

import re
from dataclasses import dataclass, field
from itertools import count

from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW, Flow
from sandbox.slack.messages import Message
from tests.support.fleet import Fleet

REQUESTER, APPROVER, SECOND, ADMIN = "U0OPERATOR", "U0APPROVER", "U0APPROVER2", "U0ADMIN"
APPROVALS, ALERTS = "C0APPROVALS", "C0ALERTS"
FLOWS = {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW}
MARKS = {
    "pending": "Waiting for approval",
    "applied": ":white_check_mark:",
    "failed": ":x:",
    "denied": ":no_entry:",
    "cancelled": ":wastebasket:",
    "expired": ":alarm_clock:",
}
TOLD = {
    "applied": "is applied",
    "failed": "failed",
    "denied": "was denied",
    "expired": "has expired",
}
TRUE_SECONDS = 30.0
IDENTITY = re.compile(r"person-\d{4,}")


@dataclass
class Wish:
    """One request to add an identity, and what has to have become of it."""

    identity: str
    flow: str
    state: str = "pending"
    ended: bool = False


@dataclass
class Story:
    """Requests of one requester, each for one identity, and edits by others."""

    fleet: Fleet
    wishes: dict[str, Wish] = field(default_factory=dict)
    outside: dict[str, list[str]] = field(default_factory=dict)
    cleared_alerts: set[str] = field(default_factory=set)
    _numbers: count = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.outside = {name: list(self._flow(name).identities) for name in FLOWS}

    def new_identity(self) -> str:
        """A name that nobody had."""
        return f"person-{next(self._numbers):04d}"

    async def request(self, identity: str = "", flow: str = "welcome", extra: str = "") -> Message:
        """Ask to add somebody; return the card once it is there."""
        identity = identity or self.new_identity()
        self.wishes[identity] = Wish(identity, flow)
        answer = await self.fleet.ask(REQUESTER, "/testusers", f"add {flow} {identity} {extra}")
        assert "Requested in" in answer.all_text, answer.all_text
        return await self.card(identity)

    async def card(self, identity: str, seconds: float = TRUE_SECONDS) -> Message:
        """Return the card of a request once it is there."""
        found = await self.fleet.slack.until(lambda: self.cards(identity), timeout=seconds)
        return found[0]

    def cards(self, identity: str) -> list[Message]:
        """Every card that stands for a request."""
        return self._cards_by_identity().get(identity, [])

    def _cards_by_identity(self) -> dict[str, list[Message]]:
        found: dict[str, list[Message]] = {}
        for one in self.fleet.slack.workspace.messages(APPROVALS):
            for identity in set(IDENTITY.findall(one.text)):
                found.setdefault(identity, []).append(one)
        return found

    def _told_by_identity(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in self.fleet.slack.workspace.dm(REQUESTER):
            for identity in set(IDENTITY.findall(one.text)):
                found.setdefault(identity, []).append(one.text)
        return found

    async def press(self, user: str, card: Message, button: str, becomes: str = "") -> Message:
        """Press a button; return the answer to who pressed it."""
        before = len(self.fleet.seen_by(user))
        delivery = await self.fleet.slack.click(user, card, button)
        if becomes:
            self.becomes(card, becomes)
        if delivery.status != 200:
            return Message(card.channel, "", "USLACKBOT", f"silence: {delivery.error}")
        return await self.fleet.answer(user, after=before, channel=card.channel)

    def becomes(self, card: Message, state: str) -> None:
        """What has been done to a request must lead to this."""
        self.of(card).state = state

    def of(self, card: Message) -> Wish:
        """The wish that a card shows."""
        return self.wishes[IDENTITY.findall(card.text)[0]]

    def edit(self, flow: str, identity: str) -> None:
        """Somebody adds an identity in the service's own console."""
        self.outside[flow].append(identity)
        flow_now = self._flow(flow)
        self.fleet.services.state.edit_flow(flow_now.sid, [*flow_now.identities, identity])

    def problems(self) -> list[str]:
        """Everything that is not as it must be."""
        cards, told = self._cards_by_identity(), self._told_by_identity()
        return [
            *(p for name in FLOWS for p in self._list_problems(name)),
            *self._alert_problems(),
            *(
                problem
                for wish in self.wishes.values()
                for problem in (
                    *card_problems(wish, cards.get(wish.identity, [])),
                    *told_problems(wish, told.get(wish.identity, [])),
                )
            ),
        ]

    async def comes_true(self, seconds: float = TRUE_SECONDS) -> None:
        """Wait until everything is as it must be.

        Raises:
            AssertionError: It is not, in time; says what.
        """
        try:
            await self.fleet.slack.until(lambda: not self.problems(), timeout=seconds)
        except AssertionError:
            problems = self.problems()
            assert not problems, "; ".join(problems)

    async def is_true(self) -> bool:
        """Whether everything is as it must be now."""
        return not self.problems()

    @staticmethod
    def sid(name: str) -> str:
        """The SID of a flow."""
        return FLOWS[name]

    def _flow(self, name: str) -> Flow:
        return self.fleet.services.state.flows[FLOWS[name]]

    def _alert_problems(self) -> list[str]:
        workspace = self.fleet.slack.workspace
        alerts = workspace.messages(ALERTS)
        problems = []
        for organization_id in self.cleared_alerts:
            mine = [one for one in alerts if organization_id in one.all_text]
            notes = [note for one in mine for note in workspace.thread(ALERTS, one.ts)]
            if [len(mine), len(notes)] != [1, 1] or "Cleared" not in mine[0].text:
                problems.append(f"{organization_id}: {len(mine)} alerts, {len(notes)} notes")
        return problems

    def _list_problems(self, name: str) -> list[str]:
        applied = [
            wish.identity
            for wish in self.wishes.values()
            if wish.flow == name and wish.state == "applied" and not wish.ended
        ]
        expected, listed = (
            sorted([*self.outside[name], *applied]),
            sorted(self._flow(name).identities),
        )
        if listed == expected:
            return []
        lacking = sorted(set(expected) - set(listed))
        return [f"{name}: lacks {lacking}, has besides {sorted(set(listed) - set(expected))}"]


def card_problems(wish: Wish, cards: list[Message]) -> list[str]:
    """What is wrong with the cards of a request."""
    if len(cards) != 1:
        return [f"{wish.identity}: {len(cards)} cards"]
    problems = []
    if MARKS[wish.state] not in cards[0].text:
        problems.append(f"{wish.identity}: is {wish.state}, the card says {cards[0].text!r}")
    if ("Approve" in cards[0].buttons) != (wish.state == "pending"):
        problems.append(f"{wish.identity}: buttons {cards[0].buttons}")
    return problems


def told_problems(wish: Wish, told: list[str]) -> list[str]:
    """What is wrong with what the requester was told."""
    words = [TOLD[wish.state]] if wish.state in TOLD else []
    words += ["is over"] if wish.ended else []
    wrong = [word for word in words if sum(word in text for text in told) != 1]
    return [f"{wish.identity}: told {told}" for _ in wrong]
