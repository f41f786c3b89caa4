"""Asks the setup questions in a terminal."""

import asyncio
import getpass
import re
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from bot.ops.redaction import on_one_line
from bot.organizations.rules import DataCenterReport
from bot.settings import Settings
from bot.settings.model import DATA_CENTERS
from bot.setup.accounts import flows_of, listings
from bot.setup.answers import (
    EmailAnswer,
    FlowAnswer,
    InventoryAnswer,
    SetupError,
    answer_of,
)
from bot.setup.building import (
    ROLES,
    Table,
    check_settings,
    email_settings,
    flow_address,
    flow_settings,
    inventory_settings,
)
from bot.setup.names import CHANNELS, EVERYBODY, Workspace, look_up
from bot.setup.vendors import EMAIL, FLOW, INVENTORY
from bot.slack.manifest import manifest_text

QUESTIONS = 12
LONGEST_ALIAS = 40
SECOND_SECRETS = {
    "slack_signing_secret": "Signing Secret",
    "slack_app_token": "app-level token (xapp-…)",
}
TOKENS_ADVICE = (
    "The Bot User OAuth Token is on the app's Install App page. The Signing Secret is on the Basic"
    " Information page. For Socket Mode, create a token with the scope connections:write under"
    " App-Level Tokens on that page."
)
MANIFEST_ADVICE = (
    "Go to https://api.slack.com/apps, choose Create New App → From a manifest, and paste the\n"
    "text above. Install the app, and then type /invite @gatehouse in the channel for alerts and\n"
    "in the channel for approvals."
)
PEOPLE = {
    "approver": "Who can approve changes? Enter at least two people, such as @ada @abel, or a user"
    " group",
    "operator": "Who can request changes? Enter people or user groups, or * for everyone",
    "admin": "Who are the admins? Admins can apply changes without approval (leave empty for none)",
}
CREDENTIAL = ("client_id", "client_secret", "code")
Taken = TypeVar("Taken")


def ask(rest: Table) -> Table:
    """Ask all questions, and return the settings.

    `rest` contains the settings that setup doesn't ask for.
    """
    if not sys.stdin.isatty():
        raise SetupError(
            "Setup can ask its questions only in a terminal. To answer from a JSON file instead,"
            " use --answers FILE."
        )
    return _Questions(rest).ask()


def _ask(
    number: int, question: str, take: Callable[[str], Taken], secret_advice: str = ""
) -> Taken:
    """Ask until `take` accepts the answer. Given `secret_advice`, print it and hide the input."""
    if secret_advice:
        print(textwrap.fill(secret_advice, 100))
        question += ". Your input is hidden"
    prompt = f"({number} of {QUESTIONS}) {question}: "
    while True:
        text = (getpass.getpass(prompt) if secret_advice else input(prompt)).strip()
        try:
            taken = take(text)
        except SetupError as error:
            for problem in error.problems:
                print(f"   {on_one_line(problem)}")
            print("   Please try again.")
        else:
            print()
            return taken


