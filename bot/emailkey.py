"""The `/emailkey` command, which tests the email service's API key and lists its templates."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import Literal

from pydantic import SecretStr
from yarl import URL

from bot.commands import EMAILKEY
from bot.services.calls import ServiceCall
from bot.services.credentials import basic, bearer
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError, json_of
from bot.services.http import ServiceHttp
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import Message, SlackBlock, page_count
from bot.slack.parse import asks_for_help, read_words, refuse_endless, unknown

DEFAULT_RESOURCE = "templates"
LONGEST_RESOURCE = 100
MOST_RESOURCES = 10
# A path under /v3 that can't leave /v3 or change the request.
RESOURCE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")
# "username is always the literal apikey" (specification, area A, authentication, 3).
BASIC_USER = "apikey"
# SendGrid lists only legacy templates without this parameter. Other services ignore it.
GENERATIONS = {"generations": "legacy,dynamic"}
PAGE = 20

EmailAuth = Literal["bearer", "basic"]
MODES = {"bearer": "Bearer", "basic": "Basic, user apikey"}


@dataclass(frozen=True)
class EmailKeyRequest:
    """A parsed `/emailkey` command. `resources` are the paths under `/v3/` to test with the key."""

    form: Literal["check", "templates", "help"]
    resources: tuple[str, ...] = (DEFAULT_RESOURCE,)


def parse_emailkey(typed: str) -> EmailKeyRequest:
    """Parse the text after `/emailkey`. Empty text is a request for help."""
    refuse_endless(typed, EMAILKEY)
    words = read_words(typed)
    if not words or asks_for_help(words):
        return EmailKeyRequest("help")
    match [word.keyword for word in words]:
        case ["templates"]:
            return EmailKeyRequest("templates")
        case ["check"]:
            return EmailKeyRequest("check")
        case ["check", *resources] if len(resources) <= MOST_RESOURCES:
            named = [word.text.strip("/").removeprefix("v3/") for word in words[1:]]
            if all(len(name) <= LONGEST_RESOURCE and RESOURCE.fullmatch(name) for name in named):
                return EmailKeyRequest("check", tuple(dict.fromkeys(named)))
            sentence = "A resource is a name like templates or a path like user/profile."
            raise EMAILKEY.misuse(sentence, "check")
    raise unknown(EMAILKEY, words)


class KeyVerdict(Enum):
    """The result of testing the key. Each result has a heading and a label for tables."""

    GOOD = (":white_check_mark: *The email key works.*", "works")
    REFUSED = (":x: *The email key was rejected.*", "key rejected")
    LACKS_PERMISSION = (
        ":warning: *The email key doesn't have permission for this.*",
        "no permission",
    )
    MISSING = (":warning: *The email service doesn't have this resource.*", "not found")
    UNKNOWN = (":warning: *Couldn't check the email key.*", "not checked")


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """A test of the key: how the key was sent, the resource, and the result.

    `advice` is the recommended fix, or an empty string if the key works.
    """

    mode: str
    resource: str
    verdict: KeyVerdict
    advice: str = ""


@dataclass(frozen=True, slots=True)
class EmailTemplate:
    """A template's name and ID, if the service returns them."""

    template_id: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class EmailTemplates:
    """The `templates` that have a name or an ID, and the `count` of all templates, if known."""

    templates: tuple[EmailTemplate, ...]
    count: int | None


def templates_in(body: object) -> EmailTemplates:
    """Return the templates in a response's body, whose format isn't specified.

    The body can be a list, or an object with a list under `templates` or `result`.
    """
    places = [body]
    if isinstance(body, dict):
        places = [body.get("templates"), body.get("result")]
    listing = next((place for place in places if isinstance(place, list)), None)
    if listing is None:
        return EmailTemplates((), None)
    read = [
        EmailTemplate(_text_of(entry.get("id")), _text_of(entry.get("name")))
        for entry in listing
        if isinstance(entry, dict)
    ]
    named = tuple(template for template in read if template.template_id or template.name)
    return EmailTemplates(named, len(listing))


