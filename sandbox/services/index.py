"""What a person sees who opens the services' own address: where they are, and how to get in."""

from aiohttp import web

from sandbox.services.organizations import DATA_CENTERS
from sandbox.services.state import (
    EMAIL_KEY,
    FLOW_ACCOUNT_SID,
    FLOW_AUTH_TOKEN,
    LIMITED_EMAIL_KEY,
    SURVEY_FLOW,
    WELCOME_FLOW,
    inventory_token,
)

_TEXT = """\
Stand-ins of the three services. Everything in them is made up and forgotten at the end.

Inventory, a data center each (the token also as `Authorization: <scheme> <token>`)
{inventory}

Flow, HTTP Basic; the field testUsers (or TestUsers) once for each identity
  curl -u {account}:{token} {url}/v2/Flows/{welcome}/TestUsers
  curl -u {account}:{token} {url}/v2/Flows/{survey}/TestUsers --data-urlencode testUsers=+1555010001

Email, Bearer or Basic with the user name apikey; {limited} may not read templates
  curl -H 'Authorization: Bearer {key}' {url}/v3/templates
  curl -u apikey:{key} {url}/v3/resource

Disturb them and look at them, from this machine only
  curl {url}/_control/state
  curl {url}/_control/calls
  curl --json '{{"data_center": "eu", "code": 44, "seconds": 60}}' {url}/_control/block
  curl --json '{{"service": "flow", "kind": "status", "times": 3}}' {url}/_control/faults
  curl --json '{{}}' {url}/_control/faults/lift
"""


async def show_index(request: web.Request) -> web.Response:
    """`GET /`: every address with a command that works when pasted."""
    url = str(request.url.origin())
    inventory = "\n".join(
        f"  curl '{url}/{suffix}/inventory/v1/organizations?authtoken={inventory_token(suffix)}'"
        for suffix in DATA_CENTERS
    )
    text = _TEXT.format(
        url=url,
        inventory=inventory,
        account=FLOW_ACCOUNT_SID,
        token=FLOW_AUTH_TOKEN,
        welcome=WELCOME_FLOW,
        survey=SURVEY_FLOW,
        key=EMAIL_KEY,
        limited=LIMITED_EMAIL_KEY,
    )
    return web.Response(text=text)
