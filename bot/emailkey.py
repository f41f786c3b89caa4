"""`/emailkey`: checks the email service's key, and lists the templates that it can read."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from http import HTTPStatus
from typing import Literal, Protocol

from pydantic import SecretStr
from yarl import URL

from bot.commands import EMAILKEY
from bot.errors import NotConfigured
from bot.paging import page_count
from bot.services.calls import Answer, ServiceCall
from bot.services.credentials import basic, bearer
from bot.services.errors import CredentialsRefused, PermissionMissing, ServiceError
from bot.services.failures import json_of
from bot.services.http import ServiceHttp
from bot.services.lane import Lane
from bot.slack.messages import block_kit, ids, paging, text
from bot.slack.messages.message import Message, SlackBlock
from bot.slack.parse.words import UNCLEAR, asks_for_help, read_words, refuse_endless


class KeyVerdict(StrEnum):
    """The result of a request with the key."""

    GOOD = "good"
    REFUSED = "refused"
    LACKS_PERMISSION = "lacks_permission"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """A request with the key: how the key was sent, the resource, and the result.

    `advice` is a sentence for people, empty if the key works.
    """

    mode: str
    resource: str
    verdict: KeyVerdict
    advice: str = ""


@dataclass(frozen=True, slots=True)
class EmailTemplate:
    """A template's name and ID, as far as the service returns them."""

    template_id: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class EmailTemplates:
    """`templates` are those with a name or an ID; `count` includes all others, None if unknown."""

    templates: tuple[EmailTemplate, ...]
    count: int | None


def templates_in(body: object) -> EmailTemplates:
    """Find the listing in a body whose format is not specified.

    Looks for objects under `templates`, then under `result`; a bare list works too.
    """
    listing = _listing(body)
    if listing is None:
        return EmailTemplates((), None)
    named = tuple(found for candidate in listing if (found := _template(candidate)) is not None)
    return EmailTemplates(named, len(listing))


def _listing(body: object) -> Sequence[object] | None:
    if isinstance(body, list):
        return body
    if isinstance(body, dict):
        for name in ("templates", "result"):
            if isinstance(body.get(name), list):
                return list(body[name])
    return None


def _template(candidate: object) -> EmailTemplate | None:
    if not isinstance(candidate, dict):
        return None
    template = EmailTemplate(_text(candidate.get("id")), _text(candidate.get("name")))
    return template if template.template_id or template.name else None


def _text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None


DEFAULT_RESOURCE = "templates"
LONGEST_RESOURCE = 100
MOST_RESOURCES = 10
# A path below /v3 that can't lead out of it or change the request.
RESOURCE = re.compile(r"[A-Za-z0-9_-]+(?:[./][A-Za-z0-9_-]+)*")


@dataclass(frozen=True)
class EmailKeyRequest:
    """A parsed command; `resources` are the paths below `/v3/` to read with the key."""

    form: Literal["check", "templates", "help"]
    resources: tuple[str, ...] = (DEFAULT_RESOURCE,)


def parse_emailkey(text: str) -> EmailKeyRequest:
    """Parse the text after `/emailkey`; empty text means help.

    Raises:
        UsageError: The command is unknown, or a resource's name is invalid.
    """
    refuse_endless(text, EMAILKEY)
    words = read_words(text)
    if not words or asks_for_help(words):
        return EmailKeyRequest("help")
    match [word.keyword for word in words]:
        case ["templates"]:
            return EmailKeyRequest("templates")
        case ["check"]:
            return EmailKeyRequest("check")
        case ["check", *resources] if len(resources) <= MOST_RESOURCES:
            named = dict.fromkeys(_resource(word.text) for word in words[1:])
            return EmailKeyRequest("check", tuple(named))
    raise EMAILKEY.misuse(UNCLEAR)


def _resource(typed: str) -> str:
    resource = typed.strip("/").removeprefix("v3/")
    if len(resource) <= LONGEST_RESOURCE and RESOURCE.fullmatch(resource):
        return resource
    sentence = "A resource is a name like templates or a path like user/profile."
    raise EMAILKEY.misuse(sentence, "check")


