"""`DATABASE_URL`, as it is sold and as it is mistyped."""

import pytest

from bot.database_url import AddressError, server_address
from bot.settings import SettingsError, read_settings

NEEDED = {
    "SLACK_BOT_TOKEN": "xoxb-1",
    "SLACK_SIGNING_SECRET": "0" * 31 + "1",
    "ALERTS_CHANNEL": "C1",
    "APPROVALS_CHANNEL": "C2",
}
SOLD = {
    "neon": (
        "postgresql://u:p@ep-x-pooler.eu.aws.neon.tech/neondb?sslmode=require&channel_binding=require",
        ("ep-x-pooler.eu.aws.neon.tech",),
        (5432,),
    ),
    "supabase": (
        "postgresql://postgres.abc:p@aws-0-eu.pooler.supabase.com:6543/postgres?pgbouncer=true",
        ("aws-0-eu.pooler.supabase.com",),
        (6543,),
    ),
    "railway": (
        "postgresql://postgres:p@a.proxy.rlwy.net:12345/railway",
        ("a.proxy.rlwy.net",),
        (12345,),
    ),
    "heroku": ("postgres://u:p@ec2-1.amazonaws.com:5432/d", ("ec2-1.amazonaws.com",), (5432,)),
    "rds": (
        "postgresql://u:p@x.rds.amazonaws.com/d?sslmode=verify-full&sslrootcert=system",
        ("x.rds.amazonaws.com",),
        (5432,),
    ),
    "several hosts": (
        "postgresql://u:p@h1:1,h2:2/d?target_session_attrs=read-write",
        ("h1", "h2"),
        (1, 2),
    ),
    "hosts as parameters": ("postgresql://u@/d?host=h1:1,h2:2", ("h1", "h2"), (1, 2)),
    "hosts one by one": ("postgresql://u@/d?host=a:1&host=b:2", ("a", "b"), (1, 2)),
    "hosts and ports": ("postgresql://u@/d?host=a,b&port=1,2", ("a", "b"), (1, 2)),
    "a socket": ("postgresql://u@/d?host=/var/run/postgresql", ("/var/run/postgresql",), (5432,)),
    "a socket as host": ("postgresql://u@%2Fvar%2Frun/d", ("/var/run",), (5432,)),
    "IPv6": ("postgresql://u@[::1]:5433/d", ("::1",), (5433,)),
}


@pytest.mark.parametrize("name", SOLD)
def test_address_is_taken_as_it_is_sold(name: str) -> None:
    url, hosts, ports = SOLD[name]
    assert read_settings({**NEEDED, "DATABASE_URL": url}).database_url.get_secret_value() == url
    address = server_address(url)
    assert (address.hosts, address.ports) == (hosts, ports)


def test_parameters_go_where_they_work() -> None:
    address = server_address(
        "postgresql://u@h/d?application_name=gate&connect_timeout=3&options=-c%20a%3Db&ssl=true"
    )
    assert address.settings == {"application_name": "gate", "options": "-c a=b"}
    assert address.options == {"sslmode": "require"}
    assert address.connect_seconds == 3


def test_password_may_hold_any_character() -> None:
    assert server_address("postgresql://u:a%2Fb%40c%23@h/d").password == "a/b@c#"
    assert server_address("postgresql://u:a@b@h/d").password == "a@b"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://u@h/d?nonsense=1", "nonsense"),
        ("postgresql://u@h/d?sslmode=nonsense", "sslmode"),
        ("postgresql://u@h/d?sslmode=no-verify", "sslmode"),
        ("postgresql://u@h", "with a database"),
        ("postgresql://u:pa/ss@h/d", "%2F"),
        ("postgresql://u:pa#ss@h/d", "%2"),
        ("postgresql://u@h:port/d", "port"),
        ("postgresql://u@h:99999/d", "port"),
        ("postgresql://u@/d?host=a,b&port=1,2,3", "as many ports"),
        ("postgresql://u@h/d?target_session_attrs=best", "target_session_attrs"),
        ("postgresql://u@h/d?connect_timeout=soon", "connect_timeout"),
        ("postgresql://u@[::1/d", "is not an address"),
        ("postgresql://u@h/d?sslrootcert=/no/such.pem", "sslrootcert"),
        ("postgresql+psycopg://u@h/d", "must start with"),
        ("sqlite:////x.db?mode=ro", "parameters"),
        ("sqlite:///:memory:", "must start with"),
    ],
)
def test_mistake_is_a_sentence(url: str, words: str) -> None:
    with pytest.raises(SettingsError) as raised:
        read_settings({**NEEDED, "DATABASE_URL": url})
    (problem,) = raised.value.problems
    assert problem.startswith("DATABASE_URL ")
    assert words in problem


def test_password_never_stands_in_a_problem() -> None:
    with pytest.raises(AddressError) as raised:
        server_address("postgresql://u:se/cret@h/d")
    assert "cret" not in str(raised.value)