class _Questions:
    """Asks the questions. The settings so far are valid after the third question."""

    def __init__(self, rest: Table) -> None:
        self._settings: Table = {**rest, "roles": {"viewer": [EVERYBODY]}}
        self._workspace = Workspace()

    def ask(self) -> Table:
        print(
            "There are at most 12 questions. Nothing is written until the end. Press Ctrl-C to"
            " stop.\n"
        )
        second = _ask(
            1,
            "Enter the public address where Slack can reach the bot, such as https://bot.example.com"
            " (leave empty to use Socket Mode, which needs no address)",
            self._take_url,
        )
        _ask(
            2,
            "Paste the Bot User OAuth Token (xoxb-…) and the"
            f" {SECOND_SECRETS[second]}, separated by a space",
            partial(self._take_tokens, second),
            TOKENS_ADVICE,
        )
        _ask(
            3,
            "Enter the channels for alerts and approvals, in that order [#alerts #approvals]",
            self._take_channels,
        )
        for number, (role, question) in enumerate(PEOPLE.items(), start=4):
            _ask(number, question, partial(self._take_people, role))
        print("Everyone else can view data, with identities masked. To change this, edit ROLES.\n")
        self._ask_inventory()
        self._ask_flow()
        _ask(
            12,
            "Enter the SendGrid API key (leave empty to skip; for another vendor, enter its address"
            " first)",
            self._take_email,
            EMAIL["sendgrid"].advice,
        )
        return self._settings

    def _take(self, settings: Table) -> Settings:
        """Add valid settings, and return all settings."""
        together = {**self._settings, **settings}
        checked = check_settings(together)
        self._settings = together
        return checked

    def _take_url(self, text: str) -> str:
        try:
            manifest = manifest_text(text, socket=not text)
        except ValueError as error:
            raise SetupError(str(error)) from None
        print(f"\n{manifest}\n{MANIFEST_ADVICE}")
        return "slack_signing_secret" if text else "slack_app_token"

    def _take_tokens(self, second: str, text: str) -> None:
        words = _two(text)
        self._settings |= dict(zip(("slack_bot_token", second), words, strict=True))
        self._look_up()

    def _look_up(self) -> None:
        token = self._settings["slack_bot_token"]
        self._workspace = asyncio.run(look_up(token, self._settings))

    def _take_channels(self, text: str) -> None:
        words = _two(text or "#alerts #approvals")
        self._look_up()  # in case the bot was just invited
        named = {key: [word] for key, word in zip(CHANNELS, words, strict=True)}
        self._take({key: found for key, (found,) in self._workspace.ids(named).items()})

    def _take_people(self, role: str, text: str) -> None:
        named = {ROLES[role]: text.replace(",", " ").split()}
        if found := self._workspace.ids(named)[ROLES[role]]:
            self._settings["roles"][role] = found

    def _ask_inventory(self) -> None:
        def take_place(text: str) -> dict[str, Any] | None:
            if not text:
                return None
            vendor, words = _vendor(text, "zoho")
            if not words or not set(words) <= set(DATA_CENTERS):
                raise SetupError(f"Enter data centers from this list: {' '.join(DATA_CENTERS)}.")
            return {**vendor, "data_centers": words}

        place = _ask(
            7,
            "Enter the Zoho Inventory data centers, separated by spaces, such as com eu (leave"
            " empty to skip; for another vendor, enter its URL, then its token URL if it has one,"
            " then its data centers)",
            take_place,
        )
        if place is None:
            return
        reports = _ask(
            8,
            f"For {', then '.join(place['data_centers'])}, enter either the client ID, client"
            " secret and code, or only an authtoken. Separate all values with spaces",
            partial(self._take_inventory, place),
            INVENTORY[place["vendor"]].advice or "Ask the vendor for these credentials.",
        )
        rows = [
            (report.data_center, row)
            for report in reports
            for row in (report.listing.organizations if report.listing else ())
        ]
        if len(rows) <= len(reports):
            return
        for number, (name, row) in enumerate(rows, start=1):
            print(f"   {number:>3}  {name}  {row.organization_id}  {on_one_line(row.name)}")

        def choose(text: str) -> None:
            for number in _numbers(text.split(), len(rows)):
                name, row = rows[number - 1]
                center = self._settings["inventory_data_centers"][name]
                center["organization_id"] = row.organization_id

        _ask(
            9,
            "Listing organizations takes a few API calls, which count against one organization's"
            " limit. Which organization should these calls count against? For each data center,"
            " enter one organization's number (leave empty for the account's default organization)",
            choose,
        )

    def _take_inventory(self, place: dict[str, Any], text: str) -> list[DataCenterReport]:
        names = place["data_centers"]
        words = text.split()
        keys = ("authtoken",) if len(words) == len(names) else CREDENTIAL
        needed = len(keys) * len(names)
        if len(words) != needed:
            raise SetupError(
                f"Enter {needed} values, separated by spaces. You entered {len(words)}."
            )
        centers = {}
        for name in names:
            centers[name] = dict(zip(keys, words, strict=False))
            del words[: len(keys)]
        answer = answer_of(InventoryAnswer, {**place, "data_centers": centers})
        settings = self._take(inventory_settings(answer, self._settings))
        return asyncio.run(listings(settings))

    def _ask_flow(self) -> None:
        flows = _ask(
            10,
            "Enter the Twilio Studio account SID and auth token, separated by a space (leave empty"
            " to skip; for another vendor, enter its address first)",
            self._take_flow,
            FLOW["twilio"].advice,
        )
        if flows is None:
            return
        for number, name in enumerate(flows.values(), start=1):
            print(f"   {number:>3}  {on_one_line(name)}")
        _ask(
            11,
            "Which flows? Enter numbers or alias=SID, such as welcome=FW0123… (leave empty for all)"
            if flows
            else "Which flows? Enter alias=SID, such as welcome=FW0123… (leave empty for none)",
            partial(self._take_flows, flows),
        )

    def _take_flow(self, text: str) -> dict[str, str] | None:
        if not text:
            return None
        vendor, words = _vendor(text, "twilio")
        account, token = _two(" ".join(words))
        flow = answer_of(FlowAnswer, {**vendor, "account_sid": account, "auth_token": token})
        self._take(flow_settings(flow))
        if flow.vendor == "twilio":
            return asyncio.run(flows_of(flow_address(flow), account, token))
        return {}

    def _take_flows(self, flows: Mapping[str, str], text: str) -> None:
        words = text.replace(",", " ").split()
        aliases = dict(word.split("=", 1) for word in words if "=" in word)
        numbers = _numbers([word for word in words if "=" not in word], len(flows))
        for number in numbers if words else range(1, len(flows) + 1):
            sid, name = list(flows.items())[number - 1]
            alias = re.sub(r"\W+", "-", name.casefold()).strip("-")[:LONGEST_ALIAS] or "flow"
            while alias in aliases:
                alias += "-2"
            aliases[alias] = sid
        self._take({"flow_aliases": aliases})

    def _take_email(self, text: str) -> None:
        if text:
            vendor, words = _vendor(text, "sendgrid")
            self._take(
                email_settings(answer_of(EmailAnswer, {**vendor, "api_key": " ".join(words)}))
            )


def _vendor(text: str, usual: str) -> tuple[dict[str, str], list[str]]:
    """Return the vendor and its addresses, and the other words."""
    words = text.split()
    addresses = [word for word in words if "://" in word]
    vendor = "other" if addresses else usual
    if words[0] in {usual, "other"}:
        vendor = words.pop(0)
    rest = [word for word in words if word not in addresses]
    return {"vendor": vendor, **dict(zip(("base_url", "token_url"), addresses, strict=False))}, rest


def _two(text: str) -> list[str]:
    words = text.split()
    if len(words) != 2:  # noqa: PLR2004 - what the question asks for
        raise SetupError("Enter two values, separated by a space.")
    return words


def _numbers(words: list[str], most: int) -> list[int]:
    if not all(word.isdecimal() and 1 <= int(word) <= most for word in words):
        raise SetupError(f"Enter numbers from 1 to {most}.")
    return [int(word) for word in words]
