"""Turns answers into settings, for answers from a file and from the terminal."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.settings import Settings, SettingsError, read_settings
from bot.setup.accounts import Listed, listings, refresh_token_of
from bot.setup.answers import Answers, InventoryAnswer, SetupError
from bot.setup.building import (
    ROLES,
    inventory_settings,
    service_settings,
    slack_settings,
    token_url_of,
    with_organizations,
)
from bot.setup.names import CHANNEL_ID, EVERYBODY, PERSON_ID, Workspace, workspace_names

SLACK_API_URL = "https://slack.com/api/"


@dataclass
class Known:
    """Results of earlier steps, so that steps don't run twice.

    `tokens` has the refresh tokens by code. `listed` has the organizations, and `chosen` the
    organization to name in listings, by data center; `listed` is None before they are listed.
    """

    workspace: Workspace | None = None
    tokens: dict[str, str] = field(default_factory=dict)
    listed: dict[str, Listed] | None = None
    chosen: dict[str, str] = field(default_factory=dict)


def settings_of(answers: Answers, rest: Mapping[str, str], known: Known) -> dict[str, str]:
    """Return the settings for the answers, by name.

    Codes work only once, so they are exchanged only after all other answers are valid.

    Raises:
        SetupError: Answers are invalid; the error lists all problems found so far.
    """
    settings = slack_settings(answers, known.workspace or _names(answers, rest))
    settings |= service_settings(answers)
    inventory = answers.inventory
    if inventory is None:
        check_settings({**rest, **settings})
        return settings
    check_settings({**rest, **settings, **inventory_settings(inventory, known.tokens)})
    exchange(inventory, known)
    settings |= inventory_settings(inventory, known.tokens)
    if known.listed is None:
        known.listed = asyncio.run(listings(check_settings({**rest, **settings})))
    return with_organizations(settings, known.listed, known.chosen)


def exchange(inventory: InventoryAnswer, known: Known) -> None:
    """Exchange the codes that have no refresh token yet.

    Raises:
        SetupError: A code is refused.
    """
    for name, center in inventory.data_centers.items():
        if center.code and center.code not in known.tokens:
            address = token_url_of(inventory, name)
            known.tokens[center.code] = asyncio.run(refresh_token_of(name, center, address))


def check_settings(environment: Mapping[str, str]) -> Settings:
    """Validate the settings in an environment.

    Raises:
        SetupError: Settings are invalid.
    """
    try:
        return read_settings(environment)
    except SettingsError as error:
        raise SetupError(*error.problems) from None


def _names(answers: Answers, rest: Mapping[str, str]) -> Workspace:
    named = [name for key in ROLES.values() for name in getattr(answers, key)]
    channels = (answers.alerts_channel, answers.approvals_channel)
    has_people = any(name != EVERYBODY and not PERSON_ID.fullmatch(name) for name in named)
    has_channels = any(not CHANNEL_ID.fullmatch(name) for name in channels)
    if not has_people and not has_channels:
        return Workspace()
    api_url = rest.get("SLACK_API_URL") or SLACK_API_URL
    looking = workspace_names(
        answers.slack_bot_token, api_url, people=has_people, channels=has_channels
    )
    return asyncio.run(looking)
