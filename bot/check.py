"""`gatehouse check`: tests the whole configuration, before the first start or at any later time."""

from collections.abc import Mapping

from bot.app import gatehouse
from bot.checks.clocks import database_clock
from bot.checks.database import database, prepare
from bot.checks.environment import examine_environment
from bot.checks.findings import NOT_TRIED, Finding
from bot.checks.gateway import gateway
from bot.checks.parts import Parts
from bot.checks.roles import SUBJECT as ROLES
from bot.checks.roles import roles
from bot.checks.services import email, flows, inventory
from bot.checks.slack import app_token, channels, slack_token
from bot.settings import Settings


async def examine(
    settings: Settings, environment: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return a finding for each line of the report.

    `environment` holds the settings; its other variables may be misspelled settings.
    """
    async with gatehouse(settings) as bot:
        return [*examine_environment(settings, environment or {}), *await _everything(bot)]


async def _everything(parts: Parts) -> list[Finding]:
    await prepare(parts.database)
    (stored,) = await database(parts)
    token, *about_token = await slack_token(parts)
    if token.is_well:
        about_slack = [*await app_token(parts), *await channels(parts), *await roles(parts)]
    else:
        about_token = [_not_known("slack scopes")]
        untried = [_not_known(name) for name in ("ALERTS_CHANNEL", "APPROVALS_CHANNEL", ROLES)]
        about_slack = [*await app_token(parts), *untried]
    return [
        *(token, *about_token, *about_slack),
        *await inventory(parts, can_be_granted=stored.is_well),
        *await flows(parts),
        *await email(parts),
        *await gateway(parts),
        stored,
        *(await database_clock(parts) if stored.is_well else []),
    ]


def _not_known(subject: str) -> Finding:
    return Finding(subject, NOT_TRIED, "Not checked: Slack has to accept the token first.")
