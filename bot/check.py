"""`gatehouse check`, which tests the whole configuration and can be run at any time."""

import re
from collections.abc import Mapping

from yarl import URL

from bot.app import gatehouse
from bot.checks.database import database, prepare, usable_database
from bot.checks.findings import NOT_TRIED, CheckParts, Finding
from bot.checks.rules import Part
from bot.checks.services import email, flows, gateway, inventory
from bot.checks.slack import ROLES, app_token, channels, roles, slack_token
from bot.configured import quota_terms
from bot.ops.secrets import is_loopback
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import limits_of
from bot.settings import Settings, unknown, unused
from bot.settings.model import revealed

SIGNING_SECRET = re.compile(r"[0-9a-f]{32}")
SIGNING_SECRET_OF_A_STAND_IN = re.compile(r"\S{16,}")
OPEN_METRICS = (
    "is not set, so /metrics responds to every caller on this machine, including a proxy or tunnel"
    " that hides the real client. Set it, or forward only /slack/events."
)


async def examine(
    settings: Settings, environment: Mapping[str, str] | None = None
) -> list[Finding]:
    """Run all checks and return the findings in report order.

    Also check `environment` for misspelled settings.
    """
    with usable_database(settings) as (usable, problems):
        async with gatehouse(usable) as bot:
            stored = problems or await prepare(bot.database) or await database(bot.health.parts)
            return await _examine(settings, environment or {}, bot.health.parts, stored[0])


async def _examine(
    settings: Settings, environment: Mapping[str, str], parts: CheckParts, stored: Finding
) -> list[Finding]:
    token, *about_token = await slack_token(parts)
    found = [*examine_environment(settings, environment), token, *about_token]
    found += await app_token(parts)
    if token.is_well:
        found += [*await channels(parts), *await roles(parts)]
    else:
        sentence = "Not checked: Slack has to accept the token first."
        names = (Part.SLACK_SCOPES, Part.ALERTS_CHANNEL, Part.APPROVALS_CHANNEL, ROLES)
        found += [Finding(name, NOT_TRIED, sentence) for name in names]
    of_inventory, listed = await inventory(parts, can_be_granted=stored.is_well)
    found += [*of_inventory, *await flows(parts), *await email(parts), *gateway(settings, listed)]
    return [*found, stored]


def examine_environment(settings: Settings, environment: Mapping[str, str]) -> list[Finding]:
    """Run the checks that make no calls to other services, and return the findings."""
    ignored = "is not a Gatehouse setting and is ignored. Check its spelling."
    found = [Finding(name, "setting_unknown", ignored) for name in unknown(environment)]
    for name, reason in unused(environment).items():
        found.append(Finding(name, "setting_unused", reason))
    if settings.metrics_token is None and not is_loopback(settings.host):
        found.append(Finding("METRICS_TOKEN", "metrics_without_token", OPEN_METRICS))
    for path, reserve in settings.inventory_reserve.items():
        plan = quota_terms(settings).plan_of(OrganizationKey.of_path(path))
        if reserve.day >= (day := limits_of(plan).day):
            sentence = (
                f"reserves {reserve.day:,} of the {day:,} calls per day that the plan {plan} allows"
                f" for “{path}”, so Gatehouse makes only one call. Reserve less, or set the plan."
            )
            found.append(Finding("INVENTORY_RESERVE", "reserve_too_large", sentence))
    secret = revealed(settings.slack_signing_secret) or ""
    is_real = not is_loopback(URL(settings.slack_api_url).host)
    form = SIGNING_SECRET if is_real else SIGNING_SECRET_OF_A_STAND_IN
    if secret and not form.fullmatch(secret):
        sentence = "must be 32 hexadecimal digits. Copy the Signing Secret from Basic Information."
        found.append(Finding("SLACK_SIGNING_SECRET", "signing_secret_form", sentence))
    return found
