"""What a request to the gateway may say, so that it says the same to the service behind it.

Servers differ in how they read `..`, escapes, a name that is there twice, or a header that replaces
the method. What could be read in two ways is refused, before anything is sent.
"""

import re
from collections.abc import Iterable, Sequence
from http import HTTPStatus
from urllib.parse import unquote, unquote_plus

from bot.dataclass import dataclass
from bot.model.gateway import GatewayRefusal, forbidden, malformed

LONGEST_WAIT_SECONDS = 60
# What of the ways to compress an answer can be looked into, so that no credential passes in it.
READABLE_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
ORGANIZATION, TOKEN = "organization_id", "authtoken"

Headers = Sequence[tuple[str, str]]

_VISIBLE = re.compile(r"[\x21-\x7e]*")
# Control characters but for the tab, and bytes that are no text.
_NOT_SENT = re.compile("[\x00-\x08\x0a-\x1f\ud800-\udfff]")
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_ORGANIZATION_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_WAIT = re.compile(r'\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:;.*)?', re.ASCII | re.IGNORECASE)

_NOT_PASSED = frozenset(
    {
        # RFC 9110, section 7.6.1: they speak of one connection.
        *("connection", "keep-alive", "proxy-connection", "te", "trailer"),
        *("transfer-encoding", "upgrade", "proxy-authenticate", "proxy-authorization"),
        # Made anew for the service, or nobody's business there.
        *("host", "content-length", "expect", "prefer", "authorization", "cookie", "cookie2"),
        *("set-cookie", "set-cookie2", "forwarded", "via", "x-real-ip"),
    }
)
_NOT_PASSED_BEGIN = ("x-forwarded-", "gatehouse-")
# Servers, and proxies before them, that obey these do something else than the request line says.
_REPLACES_METHOD = frozenset({"xhttpmethodoverride", "xhttpmethod", "xmethodoverride"})
_REPLACES_ADDRESS = frozenset({"xoriginalurl", "xrewriteurl", "xoriginaluri", "xoriginalhost"})


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: `path` under the data center's root and `query`, as they were sent.

    The client's token is not in the query any more. `organization_id` is None where none is named;
    `path_organization_id` is the one that the path itself is about, if any.
    """

    data_center: str
    path: str
    query: str
    organization_id: str | None
    path_organization_id: str | None


def tokens_of(authorizations: Sequence[str], raw_target: str, schemes: Iterable[str]) -> set[str]:
    """Every token that a request has: in the header, and in the query as `authtoken`."""
    tokens = {value for name, value in _parts(_split(raw_target)[1]) if name == TOKEN}
    tokens = {unquote_plus(value) for value in tokens}
    for authorization in authorizations:
        scheme, _, token = authorization.strip().partition(" ")
        is_known = scheme.casefold() in {one.casefold() for one in schemes}
        tokens.add(token.strip() if is_known else "")
    return tokens


def target_of(raw_target: str, data_centers: Iterable[str]) -> Target:
    """Read the request line's target.

    Raises:
        GatewayRefusal: The data center is unknown, or the rest could be read in two ways.
    """
    path, query = _split(raw_target)
    if not path.startswith("/") or not _VISIBLE.fullmatch(raw_target) or "#" in raw_target:
        raise malformed("The address is not a path of visible characters.")
    data_center, _, rest = path[1:].partition("/")
    if data_center not in set(data_centers):
        raise GatewayRefusal(
            HTTPStatus.NOT_FOUND,
            "not_found",
            "The path begins with a data center, and this one is not configured here.",
        )
    segments = _segments(rest)
    if not segments:
        raise malformed(f"The path ends at the data center: /{data_center}/… goes on.")
    kept, organization_id = _query(query)
    about = segments[1] if len(segments) > 1 and segments[0] == "organizations" else None
    return Target(data_center, rest, kept, organization_id, about)


def _split(raw_target: str) -> tuple[str, str]:
    path, _, query = raw_target.partition("?")
    return path, query


def _segments(path: str) -> list[str]:
    """The path's segments as a server reads them; raises where it might leave the root."""
    segments = [_segment(one) for one in path.split("/")]
    if not segments[-1]:
        segments.pop()
    if not all(segments):
        raise malformed("The path has an empty part: two slashes stand side by side.")
    return segments


def _segment(raw: str) -> str:
    if _ESCAPE.search(raw):
        raise malformed("The path has a % that begins no escape.")
    decoded = unquote(raw, errors="replace")
    if any(sign in "/\\%\ufffd" or not sign.isprintable() for sign in decoded):
        raise malformed("The path has an escape that could be read as another path.")
    # Some servers take what follows a semicolon for a parameter, and `..;` for `..`.
    if decoded.split(";")[0].strip() in {".", ".."}:
        raise malformed("The path has a part that is . or .., which would lead elsewhere.")
    return decoded


def _parts(query: str) -> list[tuple[str, str]]:
    """Names and values between `&`, as they were sent."""
    pairs = (part.partition("=") for part in query.split("&") if part)
    return [(name, value) for name, _, value in pairs]


