"""Asks the setup questions in a terminal."""

import getpass
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from bot.checks.checks import Check, Listed, app_token, channels, email, flows, inventory, roles
from bot.ops.loop import run
from bot.ops.redaction import on_one_line
from bot.organizations.rules import Organization
from bot.services.calls import REFUSED
from bot.settings import SettingsError
from bot.settings.model import DATA_CENTERS
from bot.setup.answers import (
    Table,
    check_settings,
    exchange_codes,
    flows_of,
    link_of,
    tried,
    workspace_of,
)
from bot.setup.names import Workspace
from bot.setup.vendors import DATA_CENTER, OTHER, SENDGRID, TWILIO, ZOHO, Vendor

QUESTIONS = 12
LONGEST_ALIAS = 40
ID = re.compile(r"\*|[UWSCGD][A-Z0-9]{2,}")
APP_ADVICE = (
    "Install the app, and then type /invite @gatehouse in the channel for alerts and in the channel"
    " for approvals."
)
TOKENS_ADVICE = (
    "The Bot User OAuth Token is on the app's Install App page. The Signing Secret is on the Basic"
    " Information page. For Socket Mode, create a token with the scope connections:write under"
    " App-Level Tokens on that page."
)
CHANNELS = {
    "alerts_channel": ("alerts", "Which channel should get alerts?"),
    "approvals_channel": ("approvals", "Which private channel should get the approval cards?"),
}
SECOND_SECRETS = [
    ("slack_signing_secret", "Signing Secret"),
    ("slack_app_token", "app-level token (xapp-…)"),
]
PEOPLE = {
    "operator": "Who can request changes? Enter people or user groups, or * for everyone",
    "admin": "Who are the admins? Admins can apply changes without approval (leave empty for none)",
    "approver": (
        "Who can approve changes? Enter at least two people, such as @ada @abel, or a user group"
    ),
}
# The problems because of which the question about each role is asked again.
UNKNOWN = ("user_unknown", "group_unknown")
# Stand-ins for settings that an answer is tried without. With a flow service, approvers are needed.
REST = {
    "slack_signing_secret": "not-known-so-far-1",
    "alerts_channel": "C0",
    "approvals_channel": "C0",
    "flow_base_url": "https://flow.example.com",
    "flow_account_sid": "AC0",
    "flow_auth_token": "not-known-so-far",
}
OAUTH = {"client_id": "-", "client_secret": "-", "refresh_token": "-"}
Taken = TypeVar("Taken")
Row = TypeVar("Row")


def ask(rest: Table) -> tuple[Table, list[str]]:
    """Ask all questions. Return the settings, and the reasons why some credentials are left out.

    `rest` contains the settings that setup doesn't ask for.
    """
    if not sys.stdin.isatty():
        problem = (
            "Setup can ask its questions only in a terminal. To answer in a file instead, use"
            " --answers FILE."
        )
        raise SettingsError([problem])
    print(
        "There are at most 12 questions. Nothing is written until the end. Press Ctrl-C to stop.\n"
    )
    questions = _Questions(rest)
    questions.ask()
    return questions.table, [f"{name} was refused." for name in sorted(questions.refused)]


def _again(act: Callable[[], Taken]) -> Taken:
    """Ask, and try the answer, until there is no problem."""
    while True:
        try:
            taken = act()
        except SettingsError as error:
            for problem in error.problems:
                print(f"   {on_one_line(problem)}")
            print("   Please try again.")
        else:
            print()
            return taken


def _read(number: int, question: str) -> str:
    return input(f"({number} of {QUESTIONS}) {question}: ").strip()


def _secret(number: int, question: str) -> str:
    prompt = f"({number} of {QUESTIONS}) {question}. Your input is hidden: "
    return getpass.getpass(prompt).strip()


