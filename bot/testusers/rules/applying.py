"""Plans for a flow's next list, and rules for retries and for POSTs in doubt.

A plan combines all approved changes into one list, and is stored before the list is sent. A POST is
in doubt while its outcome is unknown. During that time, the bot only reads the flow's list and
sends no other update.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from http import HTTPStatus

from bot.approvals.rules import State
from bot.errors import GatehouseError, NotConfigured
from bot.flows.rules import (
    Change,
    FlowList,
    Spellings,
    apply_change,
    difference,
    outside_edits,
    plain,
    stored_spellings,
)
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    Redirected,
    ResponseUnreadable,
    ServiceError,
    ServiceFailed,
    ServiceRefused,
    ServiceTimeout,
    ServiceUnreachable,
)
from bot.testusers.rules.people import Access, Did, Effect, RequestPerson, Wants, change_of
from bot.testusers.rules.requests import Request

IN_DOUBT = timedelta(seconds=60)
"""If a POST gets no response, it either takes effect within this time or never does."""


@dataclass(frozen=True)
class Step:
    """A request in a plan, and the changes that other people have made since its making."""

    request_id: str
    outside: Change


@dataclass(frozen=True)
class ListChangePlan:
    """A planned change to a list, which combines requests and expired access.

    Its POST is in doubt from the time `at`, when the plan is made and stored, until its outcome is
    known.

    Attributes:
        over: The people whose access has run out, as the list spells them.
        is_answered: True if the service responded with an error or a different list. It has then
            finished processing the POST, so the next read of the list shows the outcome.
    """

    id: str
    at: datetime
    before: FlowList
    change: Change
    steps: tuple[Step, ...]
    over: tuple[str, ...] = ()
    is_answered: bool = False

    @property
    def after(self) -> tuple[str, ...]:
        """The list to send."""
        return apply_change(self.before.identities, self.change)

    @property
    def request_ids(self) -> list[str]:
        """The IDs of the requests in the plan."""
        return [step.request_id for step in self.steps]

    def spellings_on(
        self, listed: Collection[str], *, is_answer: bool = False
    ) -> Mapping[str, str]:
        """Map each added identity that the list spells differently to the list's spelling.

        An entry whose person was on the list before the change is never such a spelling. In the
        answer to the plan's own POST (`is_answer`), one unknown entry in place of one missing
        identity is its spelling, however different it looks.
        """
        missing = self.change.without(listed).additions
        before = Spellings(self.before.identities)
        new = [one for one in self.unknown_in(listed, {}) if not before.of(one)]
        if is_answer and len(missing) == len(new) == 1:
            return {missing[0]: new[0]}
        return stored_spellings(missing, new)

    def unclear_in(self, listed: Collection[str], spellings: Mapping[str, str]) -> list[str]:
        """Return the unknown entries of a list that might be missing additions in another form."""
        added = self.change.spelled(spellings).additions
        return [] if {*added} <= {*listed} else self.unknown_in(listed, spellings)

    def unknown_in(self, listed: Collection[str], spellings: Mapping[str, str]) -> list[str]:
        """Return the entries that weren't on the list before and weren't sent."""
        known = {*self.before.identities, *self.after, *spellings.values()}
        return [identity for identity in listed if identity not in known]

    @property
    def ends_at(self) -> datetime:
        """The time after which the POST can no longer take effect."""
        return self.at + IN_DOUBT

    def is_in_the_air(self, at: datetime) -> bool:
        """Return True if the service may still carry out the POST after this time."""
        return not self.is_answered and at < self.ends_at

    def is_settled_by(self, listed: Sequence[str], at: datetime) -> bool:
        """Return True if a list that was read after `at` shows the POST's final outcome."""
        change = self.change.spelled(self.spellings_on(listed))
        return not self.is_in_the_air(at) or change.shown_in(listed) == change

    def in_doubt_after(self, error: GatehouseError) -> "ListChangePlan | None":
        """Return the plan if this error leaves its outcome unknown, or None if the POST failed."""
        if isinstance(error, (ServiceUnreachable, ServiceTimeout)):
            return self if error.sent else None
        if isinstance(error, ServiceError) and error.status in _UNCLEAR_STATUSES:
            return self
        if isinstance(error, (*_FINAL, RateLimited)):
            return None
        return replace(self, is_answered=True)


OTHER_ENTRIES = "The list has other entries than the ones I sent."


