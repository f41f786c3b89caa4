"""The `/emailkey` command, which tests the email service's API key and lists its templates."""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Literal

from pydantic import SecretStr
from yarl import URL

from bot.commands import EMAILKEY
from bot.services.calls import ServiceCall
from bot.services.credentials import BEARER, authorization, basic
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError, json_of
from bot.services.http import ServiceHttp
from bot.settings.model import EmailAuth
from bot.slack.messages import block_kit, ids, text
from bot.slack.messages.block_kit import FIRST, Message, Page, Wanted
from bot.slack.parse import asks_for_help, unknown, words_of
from bot.spelling import visible

LONGEST_RESOURCE = 100
# A path under /v3 that can't leave /v3 or change the request.
RESOURCE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")
# "username is always the literal apikey" (specification, area A, authentication, 3).
BASIC_USER = "apikey"
# SendGrid lists only legacy templates without this parameter. Other services ignore it.
GENERATIONS = {"generations": "legacy,dynamic"}
PAGE = 20

MODES = {"bearer": "Bearer", "basic": "Basic, user apikey"}

UNKNOWN = ":warning: *Couldn't check the email key.*"
# The headings for errors, by their outcome.
HEADINGS = {
    CredentialsRefused.outcome: ":x: *The email key was rejected.*",
    PermissionMissing.outcome: ":warning: *The email key doesn't have permission for this.*",
}


@dataclass(frozen=True)
class EmailKeyRequest:
    """A parsed `/emailkey` command. `resource` is the path under `/v3/` to test with the key."""

    form: Literal["check", "templates", "help"]
    resource: str = "templates"


def parse_emailkey(typed: str) -> EmailKeyRequest:
    """Parse the text after `/emailkey`. Empty text is a request for help."""
    words = words_of(typed, EMAILKEY)
    if not words or asks_for_help(words):
        return EmailKeyRequest("help")
    match [word.keyword for word in words]:
        case ["templates" | "check" as form]:
            return EmailKeyRequest(form)
        case ["check", *_]:
            typed_name = visible(" ".join(word.text for word in words[1:]))
            resource = typed_name.strip("/").removeprefix("v3/")
            if len(resource) <= LONGEST_RESOURCE and RESOURCE.fullmatch(resource):
                return EmailKeyRequest("check", resource)
            sentence = "A resource is a name, such as templates, or a path, such as user/profile."
            raise EMAILKEY.misuse(sentence, "check")
    raise unknown(EMAILKEY, words)


def _text_of(value: object) -> str:
    is_text = isinstance(value, str | int) and not isinstance(value, bool)
    return str(value if is_text else "") or "–"


@dataclass
class EmailClient:
    """A client for the email service. Every request also tests the key."""

    http: ServiceHttp
    base_url: URL
    api_key: SecretStr
    auth: EmailAuth

    async def get(self, resource: str) -> object:
        """Return the parsed JSON of `/v3/<resource>`, or None if the response has no body."""
        refused = (
            "Usually, the key is incorrect or has been deleted, or EMAIL_BASE_URL belongs"
            " to another region. Create a new key in your account's settings, and use it as"
            " EMAIL_API_KEY. To sign in to the account, you need a phone that can receive a code"
            " by SMS."
        )
        lacking = (
            "Usually, the key lacks a permission. Give the key read access to"
            f" “{resource}”, or use another key."
        )
        headers = basic(BASIC_USER, self.api_key)
        if self.auth == "bearer":
            headers = authorization(BEARER, self.api_key.get_secret_value())
        call = ServiceCall(
            service="email",
            label="the email service",
            method="GET",
            url=self.base_url.joinpath("v3", *resource.split("/")),
            params=GENERATIONS if resource == "templates" else {},
            headers={**headers, "Content-Type": "application/json"},
            advice={
                HTTPStatus.UNAUTHORIZED: refused,
                HTTPStatus.FORBIDDEN: lacking,
                HTTPStatus.NOT_FOUND: (
                    f"The resource “{resource}” doesn't exist, or EMAIL_BASE_URL is incorrect."
                ),
            },
        )
        return await self.http.request(
            call, lambda body: json_of(call, body) if body.strip() else None
        )

    async def check(self, resource: str) -> Message:
        """Test the key on the resource, and show the result and the recommended fix, if any.

        Raises:
            ServiceError: The error is temporary and says nothing about the key.
        """
        markup = ":white_check_mark: *The email key works.*"
        try:
            await self.get(resource)
        except ServiceError as failure:
            if failure.is_passing:
                raise
            heading, sentence = HEADINGS.get(failure.outcome, UNKNOWN), failure.sentence
            if failure.status == HTTPStatus.NOT_FOUND:
                heading = ":warning: *The email service doesn't have this resource (HTTP 404).*"
                sentence = f"The response says: “{failure.message}”" if failure.message else ""
            markup = f"{heading}\n{text.sentence(sentence, 1000)}".rstrip()
        asked = text.code(f"GET /v3/{resource}")
        footnote = block_kit.context(f"Tested with {asked} ({MODES[self.auth]})")
        return Message.of(markup).plus(footnote)


def templates(body: object, wanted: Wanted = FIRST) -> Message:
    """Show one page of the templates in a response's body, whose format isn't specified.

    The body can be an object with a list under `templates` or `result`.
    """
    places = (body.get("templates"), body.get("result")) if isinstance(body, dict) else ()
    listing = next((place for place in places if isinstance(place, list)), None)
    if listing is None:
        return Message.of("The response has no list of templates.")
    rows = [
        tuple(_text_of(entry.get(key)) for key in ("name", "id"))
        for entry in listing
        if isinstance(entry, dict)
    ]
    labelled = [row for row in rows if row != ("–", "–")]
    summary = f"*{text.count(len(listing), 'template')}*"
    if unnamed := len(listing) - len(labelled):
        summary += f", {unnamed:,} without a name or ID"
    if not labelled:
        return Message.of(summary)
    page = Page.cut(labelled, PAGE, wanted)
    lines = [" · ".join(text.escape(cell, 90) for cell in row) for row in page.items]
    rows = [("Name", "ID"), *page.items]
    turns = page.turns(ids.EMAILKEY_PAGE)
    return block_kit.tabular([summary], rows, lines, [page.place], turns)
