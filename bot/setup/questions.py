"""Asks the setup questions in a terminal, and tests each answer before the next question."""

import asyncio
import getpass
import sys
import textwrap
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bot.ops.redaction import on_one_line
from bot.settings import DATA_CENTERS
from bot.setup.accounts import Listed, flows_of, listings
from bot.setup.answers import Answers, InventoryAnswer, SetupError, answers_of
from bot.setup.building import (
    CHANNELS,
    SLACK_API_URL,
    Known,
    alias_of,
    check_settings,
    exchange,
    flow_address,
    inventory_settings,
)
from bot.setup.names import EVERYBODY, Workspace, refuse, team_of, workspace_names
from bot.setup.vendors import EMAIL, FLOW, INVENTORY
from bot.slack.manifest import manifest_text

QUESTIONS = 12
TOKENS = {"xoxb-": "slack_bot_token", "xapp-": "slack_app_token"}
TOKENS_ADVICE = (
    "The Bot User OAuth Token is on the app's Install App page. Basic Information has the Signing"
    " Secret and, for Socket Mode, App-Level Tokens: create a token with the scope"
    " connections:write."
)
PEOPLE = {
    "approvers": "Who can approve changes? At least two people, such as @ada @abel, or a user"
    " group",
    "operators": "Who can request changes? People, groups, or * for everyone",
    "admins": "Which admins can apply changes without approval? (leave empty for none)",
}
# Placeholders for later answers while the inventory answers are tested.
UNASKED = {"SLACK_SIGNING_SECRET": "0" * 32, "ALERTS_CHANNEL": "C0", "APPROVALS_CHANNEL": "C0"}

Taken = TypeVar("Taken")


def ask(rest: Mapping[str, str], out: Path) -> tuple[Answers, Known]:
    """Ask all questions for the file `out`; return the answers and the test results.

    `rest` is the environment without the settings that setup asks for.
    """
    if not sys.stdin.isatty():
        raise SetupError(
            "The questions need a terminal. To answer from a JSON file instead, use --answers FILE."
        )
    if out.exists() and input(f"{out} exists. Replace it? [y/N] ").strip().lower() != "y":
        raise SetupError(f"{out} was not changed. To write another file, use --out.")
    return _Questions(rest).ask()


