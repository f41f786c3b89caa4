"""The forms of all slash commands.

The help, the usage in errors, Slack's usage hints in the manifest, and the permission checks for
commands all use these definitions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from bot.errors import UsageError
from bot.permissions import Permission
from bot.spelling import closest

HELP = "help"
# The kind that only opens a form in Slack. Nothing changes until the form is submitted.
FORM = "form"


@dataclass(frozen=True)
class Form:
    """One form of a command, such as `/orgs show <id or name>`.

    `kind` is the parser's name for the form, and `does` is its description in the help. `hint`
    replaces `arguments` in Slack's usage hint, and an empty `hint` leaves the form out of the hint.
    """

    kind: str
    arguments: str
    does: str
    permission: Permission
    example: str = ""
    hint: str | None = None


@dataclass(frozen=True)
class Command:
    """A slash command and its description in Slack. `name` includes the slash."""

    name: str
    description: str
    forms: tuple[Form, ...]

    @property
    def usage_hint(self) -> str:
        """The hint that Slack shows while a person types the command: all forms on one line."""
        hints = [form.arguments if form.hint is None else form.hint for form in self.forms]
        return f"[{' | '.join([*filter(None, hints), HELP])}]"

    @property
    def subcommands(self) -> list[str]:
        """The words that can directly follow the command's name."""
        words = dict.fromkeys(form.arguments.partition(" ")[0] for form in self.forms)
        return [*filter(str.isalpha, words), HELP]

    def meant(self, typed: Sequence[str]) -> str | None:
        """Return the subcommand closest to the first typed word, unless it's no typo.

        In `please add`, the first word is in the way, but not misspelt.
        """
        names = self.subcommands
        first, *others = [word.casefold() for word in typed[:2]]
        if first in names or set(others) & set(names):
            return None
        return next(iter(closest(first, names)), None)

    def usage(self, kind: str | None = None) -> str:
        """Return the usage of one form, or of all forms if no kind is given."""
        if kind is None:
            return f"{self.name} {self.usage_hint[1:-1]}"
        return f"{self.name} {self._forms[kind].arguments}".rstrip()

    def example(self, kind: str | None = None) -> str:
        """Return an example of the given form, or the first example if no kind is given."""
        forms = [self._forms[kind]] if kind else self.forms
        example = next((form.example for form in forms if form.example), "")
        return f"{self.name} {example}".rstrip()

    def permission(self, kind: str) -> Permission:
        """Return the permission that a form requires, or raise KeyError for an unknown form."""
        return Permission.ASK_FOR_HELP if kind == HELP else self._forms[kind].permission

    def misuse(self, sentence: str, kind: str | None = None) -> UsageError:
        """Return an error with the problem, the form's usage, and an example."""
        return UsageError(sentence, self.usage(kind), self.example(kind), kind)

    @cached_property
    def _forms(self) -> dict[str, Form]:
        return {form.kind: form for form in self.forms}


READ = Permission.READ
REQUEST = Permission.REQUEST

ORGS = Command(
    "/orgs",
    "List, search and show organizations",
    (
        Form("list", "", "list all organizations", READ),
        Form("search", "<text>", "search by name, ID, contact or currency", READ, "EUR"),
        Form("show", "show <id or name>", "show one organization's details", READ, "show 10234695"),
        Form("refresh", "refresh", "reload the list", Permission.REFRESH),
    ),
)

RATELIMITS = Command(
    "/ratelimits",
    "See API usage and limits per organization",
    (
        Form(
            "all",
            "",
            "show the API usage of every organization, starting with those closest to a limit",
            READ,
        ),
        Form(
            "one", "<org>", "show one organization's usage over the last 24 hours", READ, "10234695"
        ),
        Form("check", "check <org>", "make one test call", Permission.REFRESH, "check 10234695"),
        Form(
            "plan",
            "plan <org> <plan>",
            "change an organization's plan",
            Permission.SET_PLAN,
            "plan 10234695 standard",
        ),
    ),
)

TESTUSERS = Command(
    "/testusers",
    "See, add or remove a flow's test users",
    (
        Form(FORM, "", "open a form to add or remove test users", REQUEST),
        Form(
            "list",
            "list <flow> [<text>]",
            "show who can test the flow, who approved their access, and when it ends",
            READ,
            "list welcome",
            hint="list <flow>",
        ),
        Form(
            "add",
            "add <flow> <identity or @preset>… [for <duration>] [until <time>] [because <reason>]",
            "ask to add people",
            REQUEST,
            "add welcome +15550100 for 2h because we will demo it on Friday",
            hint="add <flow> <identity>…",
        ),
        Form(
            "remove",
            "remove <flow> <identity or @preset>… [because <reason>]",
            "ask to remove people",
            REQUEST,
            "remove welcome +15550100 because the test is over",
            hint="remove …",
        ),
        Form(
            "now",
            "… now because <reason>",
            "apply a change without approval",
            Permission.OVERRIDE,
            "add welcome +15550100 now because the demo has begun",
            hint="",
        ),
        Form(
            "history",
            "history <flow>",
            "show past requests, and who approved or denied them",
            READ,
            "history welcome",
            hint="history …",
        ),
        Form(
            "requests",
            "requests",
            "list the requests that are waiting for approval",
            READ,
            "requests",
        ),
        Form("mine", "mine", "show your requests, and the access you requested", READ, "mine"),
        Form(
            "review",
            "review [<flow>]",
            "list everyone whose access has no end date",
            REQUEST,
            "review",
            hint="review",
        ),
        Form("presets", "presets", "list saved groups of people", READ, "presets"),
        Form(
            "save_preset",
            "preset save <name> <identity>…",
            "save a group of people, so that `@name` stands for all of them",
            REQUEST,
            "preset save demo-team +15550100 +15550101",
            hint="preset …",
        ),
        Form(
            "delete_preset",
            "preset delete <name>",
            "delete a preset",
            REQUEST,
            "preset delete demo-team",
            hint="",
        ),
    ),
)

EMAILKEY = Command(
    "/emailkey",
    "Test the email API key and list templates",
    (
        Form("check", "check [resource]", "test the key", READ, "check templates"),
        Form("templates", "templates", "list templates", READ, example="templates"),
    ),
)

GATEHOUSE = Command(
    "/gatehouse",
    "See help, your permissions, the bot's status and the audit log",
    (
        Form(
            "whoami",
            "whoami",
            "show your role and what you can do",
            Permission.ASK_FOR_HELP,
            "whoami",
        ),
        Form("status", "status", "check that everything is working", READ, "status"),
        Form(
            "audit", "audit [n]", "show recent audit log entries", Permission.READ_AUDIT, "audit 20"
        ),
    ),
)

COMMANDS = (ORGS, RATELIMITS, TESTUSERS, EMAILKEY, GATEHOUSE)
