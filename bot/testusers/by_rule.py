"""Approval by a rule, in the transaction that stores the request."""

from dataclasses import asdict, replace
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from bot.approvals.rules.approval import State
from bot.approvals.rules.automatic import (
    RULE_NAME,
    ApprovedByRule,
    Candidate,
    is_automatic,
    rule_id,
)
from bot.ops.current_delivery import delivery_id
from bot.permissions import Person
from bot.store.audit_entry import BOT, AuditEntry
from bot.store.engine import Transaction
from bot.testusers.rules.requests import Request, Who
from bot.testusers.rules.review import TAKES_AWAY, effects
from bot.testusers.setup import Setup
from bot.testusers.store import requests
from bot.testusers.transitions import apply_transition


async def approved_by_rule(
    setup: Setup, tx: Transaction, person: Person, request: Request
) -> Request | None:
    """Return the new request as approved, if the flow's policy needs no decision.

    The caller has locked the audit, so each of two requests at once counts the other.
    """
    rules = setup.flow_rules(request.flow.sid)
    if rules.auto is None or request.state is not State.PENDING:
        return None
    now, counted_as = request.created_at, rule_id(rules, request.flow.key)
    asker, since = request.requester.slack_user_id, _midnight(person, now)
    used = await requests.count_by_rule(tx, asker, counted_as, since)
    if not is_automatic(rules, _candidate(person, request), used):
        return None
    rule = ApprovedByRule(
        rules.sources["auto"], rules.auto.longest_seconds, used + 1, rules.auto.a_day
    )
    progress = replace(request.progress, rule=rule, delivery_id=delivery_id())
    approved = request.moved(State.APPLYING, Who(counted_as, RULE_NAME), now, progress)
    detail = {"flow": request.flow.sid, **asdict(rule)}
    entry = AuditEntry(BOT, "request.approved_by_rule", request.id, detail)
    await apply_transition(tx, setup.audit, request, approved, entry)
    return approved


def _candidate(person: Person, request: Request) -> Candidate:
    requested, now = request.requested, request.created_at
    ends = [requested.end_of(identity, now) for identity in requested.change.additions]
    by_person = effects(requested, requested.change, now)
    return Candidate(
        {person.slack_user_id, *person.groups},
        [(end - now).total_seconds() if end else None for end in ends],
        takes_away=not TAKES_AWAY.isdisjoint(by_person.values()),
        starts_later=requested.starts_at is not None,
    )


def _midnight(person: Person, now: datetime) -> datetime:
    """Return the start of the person's day, in their Slack time zone."""
    try:
        zone: tzinfo = ZoneInfo(person.time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        zone = UTC
    return now.astimezone(zone).replace(hour=0, minute=0, second=0, microsecond=0)
