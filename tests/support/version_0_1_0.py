"""A database as version 0.1.0 left it when its process died, written row by row in SQL.

Nothing here goes through today's code but the revisions of the schema: the rows are those of the
program of that time, and so is the hash of its audit.
"""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

from alembic import command
from sqlalchemy import Connection, text

from bot.store.async_engine import AsyncConnection
from bot.store.migrations import _config

Row = dict[str, Any]

SCHEMA = "0003"
WELCOME, SURVEY = "FW00000000000000000000000000000001", "FW00000000000000000000000000000002"
OTTO = {"slack_user_id": "U0OPERATOR", "name": "Otto Operator"}
ADA = {"slack_user_id": "U0APPROVER", "name": "Ada Approver"}
# Its requests, by what they are for.
GRANTED, CLICKED, DENIED, UNPOSTED, PENDING = (
    "a638207b37d8e677",
    "0ce6555958fabbe3",
    "d2e4ae656ddd5630",
    "15d5b5c862719061",
    "999ce550cf1fc685",
)
INCIDENT = "incident"
NOTHING: Row = {"additions": [], "removals": []}


class OldDatabase:
    """What it held.

    - `GRANTED` was applied, and its grant is over in `grant_seconds`.
    - `PENDING` waits for a decision, and its card is in Slack.
    - `CLICKED` too: Ada has approved it, and the click is stored, leased by the process that died.
    - `DENIED`: the requester has not been told, because Slack did not answer.
    - `UNPOSTED` waits, and its card has not been posted.
    - An incident is open, and its pause is over.

    Args:
        now: The time at which the database is taken over, in seconds since 1970.
        cards: The `ts` of the message in Slack of each request, and of `INCIDENT`.
        reply_to: The response_url of Ada's click.
        key: `AUDIT_KEY`.
    """

    def __init__(
        self,
        now: float,
        cards: dict[str, str],
        reply_to: str,
        key: bytes | None,
        grant_seconds: float = 2.0,
    ) -> None:
        self._now = round(now * 1_000_000)
        self._cards = cards
        self._reply_to = reply_to
        self._key = key
        self._ends = self._at(grant_seconds)
        self._granted = self._at(-1798.0)
        self._asked = self._at(-60.0)
        self.audit = self._audit()

    async def write(self, connection: AsyncConnection) -> None:
        """Make the schema of that version and fill it."""
        await connection.run_sync(_to_schema)
        rows = {
            "audit_entries": self.audit,
            "jobs": self._jobs(),
            "letters": self._letters(),
            "cards": self._posted(),
            "requests": self._requests(),
            "grants": [self._grant()],
            "flow_changes": [
                {
                    "flow_key": WELCOME,
                    "at": self._granted,
                    "content": {**NOTHING, "additions": ["+15550001"], "request_ids": [GRANTED]}
                    | {"ended": []},
                }
            ],
            "quota_organizations": [self._organization()],
            "incidents": [self._incident()],
        }
        for table, content in rows.items():
            for row in content:
                await _insert(connection, table, row)
        last = self.audit[-1]
        head = {"position": last["position"], "hash": last["hash"]}
        await connection.execute(
            text("UPDATE audit_head SET position = :position, hash = :hash"), head
        )

    def _at(self, seconds: float) -> int:
        return self._now + round(seconds * 1_000_000)

    def _audit(self) -> list[Row]:
        otto, ada = OTTO["slack_user_id"], ADA["slack_user_id"]
        entries = [
            (otto, "request.created", GRANTED, _created(WELCOME, "+15550001", "the demo", 1800)),
            (ada, "request.approved", GRANTED, _decided(WELCOME, "applying", [ada])),
            ("gatehouse", "request.applied", GRANTED, _applied()),
            (otto, "request.created", CLICKED, _created(WELCOME, "+15550002", "a trial", 7200)),
            (otto, "request.created", DENIED, _created(SURVEY, "+15550003")),
            (ada, "request.denied", DENIED, _decided(SURVEY, "denied", [], "not this week")),
            (otto, "request.created", UNPOSTED, _created(SURVEY, "+15550004")),
            (otto, "request.created", PENDING, _created(WELCOME, "+15550005")),
        ]
        previous, rows = "0" * 64, []
        for position, (actor, action, subject, detail) in enumerate(entries, 1):
            at = self._granted + position
            told = json.dumps(detail, sort_keys=True, ensure_ascii=False)
            parts = [previous, position, at, actor, action, subject, told]
            digest = self._digest(json.dumps(parts, ensure_ascii=False).encode())
            names = ("position", "at", "actor", "action", "subject", "detail")
            values = (position, at, actor, action, subject, told)
            rows.append(
                dict(zip(names, values, strict=True)) | {"previous_hash": previous, "hash": digest}
            )
            previous = digest
        return rows

    def _digest(self, payload: bytes) -> str:
        if self._key is None:
            return hashlib.sha256(payload).hexdigest()
        return hmac.new(self._key, payload, hashlib.sha256).hexdigest()

    def _jobs(self) -> list[Row]:
        day = 86_400.0
        rows = [
            self._job(f"apply:{WELCOME}", "testusers.apply", WELCOME, self._ends),
            self._job("probe:1", "probe", "eu/20077314", self._at(-1.0)),
            self._job("retain", "retain", "retain", self._at(day)),
            self._job("quota_tidy", "quota_tidy", "quota_tidy", self._at(3600.0)),
            self._click(),
        ]
        for request in (CLICKED, UNPOSTED, PENDING):
            rows.append(
                self._job(f"expire:{request}", "testusers.expire", request, self._at(day - 60))
            )
            remind_at = self._at(4 * 3600 - 60)
            rows.append(self._job(f"remind:{request}", "testusers.remind", request, remind_at))
        failure = {"tries": 2, "last_error": "Slack cannot be reached at the moment."}
        denied, unposted = f"requester:{DENIED}", f"request:{UNPOSTED}"
        return [
            *rows,
            self._job(f"send:{denied}", "send", denied, self._asked) | failure,
            self._job(f"send:{unposted}", "send", unposted, self._asked),
        ]

    def _click(self) -> Row:
        payload = {
            "act": "approve",
            "request_id": CLICKED,
            "slack_user_id": ADA["slack_user_id"],
            "team_ids": ["T0GATEHOUSE", "T0GATEHOUSE"],
            "reply_to": self._reply_to,
            "denial_reason": "",
        }
        row = self._job(
            "click:8974f2daf3b5925a", "testusers.click", CLICKED, self._at(-1.0), payload
        )
        return row | {"owner": "8f0c2d8e5d5f4f0a", "leased_until": self._at(1.0)}

    def _job(
        self, key: str, kind: str, subject: str, due_at: int, payload: Row | None = None
    ) -> Row:
        what = {"key": key, "kind": kind, "subject": subject, "payload": payload or {}}
        return what | {"due_at": due_at, "generation": 1, "tries": 0}

    def _letters(self) -> list[Row]:
        sent = [
            (f"request:{GRANTED}", "testusers.card", GRANTED),
            (f"request:{CLICKED}", "testusers.card", CLICKED),
            (f"request:{PENDING}", "testusers.card", PENDING),
            (f"request:{DENIED}", "testusers.card", DENIED),
            ("incident:1", "incident_card", "1"),
        ]
        waiting = [
            (f"requester:{DENIED}", "testusers.told", DENIED, {"event": "denied"}),
            (f"request:{UNPOSTED}", "testusers.card", UNPOSTED, {}),
        ]
        names = ("key", "kind", "subject", "payload", "sent_at")
        rows = [(*one, {}, self._asked) for one in sent] + [(*one, None) for one in waiting]
        made = {"created_at": self._asked, "tries": 0}
        return [dict(zip(names, row, strict=True)) | made for row in rows]

    def _posted(self) -> list[Row]:
        return [
            {
                "key": "incident:1" if name == INCIDENT else f"request:{name}",
                "channel_id": "C0ALERTS" if name == INCIDENT else "C0APPROVALS",
                "message_ts": ts,
                "fingerprint": "4a8f791e35cc35040f955423b0bc9b31ba6403a847cca73add8099acba4d947c",
                "sent_at": self._asked,
            }
            for name, ts in self._cards.items()
        ]

    def _requests(self) -> list[Row]:
        decided = {"decided_by_id": ADA["slack_user_id"], "decided_by_name": ADA["name"]}
        decided["decided_at"] = self._granted
        done = {
            "at": _iso(self._granted),
            "change": {**NOTHING, "additions": ["+15550001"]},
            "already": NOTHING,
            "outside": NOTHING,
            "size_before": 2,
            "size_after": 3,
            "ends_at": {"+15550001": _iso(self._ends)},
            "previous_ends": {},
        }
        approval = {"who": ADA, "at": _iso(self._granted), "click_id": "click:f043f2eeedaf1947"}
        granted = self._request(GRANTED, "+15550001", "applied", "the demo", 1800)
        granted["progress"] |= {"approvals": [approval], "done": done}
        denied = self._request(DENIED, "+15550003", "denied", flow=("survey", SURVEY))
        denied["progress"] |= {"denial_reason": "not this week"}
        return [
            granted | decided,
            self._request(CLICKED, "+15550002", "pending", "a trial", 7200),
            denied | decided,
            self._request(UNPOSTED, "+15550004", "pending", flow=("survey", SURVEY)),
            self._request(PENDING, "+15550005", "pending"),
        ]

    def _request(
        self,
        name: str,
        identity: str,
        state: str,
        reason: str = "",
        duration: int | None = None,
        flow: tuple[str, str] = ("welcome", WELCOME),
    ) -> Row:
        seen = ["+15550100001", "whatsapp:+15550100002"]
        wish = {
            "change": {**NOTHING, "additions": [identity]},
            "seen": seen if flow[0] == "welcome" else ["ada@example.com"],
            "seen_change_id": 0,
            "end_changes": [],
            "duration_seconds": duration,
            "ends": {},
            "reason": reason,
            "without_approval": False,
            "undo_of": None,
        }
        progress: Row = {"approvals": [], "denial_reason": "", "failure": "", "tries": 0}
        progress |= {"retry_at": None, "done": None, "ended": [], "superseded": []}
        progress |= {"overdue": "", "undone_by": None, "is_undone": False}
        return {
            "id": name,
            "flow_key": flow[1],
            "flow_sid": flow[1],
            "flow_alias": flow[0],
            "requester_id": OTTO["slack_user_id"],
            "requester_name": OTTO["name"],
            "state": state,
            "version": 1,
            "created_at": self._asked,
            "expires_at": self._at(86_340.0),
            "wish": wish,
            "progress": progress,
        }

    def _grant(self) -> Row:
        return {
            "flow_key": WELCOME,
            "identity": json.dumps("+15550001"),
            "flow_sid": WELCOME,
            "request_id": GRANTED,
            "granted_by": OTTO,
            "approved_by": [ADA],
            "granted_at": self._granted,
            "ends_at": self._ends,
        }

    def _organization(self) -> Row:
        seconds = self._now / 1_000_000
        block = {"code": 45, "since": seconds - 901, "until": seconds - 1, "failed_tries": 0}
        return {
            "data_center": "eu",
            "organization_id": "20077314",
            "summed": 0,
            "lowered_day": 1000,
            "told_number": 1,
            "told_limit": 1000,
            "told_remaining": 0,
            "told_unsure": 0,
            "told_resets_at": self._at(-2.0),
            "blocks": [block],
            "probing_until": 0,
            "muted_until": 0,
            "watched_at": 0,
        }

    def _incident(self) -> Row:
        words = "Your organization has exceeded its API call rate limit of 1,000 requests a day."
        own = {"minute": [1, 100], "day": [1, 1000], "concurrent": [1, 5]}
        detail = {"words": words, "sent_code": 45, "is_foreign": True, "own": own}
        opened = {"opened_at": self._at(-901.0), "refusals": 1}
        return {"organization": 1, "code": 45, "detail": detail, **opened}


def _to_schema(connection: Connection) -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, SCHEMA)


async def _insert(connection: AsyncConnection, table: str, row: Row) -> None:
    values = {
        name: json.dumps(value) if isinstance(value, dict | list) else value
        for name, value in row.items()
    }
    columns, places = ", ".join(values), ", ".join(f":{name}" for name in values)
    await connection.execute(text(f"INSERT INTO {table} ({columns}) VALUES ({places})"), values)  # noqa: S608 - no outside text


def _iso(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat()


def _created(flow: str, identity: str, reason: str = "", duration: int | None = None) -> Row:
    made = {"additions": [identity], "removals": [], "end_changes": [], "undo_of": None}
    return made | {"flow": flow, "reason": reason, "duration_seconds": duration}


def _decided(flow: str, state: str, approvers: list[str], reason: str = "") -> Row:
    return {"approvers": approvers, "flow": flow, "lapsed": [], "reason": reason, "state": state}


def _applied() -> Row:
    others = ("already_gone", "already_there", "outside_additions", "outside_removals", "removals")
    found: Row = {name: [] for name in others}
    return found | {"additions": ["+15550001"], "approvers": ["U0APPROVER"], "flow": WELCOME}