def _query(query: str) -> tuple[str, str | None]:
    """The query without the token, and the organization that it names."""
    _require_plain_names(query)
    named = dict(_parts(query)).get(ORGANIZATION)
    kept = [part for part in query.split("&") if part.partition("=")[0] != TOKEN]
    return "&".join(kept), None if named is None else _organization_id(named)


def _require_plain_names(query: str) -> None:
    """Refuse the two names that matter where they stand twice, or are written in another way."""
    # A semicolon separates too, for some servers.
    names = [part.partition("=")[0] for part in re.split("[&;]", query)]
    plain = [name for name, _ in _parts(query)]
    for matters in (ORGANIZATION, TOKEN):
        written = [name for name in names if _squashed(name) == _squashed(matters)]
        if len(written) > 1:
            raise malformed(f"The query names {matters} more than once.")
        if written and (written != [matters] or matters not in plain):
            raise malformed(f"The query has {matters} in another spelling.")


def _squashed(name: str) -> str:
    """A name as the most lenient of servers would read it: alphanumeric characters, unescaped."""
    for _ in range(3):
        name = unquote_plus(name)
    before_brackets = re.sub(r"(?<=.)\[.*", "", name, flags=re.DOTALL)
    return re.sub(r"[^a-z0-9]", "", before_brackets.casefold())


def _organization_id(raw: str) -> str:
    decoded = unquote_plus(raw)
    if not _ORGANIZATION_ID.fullmatch(decoded):
        raise malformed("organization_id is not the id of an organization.")
    return decoded


def headers_to_send(headers: Headers) -> list[tuple[str, str]]:
    """The headers that go on to the service.

    Raises:
        GatewayRefusal: One would name another organization, method or address, or cannot be sent.
    """
    for name, value in headers:
        _require_plain_header(_squashed(name), value)
    return [
        (name, _readable(value) if name.casefold() == "accept-encoding" else value)
        for name, value in passed_headers(headers)
    ]


def _readable(accepted: str) -> str:
    """Of the codings that a client takes those that can be looked into."""
    named = [(one.partition(";")[0].strip().casefold(), one.strip()) for one in accepted.split(",")]
    return ", ".join(one for name, one in named if name in READABLE_CODINGS) or "identity"


def _require_plain_header(name: str, value: str) -> None:
    if name in _REPLACES_METHOD:
        raise forbidden("A header would replace the method. Use the method itself.")
    if name in _REPLACES_ADDRESS:
        raise malformed("A header would replace the address.")
    if _squashed(ORGANIZATION) in name:
        raise malformed("A header names an organization. Use organization_id in the query.")
    if name == "contentencoding" and value.strip().casefold() not in {"", "identity"}:
        raise GatewayRefusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "malformed",
            "Send the body as it is: one that is compressed cannot be examined.",
        )
    if _NOT_SENT.search(value):
        raise malformed("A header has characters that cannot be sent on.")


def passed_headers(headers: Headers) -> list[tuple[str, str]]:
    """What of an answer's or a request's headers is passed on."""
    connection = (value for name, value in headers if name.casefold() == "connection")
    named = {word.strip().casefold() for value in connection for word in value.split(",")}
    stopped = _NOT_PASSED | named
    return [
        (name, value)
        for name, value in headers
        if name.casefold() not in stopped and not name.casefold().startswith(_NOT_PASSED_BEGIN)
    ]


def seconds_to_wait(preferences: Sequence[str]) -> float:
    """How long a client would wait, by `Prefer: wait=N` (RFC 7240); 0 without."""
    matches = (_WAIT.fullmatch(one) for value in preferences for one in value.split(","))
    wanted = next((int(match[1]) for match in matches if match), 0)
    return float(min(wanted, LONGEST_WAIT_SECONDS))


class BodyScan:
    """Looks through a body, piece by piece, for what would name an organization or a token there.

    The words themselves are looked for, in plain text, in the escapes of forms and of JSON, and in
    UTF-16: what a service makes of a body of some form is not known here.
    """

    _WORDS = (ORGANIZATION.encode(), TOKEN.encode())
    # A character takes 6 bytes where it is escaped as in JSON, and some of them escaped once more.
    _OVERLAP = 18 * max(map(len, _WORDS))
    _PERCENT = re.compile(rb"%([0-9a-f]{2})")
    _UNICODE = re.compile(rb"\\+u00([0-9a-f]{2})")

    def __init__(self) -> None:
        self._tail = b""

    def look(self, piece: bytes) -> None:
        """Look at the next piece.

        Raises:
            GatewayRefusal: One of the words is there.
        """
        seen = self._tail + piece.replace(b"\0", b"").lower()
        self._tail = seen[-self._OVERLAP :]
        if any(word in self._plain(seen) for word in self._WORDS):
            raise malformed(
                f"The body must not name {ORGANIZATION} or {TOKEN}: both belong into the query."
            )

    def _plain(self, seen: bytes) -> bytes:
        for pattern in (self._PERCENT, self._PERCENT, self._UNICODE):
            seen = pattern.sub(lambda match: bytes([int(match[1], 16)]), seen).lower()
        return seen
