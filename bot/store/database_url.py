"""PostgreSQL's `DATABASE_URL`, parsed by libpq so that every provider's format works."""

import re
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

from psycopg import ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict

SCHEMES = ("postgresql", "postgres")
HIGHEST_PORT = 65535
# The `sslrootcert` value for the machine's trusted certificates.
TRUSTED_BY_THE_SYSTEM = "system"
# Providers add these parameters for clients in other languages.
OF_OTHER_CLIENTS = frozenset(
    {
        *("pgbouncer", "connection_limit", "pool_timeout", "prepared_statement_cache_size"),
        *("statement_cache_size", "supa", "uselibpqcompat"),
    }
)
CHOICES = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "target_session_attrs": (
        *("any", "primary", "standby", "read-write", "read-only", "prefer-standby"),
    ),
    "channel_binding": ("disable", "prefer", "require"),
}
ESCAPES = "in a user name or password, write / as %2F, : as %3A, ? as %3F and @ as %40"


class AddressError(Exception):
    """A problem with an address, to follow the setting's name; never quotes the address."""


def connection_parameters(url: str) -> dict[str, str]:
    """Return an address's parameters by their libpq names.

    Raises:
        AddressError: The address can't be used.
    """
    base, mark, query = url.partition("?")
    scheme, _, rest = base.partition("://")
    given = _query(query) if mark else []
    encoded = f"?{urlencode(given)}".replace("+", "%20") if given else ""
    try:
        found = conninfo_to_dict(f"{scheme.lower()}://{rest}{encoded}")
    except (ProgrammingError, UnicodeError):
        raise AddressError(f"is not an address ({ESCAPES})") from None
    parameters = {name: str(value) for name, value in found.items()}
    _check(parameters)
    return parameters


def _query(text: str) -> list[tuple[str, str]]:
    try:
        pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    except ValueError:
        raise AddressError("is not an address") from None
    known = {option.keyword.decode() for option in pq.Conninfo.get_defaults()} | {"ssl"}
    unknown = sorted({name for name, _ in pairs} - known - OF_OTHER_CLIENTS)
    if unknown:
        raise AddressError(f"has unsupported parameters: {', '.join(unknown)}")
    return [(name, value) for name, value in pairs if name in known]


def _check(parameters: dict[str, str]) -> None:
    """Detect problems that libpq would only report when connecting."""
    hosts, ports = parameters.get("host", "").split(","), parameters.get("port", "5432").split(",")
    if not all(re.fullmatch(r"|0*[1-9][0-9]{0,4}", port) for port in ports) or any(
        int(port or 1) > HIGHEST_PORT for port in ports
    ):
        raise AddressError(f"has a port that is not a number from 1 to {HIGHEST_PORT} ({ESCAPES})")
    if len(ports) not in {1, len(hosts)}:
        raise AddressError("must have as many ports as hosts")
    if any("@" in host for host in hosts):
        raise AddressError(f"has a host with an @ ({ESCAPES})")
    if not parameters.get("dbname"):
        raise AddressError(f"must include the name of a database ({ESCAPES})")
    for name, values in CHOICES.items():
        if parameters.get(name, values[0]) not in values:
            raise AddressError(f"has an invalid {name}: it must be one of {', '.join(values)}")
    if not re.fullmatch(r"[0-9]+", parameters.get("connect_timeout", "0")):
        raise AddressError("has a connect_timeout that is not a whole number of seconds")
    for name in ("sslrootcert", "sslcert", "sslkey", "sslcrl"):
        path = parameters.get(name)
        if path and path != TRUSTED_BY_THE_SYSTEM and not Path(path).is_file():
            raise AddressError(f"names a file in {name} that doesn't exist")