class StoredOtherwise(ResponseUnreadable):
    """The list has entries that neither stood there before nor were sent."""

    def __init__(self, listed: Collection[str], unknown: Collection[str]) -> None:
        others = f"Entries that I don't recognize: {len(unknown):,} of {len(listed):,}."
        cause = "Each unknown entry was either respelled by the service or added by someone else."
        super().__init__("flow", f"{OTHER_ENTRIES} {others} {cause} Check the list.")


def make_plan(
    plan_id: str,
    at: datetime,
    lists: Sequence[FlowList],
    requests: Sequence[Request],
    over: Sequence[Access],
) -> ListChangePlan:
    """Return the plan that applies approved requests to a list and removes expired access.

    `lists` are the flow's lists since the first of the requests was made, and the last of them is
    the one to change. `requests` must be sorted by decision time, oldest first.
    """
    before = lists[-1]
    current, steps = before.identities, list[Step]()
    for request in requests:
        wishes = [wish for wish in wishes_at(request, at) if wish.is_open]
        current = apply_change(current, change_of(wishes))
        outside = outside_edits([one for one in lists if one.id >= request.list_id])
        steps.append(Step(request.id, outside))
    ended = tuple(access.spelling for access in over)
    current = apply_change(current, Change(removals=ended))
    # People who are removed and added again in one plan keep their position on the list.
    change = difference(before.identities, current)
    return ListChangePlan(plan_id, at, before, change, tuple(steps), ended)


def wishes_at(request: Request, at: datetime) -> list[RequestPerson]:
    """Return the people left as they're planned at this time.

    Those whose access would already have ended are late. An undo that would restore such access
    removes the person instead.
    """
    wishes = list[RequestPerson]()
    for person in request.left:
        if not person.is_late_at(at):
            wishes.append(person)
        elif request.undo_of:
            wishes.append(replace(person, wants=Wants.REMOVE, shown=Effect.REMOVE))
        else:
            wishes.append(replace(person, did=Did.LATE, did_at=at))
    return wishes


LOOK_SECONDS = 5.0
# The pause doubles with every failure, up to 40 s, so that access ends soon after an outage. What
# the service refuses is tried again up to ten minutes later.
DOUBLINGS, DOUBLINGS_IF_REFUSED = 3, 7
LONGEST_LOOK_SECONDS = LOOK_SECONDS * 2**DOUBLINGS_IF_REFUSED
# Access ends if its person is missing from the list at two checks that are this far apart.
GONE = timedelta(seconds=60)


@dataclass(frozen=True)
class Waiting:
    """A flow's pending work, as stored in the database at the time `at`.

    `requests` contains the approved requests, oldest decision first. `post` is the plan whose POST
    is in doubt. `access` maps spellings to people's access, soonest end first.
    """

    at: datetime
    requests: Sequence[Request]
    post: ListChangePlan | None
    access: Mapping[str, Access]

    @property
    def ready(self) -> list[Request]:
        """The requests that are due for their next attempt.

        If several requests affect the same person, the later ones wait for the first to finish,
        and are compared with what it has changed.
        """
        taken, due = set[str](), list[Request]()
        for request in self.requests:
            people = {plain(person.spelling) for person in request.left}
            is_due = (request.attempts.retry_at or self.at) <= self.at
            if is_due and taken.isdisjoint(people):
                due.append(request)
            taken |= people
        return due

    @property
    def due(self) -> list[Access]:
        """The access that has run out."""
        return [one for one in self.access.values() if one.ends_at and one.ends_at <= self.at]

    @property
    def over(self) -> list[Access]:
        """The access that has run out, of people who aren't affected by any approved request."""
        taken = {person.spelling for request in self.requests for person in request.left}
        return [one for one in self.due if one.spelling not in taken]


def next_run(
    waiting: Waiting, tries: int, error: GatehouseError | None, *, has_missing: bool
) -> datetime | None:
    """Return when to read the flow's list again, or None if nothing is left to do.

    `error` is why the last run failed, if it did, and `tries` is how many runs in a row did.
    `has_missing` is True if people with access were missing from the list.
    """
    at, post = waiting.at, waiting.post
    later = [request.attempts.retry_at for request in waiting.requests]
    later += [access.ends_at for access in waiting.access.values()]
    times = [time for time in later if time is not None and time > at]
    if has_missing:
        times.append(at + GONE)
    if post is not None or waiting.due:
        most = DOUBLINGS_IF_REFUSED if isinstance(error, _FINAL) else DOUBLINGS
        seconds = LOOK_SECONDS * 2 ** min(tries - 1, most)
        told = min(_told_to_wait(error), LONGEST_LOOK_SECONDS)
        times.append(at + timedelta(seconds=max(seconds, told)))
    if post is not None and post.is_in_the_air(at):
        times.append(post.ends_at)
    elif (post is None or error) and (waiting.ready or (error is None and waiting.over)):
        times.append(at)
    return min(times, default=None)


