"""What can be said about the email service's key, and about a body of unknown form."""

from collections.abc import Sequence
from enum import StrEnum

from bot.dataclass import dataclass


class KeyVerdict(StrEnum):
    """What a try with the key has shown."""

    GOOD = "good"
    REFUSED = "refused"
    LACKS_PERMISSION = "lacks_permission"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class KeyCheck:
    """One try: in which form the key was sent, for what, and what came of it.

    `advice` is a sentence for people, empty when the key is good.
    """

    mode: str
    resource: str
    verdict: KeyVerdict
    advice: str = ""


@dataclass(frozen=True, slots=True)
class EmailTemplate:
    """A template, by name and id where the service says them."""

    template_id: str | None
    name: str | None


@dataclass(frozen=True, slots=True)
class EmailTemplates:
    """`templates` has those with a name or an id; `count` is all of them; None: cannot be told."""

    templates: tuple[EmailTemplate, ...]
    count: int | None


def templates_in(body: object) -> EmailTemplates:
    """Finds the listing in a body: its form is not specified.

    Objects are looked for under `templates`, then under `result`; a bare list is taken as well.
    """
    listing = _listing(body)
    if listing is None:
        return EmailTemplates((), None)
    named = tuple(found for one in listing if (found := _template(one)) is not None)
    return EmailTemplates(named, len(listing))


def _listing(body: object) -> Sequence[object] | None:
    if isinstance(body, list):
        return body
    if isinstance(body, dict):
        for name in ("templates", "result"):
            if isinstance(body.get(name), list):
                return list(body[name])
    return None


def _template(one: object) -> EmailTemplate | None:
    if not isinstance(one, dict):
        return None
    template = EmailTemplate(_text(one.get("id")), _text(one.get("name")))
    return template if template.template_id or template.name else None


def _text(value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        return None
    return str(value) or None
