"""The checks that refuse forbidden or ambiguous requests.

Servers differ in how they interpret `..`, escapes, repeated parameters, and headers that override
the method. The gateway refuses ambiguous requests before it sends anything.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from itertools import pairwise
from urllib.parse import unquote, unquote_plus

from bot.errors import GatehouseError

Headers = Sequence[tuple[str, str]]


@dataclass(eq=False)
class GatewayRefusal(GatehouseError):
    """The error for a refused request, with the response's status and headers.

    `word` is the label for metrics.
    """

    status: HTTPStatus
    word: str
    sentence: str = field()
    headers: Headers = ()


def forbidden(sentence: str) -> GatewayRefusal:
    """Return the error for a request that the client isn't allowed to make."""
    return GatewayRefusal(HTTPStatus.FORBIDDEN, "forbidden", sentence)


def malformed(sentence: str) -> GatewayRefusal:
    """Return the error for an ambiguous or invalid request."""
    return GatewayRefusal(HTTPStatus.BAD_REQUEST, "malformed", sentence)


LONGEST_WAIT_SECONDS = 60.0
ORGANIZATION = "organization_id"
TOKEN = "authtoken"  # noqa: S105 - a name
ORGANIZATIONS = "organizations"
# Decoding each name takes time, in which nobody else is answered.
MOST_NAMES = 100

_VISIBLE = re.compile(r"[\x21-\x7e]*")
# Control characters except the tab.
_CONTROLS = "\x00-\x08\x0a-\x1f\x7f"
_CONTROL = re.compile(f"[{_CONTROLS}]")
# Control characters, and bytes that aren't valid text.
_NOT_SENT = re.compile(f"[{_CONTROLS}\ud800-\udfff]")
_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")
_ORGANIZATION_ID = re.compile(r"[1-9][0-9]{0,63}", re.ASCII)
_WAIT = re.compile(r'(?:^|,)\s*wait\s*=\s*"?(\d{1,9})"?\s*(?:[;,]|$)', re.ASCII | re.IGNORECASE)

# Headers that apply to a single connection (RFC 9110, section 7.6.1).
_OF_ONE_CONNECTION = (
    "connection keep-alive proxy-connection te trailer transfer-encoding upgrade"
    " proxy-authenticate proxy-authorization"
)
# The gateway sets these headers itself, or the service doesn't need them.
_NOT_NEEDED = (
    "host content-length expect prefer authorization cookie cookie2 set-cookie set-cookie2"
    " forwarded via x-real-ip accept-encoding"
    # A part of a response, or another charset, would hide the credential that is masked in it.
    " range if-range accept-charset"
)
_NOT_PASSED = frozenset(f"{_OF_ONE_CONNECTION} {_NOT_NEEDED}".split())
_NOT_PASSED_BEGIN = ("x-forwarded-", "gatehouse-")
# Servers and proxies that obey these headers ignore parts of the request line.
_REPLACES_METHOD = "xhttpmethodoverride xhttpmethod xmethodoverride"
_REPLACES_ADDRESS = "xoriginalurl xrewriteurl xoriginaluri xoriginalhost"
_REPLACES_REQUEST_LINE = frozenset(f"{_REPLACES_METHOD} {_REPLACES_ADDRESS}".split())


@dataclass(frozen=True)
class Target:
    """The path on the service's host, and the query without the client's token.

    Neither is decoded or normalized. `organizations` contains the organization IDs in the path (for
    example, in `/organizations/10234695`) and in the query. `lists_organizations` is True if the
    path is that of the listing, `/organizations`.
    """

    data_center: str
    path: str
    query: str
    organizations: tuple[str, ...]
    lists_organizations: bool = False


def tokens_of(authorizations: Sequence[str], raw_target: str, schemes: Iterable[str]) -> set[str]:
    """Return all tokens in a request's `Authorization` headers and `authtoken` parameters."""
    query = _parts(raw_target.partition("?")[2])
    tokens = {unquote_plus(value) for name, value in query if name == TOKEN}
    known = {scheme.casefold() for scheme in schemes}
    for authorization in authorizations:
        scheme, _, token = authorization.strip().partition(" ")
        tokens.add(token.strip() if scheme.casefold() in known else "")
    return tokens


def target_of(raw_target: str, roots: Mapping[str, str], apis: Collection[str] = ()) -> Target:
    """Parse a request's target. `roots` maps each data center and API to the path of its root.

    For `apis`, nothing that is called an organization has a meaning, and the path is always below
    the root.
    """
    path, _, query = raw_target.partition("?")
    if not path.startswith("/") or not _VISIBLE.fullmatch(raw_target) or "#" in raw_target:
        raise malformed("The path must start with / and use only printable ASCII without spaces.")
    data_center, _, rest = path[1:].partition("/")
    if data_center not in roots:
        raise GatewayRefusal(
            HTTPStatus.NOT_FOUND,
            "not_found",
            "The path must begin with a data center or an API that is configured in Gatehouse.",
        )
    raw_segments = rest.split("/")
    if max(len(raw_segments), len(re.split("[&;]", query))) > MOST_NAMES:
        raise malformed(f"The path and the query can have at most {MOST_NAMES} parts each.")
    segments = [_segment(segment) for segment in raw_segments]
    if len(segments) > 1 and not segments[-1]:
        segments.pop()
    if not all(segments):
        raise malformed("The path ends after its first part, or has two slashes in a row.")
    is_api = data_center in apis
    _require_plain_names(query, (TOKEN,) if is_api else (ORGANIZATION, TOKEN))
    kept = "&".join(part for part in query.split("&") if part.partition("=")[0] != TOKEN)
    if is_api:
        root = roots[data_center].rstrip("/")
        return Target(data_center, f"{root}/{rest}", kept, ())
    named = [
        organization
        for word, after in pairwise([*segments, ""])
        for organization in _organizations_in(word, after)
    ]
    organization_id = dict(_parts(query)).get(ORGANIZATION)
    if organization_id is not None:
        organization_id = unquote_plus(organization_id)
        if not _ORGANIZATION_ID.fullmatch(organization_id):
            raise malformed("organization_id must contain only digits, without leading zeros.")
        named.append(organization_id)
    # The sandbox's roots begin with the data center, which the client's path already includes.
    parts = [part for part in roots[data_center].split("/") if part]
    outside = parts[:1] if len(parts) > 1 and parts[0] == data_center else []
    if [unquote(part) for part in parts[len(outside) :][:1]] == segments[:1]:
        # The path already includes the root, so don't add the root again.
        parts = outside
    path = "/".join(["", *parts, rest])
    is_listing = _squashed(segments[-1]).startswith(ORGANIZATIONS)
    return Target(data_center, path, kept, tuple(named), is_listing)