# A change gets three attempts, with pauses in between. Any later calls only check the list.
TRIES = 3
LOOKS = 2
PAUSES_SECONDS = (1.0, 3.0, 0.5, 4.0)
# A change doesn't wait longer than this for a service that says when to try again.
LONGEST_PAUSE_SECONDS = 60.0
# After these errors, the same call would certainly fail again.
_FINAL = (ServiceRefused, CredentialsRefused, PermissionMissing, NotConfigured)
# Refusals that can be over a moment later. A proxy can answer 404, too.
_MAY_PASS = frozenset(
    {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.LOCKED, HTTPStatus.TOO_EARLY}
)
# Statuses that proxies send while the service may still be processing the request.
_UNCLEAR_STATUSES = frozenset(
    {
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.GATEWAY_TIMEOUT,
        *range(520, 600),
    }
)
FOR_THE_REST = "Please make a new request for the rest."
ASK_THEM = "This isn't your fault. Ask whoever runs Gatehouse to run gatehouse check."


def tried(
    request: Request,
    error: GatehouseError,
    at: datetime,
    post: ListChangePlan | None,
    *,
    is_shared: bool,
) -> Request:
    """Return the request after a failed attempt, either waiting to be retried or failed.

    `post` is the request's plan if it's in doubt. `is_shared` is True if it also contains other
    changes. If the service refused a shared POST, the request is tried once more on its own.
    """
    if isinstance(error, StoredOtherwise):
        # The change is on the list in another form. Sending it again would add it again.
        return failed(request, reason_of(error))
    may_pass = isinstance(error, ServiceRefused) and error.status in _MAY_PASS
    is_refused = post is None and isinstance(error, _FINAL) and not may_pass
    # People must correct the address. The next look shows whether a redirected POST took effect.
    is_refused |= isinstance(error, Redirected)
    tries, told = request.attempts.tries + 1, _told_to_wait(error)
    if is_shared and is_refused and isinstance(error, (ServiceRefused, PermissionMissing)):
        tries = TRIES - 1
        pause = 0.0
    elif (
        is_refused
        or told > LONGEST_PAUSE_SECONDS
        or tries >= (TRIES if post is None else TRIES + LOOKS)
    ):
        return failed(request, reason_of(error), is_unsure=post is not None)
    else:
        pause = max(PAUSES_SECONDS[tries - 1], told)
    attempts = replace(
        request.attempts,
        tries=tries,
        failure=reason_of(error),
        is_unsure=post is not None and not post.is_answered,
        retry_at=at + timedelta(seconds=pause),
    )
    return replace(request, attempts=attempts)


def failed(request: Request, reason: str = "", *, is_unsure: bool = False) -> Request:
    """Return the request marked as failed. `reason` defaults to the last attempt's failure.

    `is_unsure` is True if the outcome of its POST is still unknown.
    """
    reason = reason or request.attempts.failure
    attempts = replace(
        request.attempts, tries=TRIES, failure=reason, is_unsure=is_unsure, retry_at=None
    )
    return replace(request, state=State.FAILED, attempts=attempts)


def _told_to_wait(error: GatehouseError | None) -> float:
    """Return how many seconds the service said to wait, or 0 if it didn't say."""
    return error.retry_after if isinstance(error, ServiceError) else 0.0


def reason_of(error: GatehouseError) -> str:
    """Return a sentence that explains a failure to people who can't fix its cause."""
    if isinstance(error, (CredentialsRefused, PermissionMissing)):
        return f"The flow service doesn't accept Gatehouse's credentials. {ASK_THEM}"
    sentence = error.sentence
    if isinstance(error, ServiceFailed):
        sentence = f"The flow service is having problems (HTTP {error.status})."
    elif not sentence.endswith((".", "!", "?")):
        sentence += "."
    if (told := _told_to_wait(error)) > LONGEST_PAUSE_SECONDS:
        sentence += f" It asks not to be called again for {-(-told // 60):.0f} min."
    return sentence
