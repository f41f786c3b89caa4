"""Makes requests and presses buttons in drills, and checks the results.

card = await story.request("person:n1")
await story.press("U0APPROVER", card, "Approve", "applied")
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
    "pending": "Approve or deny?",
    "applied": "*Applied",
    "failed": "*Failed:",
    "denied": ":no_entry:",
    "cancelled": ":wastebasket:",
    "expired": ":alarm_clock:",
}
TOLD = {
    "applied": "*Applied",
    "failed": "*Failed:",
    "denied": "*Denied*",
    "expired": "*Expired*",
}
# What the requester's Home tab says about a request.
AT_HOME = {"pending": "Waiting for approval", "cancelled": "Cancelled", "applied": "Applied"}
TRUE_SECONDS = 30.0
IDENTITY = re.compile(r"person:n\d{4,}")
IS_UNDO = "Undoes "


@dataclass
class ExpectedRequest:
    """A request to add an identity, and the expected result of the request.

    No two requests add the same identity. `flow` is an alias. `state` is the expected state of the
    request. `undo` is the expected state of the undo request, or empty if there is no undo request.
    `says` is additional text that the card must show.
    """

    identity: str
    flow: str
    state: str = "pending"
    ended: bool = False
    undo: str = ""
    requester: str = REQUESTER
    says: str = ""

    @property
    def is_listed(self) -> bool:
        """Return True if the identity should be on the list."""
        return self.state == "applied" and self.undo != "applied" and not self.ended

    @property
    def times_applied(self) -> int:
        """Return how many times the requester should be told that a change was applied."""
        return [self.state, self.undo].count("applied")


@dataclass
class Story:
    """Keeps track of the requests and edits in a drill, and checks the results."""

    fleet: Fleet
    expected_requests: dict[str, ExpectedRequest] = field(default_factory=dict)
    outside: dict[str, list[str]] = field(default_factory=dict)
    cleared_alerts: set[str] = field(default_factory=set)
    has_homes: bool = False
    _numbers: count = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        self.outside = {name: list(self._flow(name).identities) for name in FLOWS}

    def new_identity(self) -> str:
        """Return an identity that has not been used before."""
        return f"person:n{next(self._numbers):04d}"

    async def request(self, identity: str = "", flow: str = "welcome", extra: str = "") -> Message:
        """Make a request to add an identity, and return the card."""
        identity = identity or self.new_identity()
        self.expected_requests[identity] = ExpectedRequest(identity, flow)
        answer = await self.fleet.ask(REQUESTER, "/testusers", f"add {flow} {identity} {extra}")
        assert "Sent to" in answer.all_text, answer.all_text
        return await self.card(identity)

    async def card(self, identity: str, seconds: float = TRUE_SECONDS) -> Message:
        """Wait for the card of a request."""
        found = await self.fleet.slack.until(lambda: self.cards(identity), timeout=seconds)
        return found[0]

    def cards(self, identity: str) -> list[Message]:
        """Return all cards of a request, except for cards of undo requests."""
        return [item for item in self._cards_by_identity().get(identity, []) if not is_undo(item)]

    async def undo_card(self, identity: str, seconds: float = TRUE_SECONDS) -> Message:
        """Wait for the card of an undo request."""

        def found() -> list[Message]:
            return [item for item in self._cards_by_identity().get(identity, []) if is_undo(item)]

        return (await self.fleet.slack.until(found, timeout=seconds))[0]

    def _cards_by_identity(self) -> dict[str, list[Message]]:
        found: dict[str, list[Message]] = {}
        for message in self.fleet.slack.workspace.messages(APPROVALS):
            for identity in set(IDENTITY.findall(message.all_text)):
                found.setdefault(identity, []).append(message)
        return found

    def _told_by_identity(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for user in {expected.requester for expected in self.expected_requests.values()}:
            for item in self.fleet.slack.workspace.dm(user):
                for identity in set(IDENTITY.findall(item.text)):
                    if user == self.expected_requests[identity].requester:
                        found.setdefault(identity, []).append(item.text)
        return found

    async def press(self, user: str, card: Message, button: str, becomes: str = "") -> Message:
        """Press a button, and return the reply that the person receives."""
        before = len(self.fleet.seen_by(user))
        delivery = await self.fleet.slack.click(user, card, button)
        if becomes:
            self.becomes(card, becomes)
        if delivery.status != 200:
            return Message(card.channel, "", "USLACKBOT", f"silence: {delivery.error}")
        return await self.fleet.answer(user, after=before, channel=card.channel)

    def becomes(self, card: Message, state: str) -> None:
        """Set the expected state of the request on a card."""
        self.of(card).state = state

    def of(self, card: Message) -> ExpectedRequest:
        """Return the request that a card shows."""
        return self.expected_requests[IDENTITY.findall(card.all_text)[0]]

    def edit(self, flow: str, identity: str) -> None:
        """Add an identity to a list, as if someone had edited the list in the vendor's console."""
        self.outside[flow].append(identity)
        flow_now = self._flow(flow)
        self.fleet.services.state.edit_flow(flow_now.sid, [*flow_now.identities, identity])

    def problems(self) -> list[str]:
        """Return all differences between the actual state and the expected state."""
        cards, told = self._cards_by_identity(), self._told_by_identity()
        return [
            *(p for name in FLOWS for p in self._list_problems(name)),
            *self._alert_problems(),
            *(self._home_problems() if self.has_homes else ()),
            *(
                problem
                for expected in self.expected_requests.values()
                for problem in (
                    *card_problems(expected, cards.get(expected.identity, [])),
                    *told_problems(expected, told.get(expected.identity, [])),
                )
            ),
        ]

    async def comes_true(self, seconds: float = TRUE_SECONDS) -> None:
        """Wait until everything is as expected."""
        try:
            await self.fleet.slack.until(lambda: not self.problems(), timeout=seconds)
        except AssertionError:
            problems = self.problems()
            assert not problems, "; ".join(problems)

    async def is_true(self) -> bool:
        """Return True if everything is as expected."""
        return not self.problems()

    @staticmethod
    def sid(name: str) -> str:
        """Return a flow's SID."""
        return FLOWS[name]

    def _flow(self, name: str) -> Flow:
        return self.fleet.services.state.flows[FLOWS[name]]

    def _alert_problems(self) -> list[str]:
        workspace = self.fleet.slack.workspace
        alerts = workspace.messages(ALERTS)
        problems = []
        for organization_id in self.cleared_alerts:
            mine = [alert for alert in alerts if organization_id in alert.all_text]
            notes = [note for item in mine for note in workspace.thread(ALERTS, item.ts)]
            if [len(mine), len(notes)] != [1, 1] or "Cleared" not in mine[0].text:
                problems.append(f"{organization_id}: {len(mine)} alerts, {len(notes)} notes")
        return problems

    def _home_problems(self) -> list[str]:
        """Return any problems with the Home tabs: a person's own clicks show there."""
        homes = self.fleet.slack.workspace.homes
        problems = [] if APPROVER in homes else ["the approver's tab wasn't published"]
        for expected in self.expected_requests.values():
            own = homes.get(expected.requester)
            if own is None or AT_HOME[expected.state] not in own.all_text:
                problems.append(f"{expected.identity}: is {expected.state}, not so at home")
        return problems

    def _list_problems(self, name: str) -> list[str]:
        applied = [
            expected.identity
            for expected in self.expected_requests.values()
            if expected.flow == name and expected.is_listed
        ]
        expected, listed = (
            sorted([*self.outside[name], *applied]),
            sorted(self._flow(name).identities),
        )
        if listed == expected:
            return []
        lacking = sorted(set(expected) - set(listed))
        return [f"{name}: lacks {lacking}, has besides {sorted(set(listed) - set(expected))}"]


