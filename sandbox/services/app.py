"""Combines the three services and another API into one web application."""

from aiohttp import web

from sandbox.services import email, flow, inventory, oauth, weather
from sandbox.services.serve import STATE
from sandbox.services.state import ServicesState

MAX_BODY_BYTES = 16 * 1024 * 1024
# An update has a field for each entry of a list.
MAX_FIELDS = 100_000


def make_services_app(state: ServicesState) -> web.Application:
    """Return a web application with all of the services' endpoints."""
    app = web.Application(client_max_size=MAX_BODY_BYTES, client_max_fields=MAX_FIELDS)
    app[STATE] = state
    app.router.add_get(inventory.LISTING_PATH, inventory.list_organizations, allow_head=False)
    app.router.add_post("/oauth/token", oauth.issue_token)
    app.router.add_get(flow.FLOWS_PATH, flow.list_flows, allow_head=False)
    app.router.add_get(flow.TEST_USERS_PATH, flow.read_test_users, allow_head=False)
    app.router.add_post(flow.TEST_USERS_PATH, flow.replace_test_users)
    app.router.add_get(email.RESOURCE_PATH, email.read_resource, allow_head=False)
    app.router.add_get(f"{weather.ROOT}/{{path:.+}}", weather.Weather().forecast)
    app.on_shutdown.append(_let_everyone_go)
    return app


async def _let_everyone_go(app: web.Application) -> None:
    app[STATE].faults.lift()
