"""`gatehouse check`, which tests the whole configuration and can be run at any time."""

import json
import os
import re
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

from pydantic import SecretStr
from yarl import URL

from bot.app import gatehouse
from bot.checks.checks import (
    CheckParts,
    app_token,
    channels,
    email,
    flows,
    gateway,
    inventory,
    prepared_database,
    roles,
    slack_token,
)
from bot.checks.rules import WRONG, Finding, Part, all_well, failed, well
from bot.configured import quota_terms
from bot.errors import DatabaseReplaced
from bot.ops.redaction import on_one_line
from bot.ops.secrets import is_loopback
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import LIMITS
from bot.settings import Settings
from bot.settings.files import Sources
from bot.settings.model import revealed
from bot.store.causes import NO_FILE
from bot.store.sqlite import is_locked, sqlite_file

SIGNING_SECRET = re.compile(r"[0-9a-f]{32}")
SIGNING_SECRET_OF_A_STAND_IN = re.compile(r"\S{16,}")


@asynccontextmanager
async def checking(settings: Settings) -> AsyncIterator[CheckParts]:
    """Yield a bot's parts for checks. Its database has been checked.

    If the SQLite file doesn't exist yet, the checks use a temporary one: the first start creates
    the file, as the bot's user.
    """
    file = sqlite_file(settings.database_url.get_secret_value())
    problems: list[Finding] = []
    with TemporaryDirectory() as folder:
        if file is not None and not file.exists():
            if is_locked(file):
                problems = [failed(Part.DATABASE, DatabaseReplaced())]
            elif not os.access(file.parent, os.W_OK | os.X_OK):
                problems = [Finding(Part.DATABASE, NO_FILE.code, NO_FILE.sentence)]
            url = SecretStr(f"sqlite:///{folder}/check.db")
            settings = settings.model_copy(update={"database_url": url})
        async with gatehouse(settings) as bot:
            parts = bot.health.parts
            yield replace(parts, stored=problems or await prepared_database(parts))


async def examine(settings: Settings) -> list[Finding]:
    """Run all checks and return the findings in report order."""
    async with checking(settings) as parts:
        slack = [*await slack_token(parts), *await app_token(parts)]
        findings = [*examine_settings(settings), *slack]
        # Without the bot's token, the other checks at Slack would fail in the same way.
        others = [channels, roles] if slack[0].is_well else []
        for check in (*others, inventory, flows, email, gateway):
            findings += await check(parts)
        return [*findings, *parts.stored]


def settings_file(settings: Settings, sources: Sources) -> Finding:
    """Return where the settings come from, or a warning if everybody can read secrets there."""
    file = sources.file
    if file is None:
        return well("settings", "Read from the environment.")
    in_file = {name: getattr(settings, name) for name in sources.table}
    if file.stat().st_mode & stat.S_IROTH and Settings.model_construct(**in_file).secrets():
        sentence = f"Read from {file}. Every user can read its secrets. Use: chmod 0600 {file}"
        return Finding("settings", "settings_readable", sentence)
    return well("settings", f"Read from {file}.")


def examine_settings(settings: Settings) -> list[Finding]:
    """Run the checks that make no calls to other services, and return the findings."""
    findings = []
    for path, reserve in settings.inventory_reserve.items():
        plan = quota_terms(settings).plan_of(OrganizationKey.of_path(path))
        if reserve.day >= (day := LIMITS[plan].day or 0):
            sentence = (
                f"reserves {reserve.day:,} calls per day for “{path}”, but the {plan} plan allows"
                f" only {day:,}, so Gatehouse makes only one call per day. Reserve fewer calls, or"
                " set the right plan."
            )
            findings.append(Finding("INVENTORY_RESERVE", "reserve_too_large", sentence))
    secret = revealed(settings.slack_signing_secret) or ""
    is_real = not is_loopback(URL(settings.slack_api_url).host)
    form = SIGNING_SECRET if is_real else SIGNING_SECRET_OF_A_STAND_IN
    if secret and not form.fullmatch(secret):
        sentence = (
            "must be 32 hexadecimal digits. Copy the Signing Secret from the app's Basic"
            " Information page."
        )
        findings.append(Finding("SLACK_SIGNING_SECRET", "signing_secret_form", sentence))
    return findings


def as_table(findings: Sequence[Finding]) -> str:
    """Return the report as text: one line per finding, followed by a verdict."""
    width = max((len(finding.subject) for finding in findings), default=0)
    lines = []
    for finding in findings:
        code = f" [{finding.code}]" if finding.mark in {"WARN", WRONG} else ""
        line = f"{finding.mark:<5}  {finding.subject:<{width}}  {finding.for_operators}{code}"
        lines.append(on_one_line(line))
    verdict = "All is well." if all_well(findings) else "Correct each problem that is marked WRONG."
    return "\n".join([*lines, "", verdict])


def as_json(findings: Sequence[Finding]) -> str:
    """Return the report as a JSON object, with the verdict in `ok` and the findings in `checks`."""
    checks = [
        {
            "subject": finding.subject,
            "code": finding.code,
            "sentence": finding.for_operators,
            "ok": finding.is_well,
        }
        for finding in findings
    ]
    return json.dumps({"ok": all_well(findings), "checks": checks}, ensure_ascii=False, indent=2)
