"""Knows from people's clicks which changes to the lists are allowed."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sandbox.services.state import SURVEY_FLOW, WELCOME_FLOW, Flow
from sandbox.slack.messages import Message
from tests.support.world import ABEL, ADA, ADAM, OTTO

FLOWS = {"welcome": WELCOME_FLOW, "survey": SURVEY_FLOW}
NEEDED = {"welcome": 1, "survey": 2}
APPROVERS = frozenset({ADA, ABEL, ADAM})
IDS = {"Otto Operator": OTTO, "Ada Approver": ADA, "Abel Approver": ABEL, "Adam Admin": ADAM}
HEAD = re.compile(
    r"\*([^*]+)\* (?:wants|asked) to (?P<what>.*(?:to|on|from) \*(?P<flow>welcome|survey)\*.*)"
)
GROUP = re.compile(r"\*(Add|Keep|Remove)\b(.*)\(\d+\):\*")
IDENTITY = re.compile(r"`([^`]+)`")
UNTIL = re.compile(r"until <!date\^(\d+)\^")
LASTS = re.compile(r"(\d+) (s|min|h)\b")
APPLIED = re.compile(r"applied <!date\^(\d+)\^")
SECONDS = {"s": 1, "min": 60, "h": 3600}
OVER = (":no_entry:", ":wastebasket:", ":alarm_clock:")
# Dates are shown in whole seconds, and a click takes a while.
ROUNDING = 5.0


@dataclass(frozen=True)
class Effect:
    """What a card says of one person. Access has an `end`, lasts `seconds`, or doesn't end."""

    verb: str
    end: int | None = None
    seconds: int | None = None


@dataclass
class Card:
    """A request as its card shows it now."""

    flow: str
    requester: str
    effects: dict[str, Effect]
    state: str
    applied_at: int | None
    text: str


def read(message: Message) -> Card | None:
    """Return what a card says, or None if the message isn't a request's card."""
    text = message.all_text.removeprefix(message.text).strip()
    head = HEAD.search(text)
    if head is None:
        return None
    lines = text[head.end() :].split("\n")
    said, effects = head["what"], dict[str, Effect]()
    for line in lines:
        if group := GROUP.match(line):
            said = group[1].lower() + group[2]
        elif line.startswith("`"):
            for identity in IDENTITY.findall(line):
                effects[identity] = effect(said)
        elif effects and not line.startswith("*"):
            break
    applied = APPLIED.search(text)
    return Card(
        head["flow"],
        IDS[head[1]],
        effects,
        text.split()[0],
        int(applied[1]) if applied else None,
        text,
    )


def effect(said: str) -> Effect:
    """Return the effect that a phrase describes."""
    verb, said = said.split(maxsplit=1)[0], said.split("(currently", maxsplit=1)[0]
    if until := UNTIL.search(said):
        return Effect(verb, end=int(until[1]))
    lasts = [int(number) * SECONDS[unit] for number, unit in LASTS.findall(said)]
    return Effect(verb, seconds=sum(lasts) or None)


@dataclass
class Allowed:
    """The effects that approvers have agreed to with their clicks on one card."""

    card: Message
    flow: str
    clicks: dict[str, list[tuple[datetime, dict[str, Effect]]]] = field(default_factory=dict)

    def of(self, identity: str) -> list[tuple[datetime, Effect]]:
        """Return the effects on a person that enough approvers saw, and when they clicked."""
        seen = [
            (who, at, effects[identity])
            for who, clicks in self.clicks.items()
            for at, effects in clicks
            if identity in effects
        ]
        enough = NEEDED[self.flow]
        return [
            (at, one)
            for _, at, one in seen
            if len({who for who, _, other in seen if other == one}) >= enough
        ]


class Model:
    """Collects what people do, what changes on the lists, and what was wrong about it."""

    def __init__(self, now: Any) -> None:
        self.now = now
        self.problems: list[str] = []
        self.history: list[str] = []
        self.allowed: dict[str, Allowed] = {}
        self.outside: dict[str, Counter[str]] = defaultdict(Counter)
        self.changes: dict[str, Counter[str]] = defaultdict(Counter)
        # Other people's edits, which the bot can't see between its read and its update.
        self.edited_at: dict[tuple[str, str], datetime] = {}

    def approves(self, who: str, message: Message) -> None:
        """Note that a person clicks `Approve` on a card as it is shown now."""
        card = read(message)
        if card is None or who not in APPROVERS or who == card.requester:
            return
        allowed = self.allowed.setdefault(message.ts, Allowed(message, card.flow))
        allowed.clicks.setdefault(who, []).append((self.now(), card.effects))

    def asks_now(self, flow: str, effects: dict[str, Effect], name: str) -> None:
        """Note that an admin applies a change without approval."""
        message = Message("", name, "")
        self.allowed[name] = Allowed(message, flow)
        for who in sorted(APPROVERS):
            self.allowed[name].clicks[who] = [(self.now(), effects)]

    def edits(self, flow: str, before: list[str], after: list[str]) -> None:
        """Note a change in the vendor's console."""
        self.history.append(f"{self.now():%M:%S} edit {flow} {after}")
        for sign, identities in (("+", {*after} - {*before}), ("-", {*before} - {*after})):
            for identity in identities:
                self.outside[flow][sign + identity] += 1
                self.edited_at[flow, identity] = self.now()

    def posts(self, flow: str, before: list[str], after: list[str]) -> None:
        """Check a change by the bot at the moment at which the service stores it."""
        self.history.append(f"{self.now():%M:%S} post {flow} {after}")
        if len(set(after)) != len(after):
            self.problems.append(f"{flow}: twice on the list: {after}")
        for identity in {*after} - {*before}:
            self._check(flow, identity, "+")
        for identity in {*before} - {*after}:
            self._check(flow, identity, "-")

    def _check(self, flow: str, identity: str, sign: str) -> None:
        self.changes[flow][sign + identity] += 1
        possible = self._possible(flow, identity, sign)
        if self.changes[flow][sign + identity] > possible:
            said = [
                (item.card.all_text[:200], item.clicks)
                for item in self.allowed.values()
                if item.flow == flow and item.of(identity)
            ]
            self.problems.append(f"{flow}: {sign}{identity} isn't allowed; there is {said}")

    def _possible(self, flow: str, identity: str, sign: str) -> int:
        """Return how often the bot may have made a change by now."""
        total = 0
        for item in self.allowed.values():
            effects = item.of(identity) if item.flow == flow else []
            total += any(self._makes(one, at, sign) for at, one in effects)
        # An edit can undo a change that the bot has already read, or is just making.
        other = "-" if sign == "+" else "+"
        return total + self.outside[flow][other + identity]

    def _makes(self, one: Effect, at: datetime, sign: str) -> bool:
        if sign == "+":
            return one.verb != "remove"
        if one.verb == "remove":
            return True
        end = one.end or (one.seconds and at.timestamp() + one.seconds)
        return bool(end) and end <= self.now().timestamp() + ROUNDING


class WatchedFlow(Flow):
    """A flow that tells the model of each change to its list."""

    def watch(self, alias: str, model: Model) -> None:
        """Tell the model of all changes from now on."""
        self.alias, self.model, self.is_edit = alias, model, False

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute, and tell the model if the list changes."""
        if name == "identities" and "is_edit" in self.__dict__:
            tell = self.model.edits if self.is_edit else self.model.posts
            tell(self.alias, list(self.identities), list(value))
        super().__setattr__(name, value)

    def edit(self, identities: list[str]) -> None:
        """Change the list as someone in the vendor's console does."""
        self.is_edit = True
        self.identities = identities
        self.is_edit = False