def is_undo(card: Message) -> bool:
    """Return True if the card is for a request that undoes another request."""
    return IS_UNDO in card.all_text


def card_problems(expected: ExpectedRequest, cards: list[Message]) -> list[str]:
    """Return any problems with the cards of a request and its undo request."""
    undoing = [card for card in cards if is_undo(card)]
    asked = [card for card in cards if not is_undo(card)]
    if [len(asked), len(undoing)] != [1, int(bool(expected.undo))]:
        return [f"{expected.identity}: {len(asked)} cards, {len(undoing)} of undoing"]
    problems = one_card_problems(expected.identity, expected.state, asked[0])
    if expected.says not in asked[0].all_text:
        problems.append(f"{expected.identity}: the card does not say {expected.says!r}")
    return [*problems, *(p for item in undoing for p in undo_problems(expected, item, asked[0]))]


def one_card_problems(identity: str, state: str, card: Message) -> list[str]:
    """Return any differences between a card and the expected state of the card's request."""
    problems = []
    if MARKS[state] not in card.text:
        problems.append(f"{identity}: is {state}, the card says {card.text!r}")
    if ("Approve" in card.buttons) != (state == "pending"):
        problems.append(f"{identity}: buttons {card.buttons}")
    return problems


def undo_problems(expected: ExpectedRequest, undoing: Message, undone: Message) -> list[str]:
    """Return any problems with the card of an undo request or the card of the original request."""
    problems = one_card_problems(f"undo of {expected.identity}", expected.undo, undoing)
    says = "*Undone*" if expected.undo == "applied" else "*Undo requested*"
    if says not in undone.all_text or "Undo" in undone.buttons:
        problems.append(
            f"{expected.identity}: undo is {expected.undo}, not said: {undone.all_text!r}"
        )
    return problems


def told_problems(expected: ExpectedRequest, told: list[str]) -> list[str]:
    """Return any problems with the messages that the requester received."""
    messages = {TOLD[expected.state]: 1} if expected.state in TOLD else {}
    if expected.times_applied:
        messages[TOLD["applied"]] = expected.times_applied
    if expected.ended:
        messages["has ended"] = 1
    wrong = [
        word for word, times in messages.items() if sum(word in text for text in told) != times
    ]
    return [f"{expected.identity}: told {told}" for _ in wrong]
