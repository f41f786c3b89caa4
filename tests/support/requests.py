"""Generates random requests, and checks the messages about them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from bot.approvals.rules import State
from bot.flows.rules import Change, Flow, identities_problem, plain
from bot.testusers.messages.phrases import in_full
from bot.testusers.rules.people import Did, Over, RequestPerson
from bot.testusers.rules.requests import (
    Approval,
    Attempts,
    Request,
    Requested,
    Result,
    Round,
    Who,
)
from sandbox.slack.validation import UPDATE_TEXT, check_message

NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)

OTTO, ADA = Who("U0OTTO", "Otto <!here>"), Who("U0ADA", "Ada *Approver*")

FLOW = Flow("FW" + "ab" * 16, "welcome")

anything = st.text(min_size=1, max_size=300).filter(lambda text: identities_problem([text]) is None)

few = st.lists(anything, max_size=12, unique=True).map(tuple)

hardest = st.sampled_from(["&" * 300, "<" * 300, "`" * 300, "ש" * 150, "\u202e" * 100, "a\x00b"])


def settled(person: RequestPerson, did: Did, over: Over | None = None) -> RequestPerson:
    """Return a person for whom something came of a request."""
    is_made = did in {Did.MADE, Did.FOUND}
    end = person.end_at(NOW) if is_made else None
    return replace(person, did=did, did_at=NOW, ends_at=end, over=over, over_at=over and NOW)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    chosen = draw(st.lists(anything | hardest, min_size=1, max_size=25, unique_by=plain))
    while identities_problem(chosen):
        chosen.pop()
    cut = draw(st.integers(0, len(chosen)))
    hours = draw(st.none() | st.integers(0, 99))
    people = [
        RequestPerson.added(one, NOW + timedelta(hours=hours) if hours else None)
        for one in chosen[:cut]
    ]
    people += [RequestPerson.removed(one) for one in chosen[cut:]]
    state = draw(st.sampled_from(State))
    if state in {State.APPLIED, State.FAILED}:
        outcomes = draw(st.lists(st.sampled_from(Did), min_size=len(people), max_size=len(people)))
        people = [
            settled(person, did, draw(st.none() | st.sampled_from(Over)))
            for person, did in zip(people, outcomes, strict=True)
        ]
    outside = Change(draw(few)).then(Change((), draw(few)))
    reason = draw(st.sampled_from(["", "&" * 500, "<!channel> *x*", "שלום"]))
    expires_at = NOW + timedelta(hours=24)
    round_ = Round((Approval(ADA, NOW),), denial_reason=reason, decided_by=ADA, decided_at=NOW)
    return Request(
        "1",
        FLOW,
        OTTO,
        tuple(people),
        NOW,
        expires_at,
        Requested(reason),
        state=state,
        round=round_,
        attempts=Attempts(failure=reason),
        result=Result(NOW if state is State.APPLIED else None, 1, 2, outside),
    )


def texts_of(message) -> list[str]:
    def within(value):
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            # A button's value is never shown.
            for name, one in value.items():
                yield from within(one) if name != "value" else ()
        elif isinstance(value, list | tuple):
            for one in value:
                yield from within(one)

    return [message.text, *within([dict(block) for block in message.slack_blocks])]


def hold(message, *, may_mention: bool = False) -> None:
    payload = message.payload()
    check_message(payload["text"], payload.get("blocks"), most_text=UPDATE_TEXT)
    for shown in texts_of(message):
        assert "<!" not in shown.replace("<!date^", "").replace("<!subteam^S", "")
        assert may_mention or ("<@" not in shown and "<!subteam" not in shown)


def everybody(request: Request) -> list[str]:
    return [person.identity for person in request.people]


def shown_in_full(identities, message) -> list[str]:
    """Return the identities that a message shows in full."""
    everything = "\n".join(texts_of(message))
    return [
        identity for identity in identities if len(identity) > 4 and in_full(identity) in everything
    ]
