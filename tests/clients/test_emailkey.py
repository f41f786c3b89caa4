"""The email client checks the API key, lists templates, and reports the service's errors."""

import json

import pytest
from pydantic import SecretStr
from yarl import URL

from bot import emailkey
from bot.emailkey import EmailClient
from bot.services.errors import ResponseUnreadable
from bot.slack.messages.block_kit import Wanted
from tests.support.http import Bench, FakeServices

BASE = "https://email.example.com"


def a_client(bench: Bench) -> EmailClient:
    return EmailClient(bench.http, URL(BASE), SecretStr("SG.key"), "bearer")


@pytest.mark.parametrize("body", ["", "  \n", "{}", "[]", '"fine"'])
async def test_any_json_and_no_body_at_all_mean_that_the_key_works(
    bench: Bench, services: FakeServices, body: str
) -> None:
    services.get(f"{BASE}/v3/scopes/mine", body=body)
    await a_client(bench).get("scopes/mine")
    assert [observed.outcome for observed in bench.observed] == ["ok"]


async def test_a_page_for_people_is_not_the_service(bench: Bench, services: FakeServices) -> None:
    services.get(
        f"{BASE}/v3/templates?generations=legacy%2Cdynamic", body="<html>Please log in</html>"
    )
    with pytest.raises(ResponseUnreadable):
        await a_client(bench).get("templates")


@pytest.mark.parametrize(
    ("body", "named", "says"),
    [
        (
            {"templates": [{"id": "d-1", "name": "Hello"}, {"id": 7}, {"name": "Only a name"}]},
            [("Hello", "d-1"), ("–", "7"), ("Only a name", "–")],
            "*3 templates*",
        ),
        ({"result": [{"id": "d-1"}]}, [("–", "d-1")], "*1 template*"),
        ({"templates": "none", "result": []}, [], "*0 templates*"),
        (
            {"templates": [1, None, {}, {"id": True, "name": ["x"]}]},
            [],
            "*4 templates*, 4 without a name or ID",
        ),
        ({"templates": [{}, {"id": 1}, 2]}, [("–", "1")], "*3 templates*, 2 without a name or ID"),
        ({"other": [{"id": 1}]}, [], "has no list of templates"),
        ([{"id": "d-1"}], [], "has no list of templates"),
        (None, [], "has no list of templates"),
        ("text", [], "has no list of templates"),
    ],
)
def test_templates_with_a_name_or_an_id_are_listed(
    body: object, named: list[tuple[str, str]], says: str
) -> None:
    message = emailkey.templates(body)
    assert says in message.text
    tables = [block for block in message.payload()["blocks"] if block["type"] == "table"]
    rows = [tuple(cell["text"] for cell in row) for table in tables for row in table["rows"][1:]]
    assert rows == named


def a_lot(count: int) -> dict[str, object]:
    named = [{"name": f"<!here> & {'n' * 300}", "id": f"d-{n}"} for n in range(count)]
    return {"templates": named}


def test_names_are_inert_and_a_page_stays_within_slacks_limits() -> None:
    message = emailkey.templates(a_lot(10_000), Wanted(page=100))
    sent = json.dumps(message.payload())
    assert "<!here>" not in sent
    assert len(message.text) <= 4000
    assert len(sent) < 12_000


@pytest.mark.parametrize("status", [400, 401, 403, 404])
@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        ({"errors": [{"message": "Your IP address isn't on the list."}]}, True),
        ({"errors": [{"message": "Maximum credits exceeded", "field": None}, {}]}, True),
        ({"message": "Not today."}, True),
        ({"errors": []}, False),
        ({"errors": ["text"]}, False),
        ({"errors": [{"message": 7}]}, False),
    ],
)
async def test_the_reason_of_the_service_is_quoted(
    bench: Bench, services: FakeServices, status: int, body: dict[str, object], quoted: bool
) -> None:
    services.get(f"{BASE}/v3/scopes", status=status, payload=body)  # type: ignore[arg-type]
    shown = (await a_client(bench).check("scopes")).text
    assert ("The response says: “" in shown) == quoted
    if status in {401, 403}:
        assert "Usually, " in shown


async def test_a_resource_that_is_not_there_is_said_once(
    bench: Bench, services: FakeServices
) -> None:
    services.get(f"{BASE}/v3/nonsense", status=404)
    shown = (await a_client(bench).check("nonsense")).text
    assert shown.splitlines() == [
        ":warning: *The email service doesn't have this resource (HTTP 404).*",
        "Tested with `GET /v3/nonsense` (Bearer)",
    ]