def _organizations_in(segment: str, after: str) -> list[str]:
    """Return the organizations that a segment of the path and the segment after it name.

    Servers may ignore a suffix, as in `organizations.json`, or read the ID from the same segment,
    as in `organizations(10234695)`.
    """
    word = _squashed(segment)
    if not word.startswith(ORGANIZATIONS):
        return []
    named = [after] if after else []
    rest = word.removeprefix(ORGANIZATIONS)
    return [*named, rest] if re.search(r"\d", rest) else named


def _segment(raw: str) -> str:
    decoded = unquote(raw, errors="replace")
    # Some servers treat text after a semicolon as a parameter of the segment, and ignore it.
    is_ambiguous = any(sign in "/\\%;\ufffd" or not sign.isprintable() for sign in decoded)
    if _ESCAPE.search(raw) or is_ambiguous or decoded.strip() in {".", ".."}:
        raise malformed(f"Different servers may interpret “{raw}” in a path differently.")
    return decoded


def _parts(query: str) -> list[tuple[str, str]]:
    pairs = (part.partition("=") for part in query.split("&") if part)
    return [(name, value) for name, _, value in pairs]


def _require_plain_names(query: str, important: Iterable[str]) -> None:
    """Raise GatewayRefusal if one of the important parameters is repeated or misspelled.

    Parameters that override the method or the URL are refused too.
    """
    # Some servers also split the query at semicolons.
    names = [part.partition("=")[0] for part in re.split("[&;]", query)]
    squashed = [_squashed(name) for name in names]
    decoded = {unquote_plus(name).strip().casefold() for name in names}
    if "_method" in decoded or _REPLACES_REQUEST_LINE.intersection(squashed):
        raise malformed("A query parameter would override the method or the URL. Remove it.")
    plain = [name for name, _ in _parts(query)]
    for matters in important:
        written = [
            name for name, word in zip(names, squashed, strict=True) if word == _squashed(matters)
        ]
        if written and (written != [matters] or matters not in plain):
            raise malformed(
                f"The query can contain {matters} only once, spelled exactly like this."
            )


# Cached, because nearly all calls have the same names.
@lru_cache(1_000)
def _squashed(name: str) -> str:
    """Decode a name and keep only its letters and digits, to detect variants of the same name."""
    for _ in range(3):
        name = unquote_plus(name)
    before_brackets = re.sub(r"(?<=.)\[.*", "", name, flags=re.DOTALL)
    return re.sub(r"[^a-z0-9]", "", before_brackets.casefold())


def headers_to_send(headers: Headers, *, is_api: bool = False) -> list[tuple[str, str]]:
    """Return the headers to send to the service.

    Raises GatewayRefusal if a header would change the method, the URL, or the organization, which
    other APIs don't have.
    """
    for raw_name, value in headers:
        name = _squashed(raw_name)
        if name in _REPLACES_REQUEST_LINE:
            raise malformed("A header would override the method or the URL. Remove that header.")
        if not is_api and _squashed(ORGANIZATION) in name:
            raise malformed("Set organization_id in the query, not in a header.")
        # Such a body would be forwarded compressed, and nothing would say so.
        if name == "transferencoding" and value.strip().casefold() != "chunked":
            raise malformed("The body can't be compressed by a Transfer-Encoding.")
        if _NOT_SENT.search(value):
            raise malformed("A header contains characters that can't be forwarded.")
    # Request an uncompressed response, so that a credential in the response can be masked.
    return [*passed_headers(headers), ("Accept-Encoding", "identity")]


def passed_headers(headers: Headers) -> list[tuple[str, str]]:
    """Return the headers that the gateway passes on from a request or a response.

    Blanks before a colon aren't part of the name (RFC 9112, section 5.1). A header with a control
    character isn't valid HTTP and isn't passed on. If a name occurs in several spellings, all of
    its values are passed on under the first.
    """
    headers = [(name.strip(), value) for name, value in headers]
    stopped = set(_NOT_PASSED)
    for name, value in headers:
        if name.casefold() == "connection":
            stopped |= {word.strip().casefold() for word in value.split(",")}
    spellings: dict[str, str] = {}
    passed = []
    for name, value in headers:
        word = name.casefold()
        spelling = spellings.setdefault(word, name)
        is_stopped = word in stopped or word.startswith(_NOT_PASSED_BEGIN)
        if not is_stopped and not _CONTROL.search(name + value):
            passed.append((spelling, value))
    return passed


def seconds_to_wait(preferences: Sequence[str]) -> float:
    """Return the seconds in `Prefer: wait=N` (RFC 7240), up to 60, or 0 if there is no `wait`."""
    match = _WAIT.search(",".join(preferences))
    return min(float(match[1]), LONGEST_WAIT_SECONDS) if match else 0.0