class _Questions:
    def __init__(self, rest: Mapping[str, str]) -> None:
        self._rest = rest
        self._api_url = rest.get("SLACK_API_URL") or SLACK_API_URL
        self._given: dict[str, Any] = {}
        self._workspace = Workspace()
        self._known = Known()

    def ask(self) -> tuple[Answers, Known]:
        print("There are at most 12 questions. Nothing is written until the end. Ctrl-C stops.\n")
        self._ask(
            1,
            "Public address where Slack can reach the bot, such as https://bot.example.com"
            " (leave empty to use Socket Mode, which needs no address)",
            self._take_url,
        )
        self._ask(
            2,
            "Paste the Bot User OAuth Token (xoxb-…) and the "
            + ("Signing Secret" if "url" in self._given else "app-level token (xapp-…)")
            + ", with a space between. They are not shown",
            self._take_tokens,
            TOKENS_ADVICE,
        )
        self._ask(
            3,
            "Channels for alerts and for approvals, in this order [#alerts #approvals]",
            self._take_channels,
        )
        for number, (key, question) in enumerate(PEOPLE.items(), start=4):
            self._ask(number, question, partial(self._take_people, key))
        self._given.setdefault("viewers", ["*"])
        print("Everyone else can view, with identities masked. Edit ROLES to change this.\n")
        self._ask_inventory()
        self._ask_flow()
        self._ask_email()
        return answers_of(self._given), self._known

    def _ask(
        self, number: int, question: str, take: Callable[[str], Taken], secret_advice: str = ""
    ) -> Taken:
        """Ask until `take` accepts the answer, which isn't shown if it has `secret_advice`."""
        if secret_advice:
            print(textwrap.fill(secret_advice, 100))
        prompt = f"({number} of {QUESTIONS}) {question}: "
        while True:
            text = (getpass.getpass(prompt) if secret_advice else input(prompt)).strip()
            try:
                taken = take(text)
            except SetupError as error:
                for problem in error.problems:
                    print(f"   {on_one_line(problem)}")
                print("   Please answer again.")
            else:
                print()
                return taken

    def _take_url(self, text: str) -> None:
        try:
            manifest = manifest_text(text, socket=not text)
        except ValueError as error:
            raise SetupError(str(error)) from None
        if text:
            self._given["url"] = text
        print(f"\n{manifest}")
        print(
            "Create the app: https://api.slack.com/apps, Create New App, From a manifest, paste the"
        )
        print("text above. Install it, then type /invite @gatehouse in both channels.")

    def _take_tokens(self, text: str) -> None:
        second = "slack_signing_secret" if "url" in self._given else "slack_app_token"
        for word in text.split():
            key = next((key for mark, key in TOKENS.items() if word.startswith(mark)), "")
            if (key or "slack_signing_secret") in ("slack_bot_token", second):
                self._given[key or second] = word
        missing = [key for key in ("slack_bot_token", second) if key not in self._given]
        if missing:
            raise SetupError(f"The {' and the '.join(missing)} is missing.".replace("_", " "))
        token = str(self._given["slack_bot_token"])
        team = asyncio.run(team_of(token, self._api_url))
        self._look_up()
        print(f"   Connected to the workspace {on_one_line(team)}.")

    def _look_up(self) -> None:
        token = str(self._given["slack_bot_token"])
        found = workspace_names(token, self._api_url)
        self._workspace = self._known.workspace = asyncio.run(found)

    def _take_channels(self, text: str) -> None:
        words = text.split() or ["#alerts", "#approvals"]
        if len(words) != 2:  # noqa: PLR2004 - two channels
            raise SetupError("Name two channels, such as #alerts #approvals.")
        self._look_up()  # the bot may have been invited a moment ago
        problems: list[str] = []
        ids = [self._workspace.channel_id(name, problems) for name in words]
        refuse(problems)
        self._given |= zip(CHANNELS, ids, strict=True)

    def _take_people(self, key: str, text: str) -> None:
        problems: list[str] = []
        ids = self._workspace.ids_of(text.replace(",", " ").split(), problems)
        refuse(problems)
        names = [self._workspace.shown.get(found, f"{found} (not found)") for found in ids]
        understood = "everybody" if EVERYBODY in ids else ", ".join(names) or "nobody"
        print(f"   {key.capitalize()}: {on_one_line(understood)}.")
        self._given[key] = ids

    def _ask_inventory(self) -> None:
        def take_place(text: str) -> dict[str, Any] | None:
            if not text:
                return None
            vendor, words = _vendor(text, INVENTORY, "zoho")
            if not words or not set(words) <= set(DATA_CENTERS):
                raise SetupError(f"Enter data centers: {' '.join(DATA_CENTERS)}.")
            return {**vendor, "data_centers": dict.fromkeys(words)}

        place = self._ask(
            7,
            "Zoho Inventory: data centers, separated by spaces, such as com eu (leave empty to"
            " skip; for another vendor: its URL, its token URL if it has one, then data centers)",
            take_place,
        )
        if place is None:
            return
        names = ", then ".join(place["data_centers"])
        self._ask(
            8,
            f"For {names}: client ID, client secret and code, or an authtoken alone, with spaces"
            " between. They are not shown",
            partial(self._take_inventory, place),
            INVENTORY[place["vendor"]].advice or "Ask the vendor for them.",
        )
        self._choose_organizations(self._known.listed or {})

    def _take_inventory(self, place: dict[str, Any], text: str) -> None:
        names, words = list(place["data_centers"]), text.split()
        keys = ("client_id", "client_secret", "code")
        if len(words) == len(names):
            credentials = [{"authtoken": word} for word in words]
        elif len(words) == len(keys) * len(names):
            parts = zip(*[iter(words)] * len(keys), strict=True)
            credentials = [dict(zip(keys, part, strict=True)) for part in parts]
        else:
            raise SetupError(
                f"{len(keys) * len(names)} words are needed, but you entered {len(words)}."
            )
        data_centers = dict(zip(names, credentials, strict=True))
        given = {**self._given, "inventory": {**place, "data_centers": data_centers}}
        inventory = answers_of(given).inventory
        if inventory is None:
            raise AssertionError  # just given
        self._list_organizations(inventory)
        self._given = given

    def _list_organizations(self, inventory: InventoryAnswer) -> None:
        def tried() -> dict[str, str]:
            token = str(self._given["slack_bot_token"])
            settings = inventory_settings(inventory, self._known.tokens)
            return {**self._rest, **UNASKED, "SLACK_BOT_TOKEN": token, **settings}

        check_settings(tried())
        exchange(inventory, self._known)
        self._known.listed = asyncio.run(listings(check_settings(tried())))
        problems = [found.problem for found in self._known.listed.values() if found.problem]
        if problems:
            raise SetupError(*problems)
        for name, found in self._known.listed.items():
            print(f"   {name} lists {len(found.organizations)} organizations.")

    def _choose_organizations(self, listed: Mapping[str, Listed]) -> None:
        rows = [(name, row) for name, found in listed.items() for row in found.organizations]
        if len(rows) <= len(listed):
            return
        for number, (name, row) in enumerate(rows, start=1):
            print(f"   {number:>3}  {name}  {row.organization_id}  {on_one_line(row.name)}")
        for name, found in listed.items():
            if found.plan is not None:
                print(f"   {name}: {found.day_limit} calls allowed per day ({found.plan}).")

        def take(text: str) -> None:
            for number in _numbers(text, len(rows)):
                name, row = rows[number - 1]
                self._known.chosen[name] = row.organization_id

        self._ask(
            9,
            "Listing organizations uses up a few API calls of one organization. Which"
            " organization? Enter a number for each data center (leave empty for the account's"
            " default organization)",
            take,
        )

    def _ask_flow(self) -> None:
        flows = self._ask(
            10,
            "Twilio Studio: account SID and auth token, with a space between (leave empty to skip;"
            " for another vendor, enter its address first). They are not shown",
            self._take_flow,
            FLOW["twilio"].advice,
        )
        if flows is None:
            return
        for number, name in enumerate(flows.values(), start=1):
            print(f"   {number:>3}  {on_one_line(name)}")
        self._ask(
            11,
            "Which flows? Numbers, or alias=SID, such as welcome=FW0123… (leave empty for all)"
            if flows
            else "Which flows? Enter alias=SID, such as welcome=FW0123…",
            partial(self._take_flows, flows),
        )

    def _take_flow(self, text: str) -> dict[str, str] | None:
        if not text:
            return None
        vendor, words = _vendor(text, FLOW, "twilio")
        if len(words) != 2:  # noqa: PLR2004 - the two
            raise SetupError("Enter two words: the account SID (AC…) and the auth token.")
        account, token = words
        given = {**self._given, "flow": {**vendor, "account_sid": account, "auth_token": token}}
        flow, flows = answers_of(given).flow, dict[str, str]()
        if flow is not None and FLOW[flow.vendor].has_flow_listing:
            flows = asyncio.run(flows_of(flow_address(flow), account, token))
        self._given = given
        return flows

    def _take_flows(self, flows: Mapping[str, str], text: str) -> None:
        words = text.replace(",", " ").split()
        pairs = [word.partition("=") for word in words if "=" in word]
        aliases = {alias: sid for alias, _, sid in pairs}
        numbers = _numbers(" ".join(word for word in words if "=" not in word), len(flows))
        for number in numbers if words else range(1, len(flows) + 1):
            sid, name = list(flows.items())[number - 1]
            aliases[alias_of(name, aliases)] = sid
        self._given["flow"] = {**self._given["flow"], "aliases": aliases}

    def _ask_email(self) -> None:
        def take(text: str) -> None:
            if text:
                vendor, words = _vendor(text, EMAIL, "sendgrid")
                email = {**vendor, "api_key": " ".join(words)}
                answers_of({**self._given, "email": email})
                self._given["email"] = email

        self._ask(
            12,
            "SendGrid: API key (leave empty to skip; for another vendor, enter its address first)."
            " It is not shown",
            take,
            EMAIL["sendgrid"].advice,
        )


def _vendor(
    text: str, vendors: Mapping[str, object], usual: str
) -> tuple[dict[str, str], list[str]]:
    words = text.split()
    addresses = [word for word in words if word.startswith(("http://", "https://"))]
    named = next((word for word in words if word in vendors), "other" if addresses else usual)
    rest = [word for word in words if word not in (*addresses, named)]
    return {"vendor": named, **dict(zip(("base_url", "token_url"), addresses, strict=False))}, rest


def _numbers(text: str, most: int) -> list[int]:
    words = text.replace(",", " ").split()
    if not all(word.isdecimal() and 1 <= int(word) <= most for word in words):
        raise SetupError(f"Enter numbers from 1 to {most}.")
    return [int(word) for word in words]