# "username is always the literal apikey" (specification, area A, authentication, 3).
BASIC_USER = "apikey"
# SendGrid lists legacy templates only, unless told otherwise; other services ignore the parameter.
GENERATIONS = {"generations": "legacy,dynamic"}
EmailAuth = Literal["bearer", "basic"]


class EmailClient:
    """Calls the email service with an API key, as Bearer or as Basic with the user `apikey`."""

    def __init__(
        self, http: ServiceHttp, base_url: URL, api_key: SecretStr, auth: EmailAuth = "bearer"
    ) -> None:
        self._http = http
        self._base_url = base_url
        self._auth = auth
        self._headers = bearer(api_key) if auth == "bearer" else basic(BASIC_USER, api_key)

    @property
    def auth(self) -> EmailAuth:
        """Return the form in which the key is sent."""
        return self._auth

    async def check(self, resource: str) -> None:
        """Return normally if the key may read `/v3/<resource>`.

        Raises CredentialsRefused (wrong or deleted), PermissionMissing (lacks this permission), or
        another ServiceError.
        """
        await self._get(resource)

    async def templates(self) -> EmailTemplates:
        """Return the listing of templates, as far as its format is known. Raises a ServiceError."""
        return templates_in(await self._get("templates"))

    async def _get(self, resource: str) -> object:
        call = ServiceCall(
            service="email",
            label="the email service",
            method="GET",
            url=self._base_url.joinpath("v3", *resource.split("/")),
            params=GENERATIONS if resource == "templates" else {},
            headers={**self._headers, "Content-Type": "application/json"},
            advice=self._advice(resource),
        )
        return await self._http.request(call, partial(_body_in, call))

    def _advice(self, resource: str) -> Mapping[int, str]:
        refused = (
            "The key is wrong or was deleted. Create a new one in the settings section of the"
            " account's console (signing in takes a phone: the code comes by SMS) and set"
            " EMAIL_API_KEY."
        )
        lacking = f"Give the key read access to “{resource}”, or use another key."
        if self._auth == "basic":
            limits = (
                " Or Basic auth isn't accepted (e.g. with two-factor authentication). Then set"
                " EMAIL_AUTH=bearer."
            )
            refused, lacking = refused + limits, lacking + limits
        unknown = f"There is probably no resource “{resource}”."
        return {
            HTTPStatus.UNAUTHORIZED: refused,
            HTTPStatus.FORBIDDEN: lacking,
            HTTPStatus.NOT_FOUND: unknown,
        }


def _body_in(call: ServiceCall, answer: Answer) -> object:
    return json_of(call, answer) if answer.body.strip() else None


MODES = {"bearer": "Bearer", "basic": "Basic, user apikey"}


class EmailService(Protocol):
    """The part of the email service that is needed. Every method raises `ServiceError`s."""

    @property
    def auth(self) -> str:
        """Return `bearer` or `basic`."""
        ...

    async def check(self, resource: str) -> None:
        """Return normally if the key may read the resource."""
        ...

    async def templates(self) -> EmailTemplates:
        """Return the templates."""
        ...


class EmailKey:
    """Tests the key.

    Args:
        service: The email service; None if settings are missing.
        missing: The names of those settings.
        lane: Limits concurrent calls.
    """

    def __init__(self, service: EmailService | None, missing: tuple[str, ...], lane: Lane) -> None:
        self._service = service
        self._missing = missing
        self._lane = lane

    async def check(self, resources: Sequence[str]) -> list[KeyCheck]:
        """Try the key on each resource; failures are results, not errors.

        Raises:
            NotConfigured: The service lacks settings.
        """
        service = self._configured()
        return [await self._try(service, resource) for resource in resources]

    async def _try(self, service: EmailService, resource: str) -> KeyCheck:
        mode = MODES[service.auth]
        try:
            await self._lane.call(resource, lambda: service.check(resource), is_typed=True)
        except ServiceError as failure:
            return KeyCheck(mode, resource, _verdict_of(failure), failure.sentence)
        return KeyCheck(mode, resource, KeyVerdict.GOOD)

    async def templates(self, *, is_typed: bool = True) -> EmailTemplates:
        """Return the templates; unless a person typed the command, not right after a failure.

        Raises:
            NotConfigured: The service lacks settings.
            ServiceError: The request failed.
        """
        templates = self._configured().templates
        return await self._lane.call("templates", templates, is_typed=is_typed)

    def _configured(self) -> EmailService:
        if self._service is None:
            raise NotConfigured("the email service", self._missing)
        return self._service


