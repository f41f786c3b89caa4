"""`DATABASE_URL` of a PostgreSQL server, as PostgreSQL and those who sell it write addresses.

    postgresql://user:password@host:5432,other:5432/name?sslmode=verify-full&application_name=x

One parser, for the settings (which say what is wrong) and for the store (which connects).
"""

from collections.abc import Mapping
from dataclasses import field
from urllib.parse import parse_qsl, unquote, urlsplit

from bot.dataclass import dataclass

SCHEMES = ("postgresql", "postgres")
DEFAULT_PORT = 5432
HIGHEST_PORT = 65535
# The `sslrootcert` that means: whom this machine trusts anyway.
TRUSTED_BY_THE_SYSTEM = "system"
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
SESSION_KINDS = ("any", "primary", "standby", "read-write", "read-only", "prefer-standby")
# What the driver takes by these names.
DRIVER_OPTIONS = frozenset(
    {
        *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "sslpassword"),
        *("sslnegotiation", "ssl_min_protocol_version", "ssl_max_protocol_version"),
        *("target_session_attrs", "passfile", "krbsrvname"),
    }
)
# What the server is told when a connection begins.
SERVER_SETTINGS = frozenset({"application_name", "options", "search_path", "timezone"})
# In the addresses that people are given, and nothing that this program could do otherwise: it
# speaks UTF-8, has a pool of its own, and finds out by itself whether a pooler is in between.
WITHOUT_EFFECT = frozenset(
    {
        *("channel_binding", "client_encoding", "fallback_application_name", "gssencmode"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
        *("load_balance_hosts", "sslcompression", "tcp_user_timeout", "uselibpqcompat"),
        *("pgbouncer", "connection_limit", "pool_timeout", "prepared_statement_cache_size"),
        *("statement_cache_size", "supa"),
    }
)


class AddressError(Exception):
    """What is wrong with an address, to follow the name of the setting; never any part of it."""


@dataclass(frozen=True)
class ServerAddress:
    """Where a PostgreSQL server is, and how to connect to it.

    Attributes:
        hosts: In the order to try them; a path is the folder of a Unix socket. Empty: this machine.
        ports: One for each host.
        options: For the driver, by the names of `DRIVER_OPTIONS`.
        settings: For the server, as a connection begins.
        connect_seconds: From `connect_timeout`, if it is there.
    """

    hosts: tuple[str, ...]
    ports: tuple[int, ...]
    user: str | None
    password: str | None
    database: str
    options: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    connect_seconds: float | None = None


def server_address(url: str) -> ServerAddress:
    """Read the address of a PostgreSQL server.

    Raises:
        AddressError: It cannot be used as it stands.
    """
    try:
        parts = urlsplit(url)
        given = dict(_query(parts.query))
    except ValueError:
        raise AddressError("is not an address") from None
    user_and_password, has_user, where = parts.netloc.rpartition("@")
    user, _, password = user_and_password.partition(":")
    database = unquote(parts.path.removeprefix("/")) or given.get("dbname", "")
    if not database or "/" in database or parts.fragment:
        raise AddressError(
            "is not an address with a database (in a user name or password, write / as %2F,"
            " # as %23, ? as %3F and @ as %40)"
        )
    hosts, ports = _places(where, given)
    return ServerAddress(
        hosts=hosts,
        ports=ports,
        user=(unquote(user) if has_user and user else None) or given.get("user"),
        password=(unquote(password) if password else None) or given.get("password"),
        database=database,
        options=_options(given),
        settings={name: given[name] for name in SERVER_SETTINGS & set(given)},
        connect_seconds=_seconds(given.get("connect_timeout")),
    )


def _query(text: str) -> list[tuple[str, str]]:
    """The parameters; a host or a port that is given several times is a list."""
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=bool(text))
    several = [name for name in ("host", "port") if sum(one == name for one, _ in pairs) > 1]
    joined = [(name, ",".join(value for one, value in pairs if one == name)) for name in several]
    known = DRIVER_OPTIONS | SERVER_SETTINGS | WITHOUT_EFFECT
    known |= {"host", "port", "user", "password", "dbname", "connect_timeout", "ssl"}
    unknown = sorted({name for name, _ in pairs} - known)
    if unknown:
        raise AddressError(f"has parameters that are not taken here: {', '.join(unknown)}")
    return [*pairs, *joined]


def _places(where: str, given: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    listed = [one for one in (where or given.get("host", "")).split(",") if one]
    pairs = [_place(one) for one in listed]
    ports = [one for one in given.get("port", "").split(",") if one]
    if len(ports) > 1 and len(ports) != len(pairs):
        raise AddressError("has not as many ports as hosts")
    default = _port(ports[0]) if ports else DEFAULT_PORT
    named = [_port(one) for one in ports] if len(ports) > 1 else [default] * len(pairs)
    hosts = tuple(host for host, _ in pairs)
    return hosts, tuple(own or other for (_, own), other in zip(pairs, named, strict=True)) or (
        default,
    )


def _place(text: str) -> tuple[str, int | None]:
    """A host with its port, if it names one: `db`, `db:5433`, `[::1]:5432`, `/run/postgresql`."""
    if text.startswith("["):
        host, bracket, port = text[1:].partition("]")
        if not bracket:
            raise AddressError("has a host that is not an address")
        return host, _port(port.removeprefix(":")) if port else None
    plain = unquote(text)
    if plain.startswith("/"):
        return plain, None
    host, colon, port = plain.partition(":")
    if not host:
        raise AddressError("has a port without a host")
    return host, _port(port) if colon else None


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and 0 < int(text[:6]) <= HIGHEST_PORT):
        raise AddressError(
            "has a port that is not a number from 1 to 65535"
            " (in a password, write / as %2F, : as %3A and @ as %40)"
        )
    return int(text)


def _options(given: Mapping[str, str]) -> dict[str, str]:
    options = {name: given[name] for name in DRIVER_OPTIONS & set(given)}
    if "ssl" in given and "sslmode" not in options:
        options["sslmode"] = _as_ssl_mode(given["ssl"])
    if options.get("sslmode", "prefer") not in SSL_MODES:
        raise AddressError(f"has a wrong sslmode: it must be {_either(SSL_MODES)}")
    if options.get("target_session_attrs", "any") not in SESSION_KINDS:
        raise AddressError(f"has a wrong target_session_attrs: it must be {_either(SESSION_KINDS)}")
    return options


def _as_ssl_mode(text: str) -> str:
    """`ssl=true` is how others write `sslmode=require`."""
    return {"true": "require", "1": "require", "on": "require", "false": "disable"}.get(text, text)


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def _seconds(text: str | None) -> float | None:
    if text is None:
        return None
    if not text.isdecimal():
        raise AddressError("has a connect_timeout that is not a whole number of seconds")
    # As PostgreSQL's own programs: 0 is no limit of the address's own.
    return float(text) or None