class _Questions:
    """Asks the questions. The settings so far are valid after those about Slack.

    `refused` names what was refused, until another answer is accepted.
    """

    def __init__(self, rest: Table) -> None:
        self.table: Table = {**rest, "roles": {"viewer": ["*"]}}
        self.refused: set[str] = set()
        self._workspace = Workspace()

    def _take(self, subject: str, settings: Table, check: Check, *words: str) -> Listed:
        """Keep settings that a check finds right. Add the entries of a table to those before.

        A code is exchanged for its refresh token first. Return the organizations that were listed.

        Raises:
            SettingsError: There's a problem with one of these codes or subjects. Without words,
                every problem counts.
        """
        trial = {**REST, **self.table, **settings}
        problems = exchange_codes(trial)
        self.refused.add(subject)
        if problems:
            raise SettingsError(problems)
        findings, listed = run(tried(check_settings(trial), check))
        problems = [
            row.sentence
            for row in findings
            if not row.is_well and (not words or {row.code, row.subject} & {*words})
        ]
        if problems:
            raise SettingsError(problems)
        self.refused.remove(subject)
        for name, value in settings.items():
            is_table = isinstance(value, dict)
            self.table[name] = {**self.table.get(name, {}), **value} if is_table else value
        return listed

    def ask(self) -> None:
        """Ask each question until its answer is right."""
        is_socket = _again(_url)
        print(textwrap.fill(TOKENS_ADVICE, 100))
        _again(self._bot_token)
        name, label = SECOND_SECRETS[is_socket]
        _again(lambda: self._take(name, {name: _secret(2, f"Paste the {label}")}, app_token))
        for key in CHANNELS:
            _again(partial(self._channel, key))
        for number, role in enumerate(PEOPLE, start=4):
            _again(partial(self._people, number, role))
        print("Everyone else can view data, with identities masked. To change this, edit ROLES.\n")
        for name, (own, token_url) in _again(self._inventory).items():
            rows = _again(partial(self._data_center, name, own, token_url))
            if len(rows) > 1:
                _again(partial(self._organization, name, rows))
        print(textwrap.fill(TWILIO.advice, 100))
        names = _again(self._flow)
        if names is not None:
            _print_list(names.values())
            _again(partial(self._flows, names))
        print(textwrap.fill(SENDGRID.advice, 100))
        _again(self._email)

    def _bot_token(self) -> None:
        self.table["slack_bot_token"] = _secret(2, "Paste the Bot User OAuth Token (xoxb-…)")
        check_settings({**REST, **self.table})
        self._workspace = workspace_of(self.table)

    def _channel(self, key: str) -> None:
        usual, question = CHANNELS[key]
        name = _read(3, f"{question} [#{usual}]") or usual
        self._workspace = workspace_of(self.table)  # in case the bot was just invited
        settings = self._workspace.with_ids({key: _marked("#", name)})
        self._take(key, settings, channels, key.upper())

    def _people(self, number: int, role: str) -> None:
        codes = (*UNKNOWN, "too_few_approvers") if role == "approver" else UNKNOWN
        words = _read(number, PEOPLE[role]).replace(",", " ").split()
        people = self._workspace.with_ids({role: [_marked("@", word) for word in words]})
        settings = {"roles": {**self.table["roles"], **(people if words else {})}}
        self._take("roles", settings, roles, *codes)

    def _inventory(self) -> dict[str, tuple[Table, str]]:
        """Keep the service's addresses. Return each data center's own address and token URL."""
        question = (
            "Enter the Zoho Inventory data centers, separated by spaces, such as com eu (leave"
            " empty to skip; for another vendor, enter its URL, then its token URL if it has one,"
            " then its data centers)"
        )
        vendor, addresses, words = _vendor(_read(7, question), "zoho", ZOHO)
        names = [word.casefold() for word in words]
        if not set(names) <= set(DATA_CENTERS) or (addresses and not names):
            raise SettingsError([f"Enter data centers from this list: {' '.join(DATA_CENTERS)}."])
        if not names:
            return {}
        root, token_url = (*addresses, "", "")[:2]
        is_pattern = DATA_CENTER in root
        settings = dict(vendor.settings)
        if root and not is_pattern:
            settings["inventory_base_url"] = root
        centers = {}
        for name in names:
            own = {"base_url": root.replace(DATA_CENTER, name)} if is_pattern else {}
            url = token_url.replace(DATA_CENTER, name) or vendor.token_url_of(name)
            # Only this question can correct an address.
            credential = {"oauth": {**OAUTH, "token_url": url}} if url else {"authtoken": "-"}
            trial = {"inventory_data_centers": {name: {**own, **credential}}}
            check_settings({**REST, **self.table, **settings, **trial})
            centers[name] = (own, url)
        self.table |= {**settings, "inventory_data_centers": {}}
        print(textwrap.fill(vendor.advice, 100))
        return centers

    def _data_center(self, name: str, own: Table, token_url: str) -> Sequence[Organization]:
        """Ask for a data center's credential. Return the organizations that it gives access to."""
        center = {**own}
        if client_id := _read(8, f"{name}: Enter the client ID (leave empty for an authtoken)"):
            center["oauth"] = {
                "client_id": client_id,
                "client_secret": _secret(8, f"{name}: Enter the client secret"),
                "code": _secret(8, f"{name}: Enter the code"),
                "token_url": token_url,
            }
        elif authtoken := _secret(8, f"{name}: Enter the authtoken (leave empty to skip)"):
            center["authtoken"] = authtoken
        else:
            return ()
        settings = {"inventory_data_centers": {name: center}}
        return self._take(f"inventory {name}", settings, inventory, REFUSED).get(name, ())

    def _organization(self, name: str, rows: Sequence[Organization]) -> None:
        _print_list(f"{name}  {row.organization_id}  {row.name}" for row in rows)
        answer = _read(
            9,
            "Listing organizations takes a few API calls, which count against one organization's"
            " limit. Enter the number of this organization (leave empty for the account's default)",
        )
        for row in _chosen(answer.split(), rows):
            center = self.table["inventory_data_centers"][name]
            center["organization_id"] = row.organization_id

    def _flow(self) -> dict[str, str] | None:
        """Ask for the flow service's credential. Return the names of the flows by SID."""
        question = (
            "Enter the Twilio Studio account SID (leave empty to skip; for another vendor, enter"
            " its address first)"
        )
        vendor, addresses, words = _vendor(_read(10, question), "twilio", TWILIO)
        if addresses and not words:
            raise SettingsError(["Enter the account SID too, after the address."])
        if not words:
            return None
        settings = {
            **vendor.settings,
            **({"flow_base_url": addresses[0]} if addresses else {}),
            "flow_account_sid": " ".join(words),
            "flow_auth_token": _secret(10, "Enter the auth token"),
        }
        self._take("flow", settings, flows, REFUSED)
        if vendor is not TWILIO:
            return {}
        return run(flows_of(check_settings(self.table)))

    def _flows(self, names: Mapping[str, str]) -> None:
        question = "Which flows? Enter alias=SID, such as welcome=FW0123… (leave empty for none)"
        if names:
            question = (
                "Which flows? Enter numbers or alias=SID, such as welcome=FW0123… (leave empty for"
                " all)"
            )
        words = _read(11, question).replace(",", " ").split()
        aliases = dict(word.split("=", 1) for word in words if "=" in word)
        rows = list(names.items())
        chosen = _chosen([word for word in words if "=" not in word], rows)
        for sid, name in chosen if words else rows:
            alias = re.sub(r"\W+", "-", name.casefold()).strip("-")[:LONGEST_ALIAS] or "flow"
            while alias in aliases:
                alias += "-2"
            aliases[alias] = sid
        settings = {"flow_aliases": aliases}
        check_settings({**self.table, **settings})
        self.table |= settings

    def _email(self) -> None:
        address = _read(12, "Enter the address of the email service (leave empty for SendGrid)")
        key = _secret(12, "Enter the API key (leave empty to skip)")
        if key:
            base_url = address or SENDGRID.settings["email_base_url"]
            settings = {"email_base_url": base_url, "email_api_key": key}
            self._take("email", settings, email, REFUSED)