def _text_of(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


class EmailClient:
    """A client for the email service. Every request also tests the key."""

    def __init__(
        self, http: ServiceHttp, base_url: URL, api_key: SecretStr, auth: EmailAuth = "bearer"
    ) -> None:
        self._http = http
        self._base_url = base_url
        self.auth = auth
        self._headers = bearer(api_key) if auth == "bearer" else basic(BASIC_USER, api_key)

    async def get(self, resource: str) -> object:
        """Return the parsed JSON of `/v3/<resource>`, or None if the response has no body."""
        or_basic = ""
        if self.auth == "basic":
            or_basic = (
                " If the account doesn't accept Basic auth (for example, because it uses two-factor"
                " authentication), set EMAIL_AUTH=bearer."
            )
        refused = (
            "Usually, the key is incorrect or has been deleted, or EMAIL_BASE_URL is another"
            " region's. Create a new key in the settings of the account's console, and set"
            " EMAIL_API_KEY. To sign in, you need a phone that can receive a code by SMS."
        )
        lacking = (
            "Usually, the key lacks a permission. Give the key read access to"
            f" “{resource}”, or use another key."
        )
        call = ServiceCall(
            service="email",
            label="the email service",
            method="GET",
            url=self._base_url.joinpath("v3", *resource.split("/")),
            params=GENERATIONS if resource == "templates" else {},
            headers={**self._headers, "Content-Type": "application/json"},
            advice={
                HTTPStatus.UNAUTHORIZED: refused + or_basic,
                HTTPStatus.FORBIDDEN: lacking + or_basic,
                HTTPStatus.NOT_FOUND: f"The resource “{resource}” probably doesn't exist.",
            },
        )
        return await self._http.request(
            call, lambda answer: json_of(call, answer) if answer.body.strip() else None
        )

    async def check(self, resources: Sequence[str]) -> list[KeyCheck]:
        """Test the key on each resource, and return the results, including any failures."""
        mode = MODES[self.auth]
        checks = []
        for resource in resources:
            try:
                await self.get(resource)
                checks.append(KeyCheck(mode, resource, KeyVerdict.GOOD))
            except CredentialsRefused as failure:
                checks.append(KeyCheck(mode, resource, KeyVerdict.REFUSED, failure.sentence))
            except PermissionMissing as failure:
                verdict = KeyVerdict.LACKS_PERMISSION
                checks.append(KeyCheck(mode, resource, verdict, failure.sentence))
            except ServiceError as failure:
                is_missing = failure.status == HTTPStatus.NOT_FOUND
                verdict = KeyVerdict.MISSING if is_missing else KeyVerdict.UNKNOWN
                checks.append(KeyCheck(mode, resource, verdict, failure.sentence))
        return checks

    async def templates(self) -> EmailTemplates:
        """Return the account's templates."""
        return templates_in(await self.get("templates"))


def verdicts(checks: Sequence[KeyCheck]) -> Message:
    """Show the result for each resource, and show each piece of advice once."""
    if len(checks) == 1:
        check = checks[0]
        markup = check.verdict.value[0]
        markup += f"\n{text.sentence(check.advice, 1000)}" if check.advice else ""
        asked = text.code(f"GET /v3/{check.resource}")
        footnote = f"Tested with {asked} ({text.escape(check.mode)})"
        blocks = (block_kit.section(markup), block_kit.context(footnote))
        return Message(f"{markup}\n{footnote}", blocks)
    good = sum(check.verdict is KeyVerdict.GOOD for check in checks)
    mark = ":white_check_mark:" if good == len(checks) else ":warning:"
    summary = f"{mark} *The email key works for {good} of {len(checks)} resources.*"
    rows = [(f"/v3/{check.resource}", check.verdict.value[1]) for check in checks]
    advice = dict.fromkeys(text.sentence(check.advice, 500) for check in checks if check.advice)
    footnote = f"Tested with {text.escape(checks[0].mode)}"
    fallback = [f"{text.code(path)} {result}" for path, result in rows]
    return Message(
        "\n".join([summary, *fallback, *advice, footnote]),
        (
            block_kit.section(summary),
            block_kit.table([("Resource", "Result"), *rows]),
            *(block_kit.section(sentence) for sentence in advice),
            block_kit.context(footnote),
        ),
    )


def templates(found: EmailTemplates, page: int = 0) -> Message:
    """Show one page of the templates, or explain why there are none to show."""
    if not found.templates:
        markup = "There are no templates."
        if found.count is None:
            markup = "The response has no list of templates."
        elif found.count:
            markup = f"Found {text.count(found.count, 'template')}, but no names or IDs."
        return Message(markup, (block_kit.section(markup),))
    pages = page_count(len(found.templates), PAGE)
    page = min(page, pages - 1)
    rows = [
        (template.name or "–", template.template_id or "–")
        for template in found.templates[page * PAGE : (page + 1) * PAGE]
    ]
    summary = f"*{text.count(found.count or 0, 'template')}*"
    unnamed = (found.count or 0) - len(found.templates)
    if unnamed:
        summary += f", {unnamed:,} without a name or ID"
    lines = [" · ".join(text.escape(cell, 90) for cell in row) for row in rows]
    turning: list[SlackBlock] = []
    if buttons := block_kit.turns(ids.EMAILKEY_PAGE, page, pages):
        turning = [block_kit.context(f"Page {page + 1} of {pages}"), block_kit.actions(*buttons)]
    blocks = (block_kit.section(summary), block_kit.table([("Name", "ID"), *rows]), *turning)
    return Message("\n".join([summary, *lines]), blocks)
