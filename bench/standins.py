"""`python -m bench.standins`: Slack, the services and a sink in one process.

When ready, it prints a line of JSON: `environment` (the bot's settings without database and port),
`sink` (a response_url) and `services` (the address of the three services).
"""

import argparse
import asyncio
import json
import signal

from bench.sink import running_sink
from sandbox.people import Person
from sandbox.services.organizations import many_organizations
from sandbox.services.running import running_services
from sandbox.services.state import ServicesState
from sandbox.slack.server import running_slack
from sandbox.slack.workspace import Workspace
from tests.support.world import environment_for


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=0, help="so many more operators")
    parser.add_argument("--organizations", type=int, default=0, help="of the data center com")
    command = parser.parse_args()
    asyncio.run(serve(command.people, command.organizations))


def more_people(count: int) -> list[Person]:
    """Return operators named `U0LOAD0`, `U0LOAD1`, and so on."""
    return [
        Person(f"U0LOAD{number}", f"load{number}", f"Load {number}", "operator")
        for number in range(count)
    ]


async def serve(people: int, organizations: int) -> None:
    """Run the stand-ins until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    state, workspace = ServicesState(), Workspace()
    if organizations:
        state.set_organizations("com", many_organizations("com", organizations, 40))
    extra = more_people(people)
    workspace.people.update({person.id: person for person in extra})
    async with (
        running_services(state) as services,
        running_slack(workspace) as slack,
        running_sink() as sink,
    ):
        environment = environment_for(slack, services, "sqlite:///unset.db")
        roles = json.loads(environment["ROLES"])
        roles["operator"] += [person.id for person in extra]
        ready = {
            "environment": {**environment, "ROLES": json.dumps(roles)},
            "signing_secret": slack.signing_secret,
            "team": workspace.team_id,
            "sink": sink.url,
            "services": services.url,
        }
        print(json.dumps(ready), flush=True)
        await stop.wait()


if __name__ == "__main__":
    main()
