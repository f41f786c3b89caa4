"""The results of checking the email service's key, and a parser for bodies of unknown format."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


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
