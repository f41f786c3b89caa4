import re
import shlex

from aiohttp import encode_basic_auth

from sandbox.services.state import SURVEY_FLOW


def call_of(command):
    """Method, address, headers and body of a curl command of the page."""
    words = iter(shlex.split(command)[1:])
    method, address, headers, body = "GET", "", {}, None
    for word in words:
        if word == "-u":
            headers["Authorization"] = encode_basic_auth(*next(words).split(":", 1))
        elif word == "-H":
            name, value = next(words).split(": ", 1)
            headers[name] = value
        elif word == "--json":
            method, body = "POST", next(words)
            headers["Content-Type"] = "application/json"
        elif word == "--data-urlencode":
            method, body = "POST", dict([next(words).split("=", 1)])
        else:
            address = word
    return method, address, headers, body


async def test_every_command_on_the_page_works(http, services):
    async with http.get("/") as response:
        commands = re.findall(r"^  (curl .*)$", await response.text(), re.MULTILINE)
    assert len(commands) > 12

    for command in commands:
        method, address, headers, body = call_of(command)
        async with http.request(method, address, headers=headers, data=body) as response:
            assert response.status == 200, command
    assert services.state.flows[SURVEY_FLOW].history == [["+1555010001"]]
