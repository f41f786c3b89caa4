"""`DATABASE_URL` can have the formats that hosting providers use. Error messages explain typos."""

import pytest

from bot.settings import SettingsError
from bot.store.postgres import connection_parameters
from tests.support.settings import LEAST, read_settings

SOLD = {
    "neon": (
        "postgresql://u:p@ep-x-pooler.eu.aws.neon.tech/neondb?sslmode=require&channel_binding=require",
        {"host": "ep-x-pooler.eu.aws.neon.tech", "channel_binding": "require"},
    ),
    "supabase": (
        "postgresql://postgres.abc:p@aws-0-eu.pooler.supabase.com:6543/postgres",
        {"host": "aws-0-eu.pooler.supabase.com", "port": "6543"},
    ),
    "railway": (
        "postgresql://postgres:p@a.proxy.rlwy.net:12345/railway",
        {"host": "a.proxy.rlwy.net", "port": "12345"},
    ),
    "heroku": ("postgres://u:p@ec2-1.amazonaws.com:5432/d", {"host": "ec2-1.amazonaws.com"}),
    "rds": (
        "postgresql://u:p@x.rds.amazonaws.com/d?sslmode=verify-full&sslrootcert=system",
        {"host": "x.rds.amazonaws.com", "sslrootcert": "system"},
    ),
    "several hosts": (
        "postgresql://u:p@h1:1,h2:2/d?target_session_attrs=read-write",
        {"host": "h1,h2", "port": "1,2"},
    ),
    "hosts and ports": ("postgresql://u@/d?host=a,b&port=1,2", {"host": "a,b", "port": "1,2"}),
    "a socket": (
        "postgresql://u@/d?host=/var/run/postgresql",
        {"host": "/var/run/postgresql", "dbname": "d"},
    ),
    "a socket as host": ("postgresql://u@%2Fvar%2Frun/d", {"host": "/var/run"}),
    "IPv6": ("postgresql://u@[::1]:5433/d", {"host": "::1", "port": "5433"}),
    "ssl": ("postgresql://u@h/d?ssl=true", {"sslmode": "require"}),
    "options": ("postgresql://u@h/d?options=-c%20a%3Db", {"options": "-c a=b"}),
    "escapes": ("postgresql://u:a%2Fb%40c%23@h/d", {"password": "a/b@c#"}),
    "a number sign": ("postgresql://u:pa#ss@h/d", {"password": "pa#ss"}),
    "a question mark": ("postgresql://u:p?ss@h/d", {"password": "p?ss"}),
}


@pytest.mark.parametrize("name", SOLD)
def test_database_url_of_a_hosting_provider_is_accepted(name: str) -> None:
    url, expected = SOLD[name]
    assert read_settings({**LEAST, "DATABASE_URL": url}).database_url.get_secret_value() == url
    assert expected.items() <= connection_parameters(url).items()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://u@h/d?nonsense=1", "not an address that PostgreSQL understands"),
        ("postgresql://u@h/d?pgbouncer=true", "not an address that PostgreSQL understands"),
        ("postgresql://u@h/d?sslmode=nonsense", "sslmode"),
        ("postgresql://u@h/d?target_session_attrs=best", "target_session_attrs"),
        ("postgresql://u@h/d?connect_timeout=soon", "connect_timeout"),
        ("postgresql://u@h/d?sslrootcert=/no/such.pem", "sslrootcert"),
        ("postgresql://u@h", "include a database name"),
        ("postgresql://u:pa/ss@h/d", "%2F"),
        ("postgresql://u:p@ss@h/d", "%40"),
        ("postgresql://u@h:port/d", "port"),
        ("postgresql://u@h:99999/d", "port"),
        ("postgresql://u@[::1/d", "not an address that PostgreSQL understands"),
        ("postgresql+psycopg://u@h/d", "must start with"),
        ("sqlite:////x.db?mode=ro", "must start with postgresql:// or be sqlite:///<file>"),
        ("sqlite:///:memory:", "must start with"),
    ],
)
def test_mistake_is_a_sentence(url: str, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings({**LEAST, "DATABASE_URL": url})
    (problem,) = raised.value.problems
    assert problem.startswith("DATABASE_URL ")
    assert words in problem


@pytest.mark.parametrize("url", ["postgresql://u:se/cret@h/d", "postgresql://u:se@cret@h/d"])
def test_password_never_stands_in_a_problem(url: str) -> None:
    with pytest.raises(ValueError, match="%2F") as raised:
        connection_parameters(url)
    assert "cret" not in str(raised.value)