def _verdict_of(failure: ServiceError) -> KeyVerdict:
    if isinstance(failure, CredentialsRefused):
        return KeyVerdict.REFUSED
    if isinstance(failure, PermissionMissing):
        return KeyVerdict.LACKS_PERMISSION
    return KeyVerdict.UNKNOWN


PAGE = 20
RESULTS = {
    KeyVerdict.GOOD: "works",
    KeyVerdict.REFUSED: "key rejected",
    KeyVerdict.LACKS_PERMISSION: "no permission",
    KeyVerdict.UNKNOWN: "not checked",
}
VERDICTS = {
    KeyVerdict.GOOD: ":white_check_mark: *The email key works.*",
    KeyVerdict.REFUSED: ":x: *The email key was rejected.*",
    KeyVerdict.LACKS_PERMISSION: ":warning: *The email key doesn't have permission for this.*",
    KeyVerdict.UNKNOWN: ":warning: *Couldn't check the email key.*",
}


def verdicts(checks: Sequence[KeyCheck]) -> Message:
    """Show the result for each resource, and each piece of advice once."""
    if len(checks) == 1:
        return _verdict(checks[0])
    good = sum(check.verdict is KeyVerdict.GOOD for check in checks)
    mark = ":white_check_mark:" if good == len(checks) else ":warning:"
    summary = f"{mark} *The email key works for {good} of {len(checks)} resources.*"
    rows = [(f"/v3/{check.resource}", RESULTS[check.verdict]) for check in checks]
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


def _verdict(check: KeyCheck) -> Message:
    asked = text.code(f"GET /v3/{check.resource}")
    lines = [VERDICTS[check.verdict]]
    lines += [text.sentence(check.advice, 1000)] if check.advice else []
    footnote = f"Tested with {asked} ({text.escape(check.mode)})"
    markup = "\n".join(lines)
    return Message(
        f"{markup}\n{footnote}", (block_kit.section(markup), block_kit.context(footnote))
    )


def templates(found: EmailTemplates, page: int = 0) -> Message:
    """Show a page of the templates; explain a listing in an unknown format."""
    if found.count is None:
        return _only("The response has no list of templates.")
    if not found.templates:
        return _only(_nameless(found.count))
    pages = page_count(len(found.templates), PAGE)
    page = min(page, pages - 1)
    shown = found.templates[page * PAGE : (page + 1) * PAGE]
    summary = f"*{text.count(found.count, 'template')}*"
    unnamed = found.count - len(found.templates)
    if unnamed:
        summary += f", {unnamed:,} without a name or ID"
    return Message(
        _fallback(summary, shown),
        (
            block_kit.section(summary),
            block_kit.table([("Name", "ID"), *(_row(template) for template in shown)]),
            *_turning(page, pages),
        ),
    )


def _nameless(count: int) -> str:
    if count == 0:
        return "There are no templates."
    return f"{text.count(count, 'template')}, but no names or IDs."


def _row(template: EmailTemplate) -> tuple[str, str]:
    return template.name or "–", template.template_id or "–"


def _fallback(summary: str, shown: Sequence[EmailTemplate]) -> str:
    lines = [" · ".join(text.escape(cell, 90) for cell in _row(template)) for template in shown]
    return "\n".join([summary, *lines])


def _turning(page: int, pages: int) -> list[SlackBlock]:
    buttons = paging.turns(ids.EMAILKEY_PAGE, page, pages)
    if not buttons:
        return []
    return [block_kit.context(f"Page {page + 1} of {pages}"), block_kit.actions(*buttons)]


def _only(markup: str) -> Message:
    return Message(markup, (block_kit.section(markup),))