def _url() -> bool:
    """Print the link that creates the app, and return True if it uses Socket Mode."""
    url = _read(
        1,
        "Enter the public address where Slack can reach the bot, such as https://bot.example.com"
        " (leave empty to use Socket Mode, which needs no address)",
    )
    print(f"\nThis link creates the app:\n{link_of(url, is_socket=not url)}\n\n{APP_ADVICE}")
    return not url


def _vendor(text: str, name: str, usual: Vendor) -> tuple[Vendor, list[str], list[str]]:
    """Return the vendor, the addresses and the other words in an answer."""
    words = text.split()
    addresses = [word for word in words if "://" in word]
    vendor = OTHER if addresses and name not in words else usual
    return vendor, addresses, [word for word in words if word not in {name, *addresses}]


def _marked(mark: str, word: str) -> str:
    """Return an ID, or a name with its mark."""
    return word if ID.fullmatch(word) else mark + word.lstrip("@#")


def _print_list(lines: Iterable[str]) -> None:
    for number, line in enumerate(lines, start=1):
        print(f"   {number:>3}  {on_one_line(line)}")


def _chosen(words: list[str], rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the numbers that were typed."""
    if not all(word.isdecimal() and 1 <= int(word) <= len(rows) for word in words):
        raise SettingsError([f"Enter numbers from 1 to {len(rows)}."])
    return [rows[int(word) - 1] for word in words]
