"""A name server does not answer."""

import json

from tests.faults.drill import Drill, Notes
from tests.support.databases import database_of
from tests.support.fleet import Fleet, running_fleet
from tests.support.loop_time import seconds_now
from tests.support.story import REQUESTER

SILENT = "silent.example"
LAUNCHER = ("-m", "tests.support.launch", "--silent-names", SILENT)
# Contract, section 2.
STOP_SECONDS = 10.0
ANSWER_SECONDS = 3.0


async def silent(notes: Notes) -> None:
    """All data centers but one have a host whose name nobody knows, nor says so."""
    async with database_of(notes.database, notes.folder) as url, running_fleet(url, 0) as fleet:
        centers = _without_names(fleet)
        process = await fleet.add(LAUNCHER, inventory_data_centers=centers, inventory_watch="off")
        await fleet.slack.command(REQUESTER, "C0GENERAL", "/orgs", "refresh")
        began = seconds_now()
        answer = await fleet.ask(REQUESTER, "/gatehouse", "whoami")
        notes.saw(answer, "operator")
        assert seconds_now() - began < ANSWER_SECONDS, "answered late"
        async with fleet.session.get(f"{process.address}/metrics") as page:
            assert page.status == 200
        assert seconds_now() - began < 2 * ANSWER_SECONDS, "metrics were late"
        notes.holds("commands and metrics answered meanwhile")
        notes.saw(await fleet.ask(REQUESTER, "/orgs", "refresh"), "can't be reached")
        await fleet.slack.command(REQUESTER, "C0GENERAL", "/orgs", "refresh")
        began = seconds_now()
        assert await process.stop() == 0
        took = seconds_now() - began
        assert took <= STOP_SECONDS, f"stopped after {took:.0f} s"
        notes.seen.append(f"stopped after {took:.1f} s")
        notes.holds("stopped in time")
        assert not fleet.tracebacks, fleet.tracebacks[0][:2000]


def _without_names(fleet: Fleet) -> str:
    centers = json.loads(fleet.environment["INVENTORY_DATA_CENTERS"])
    for name, center in centers.items():
        if name != "com":
            center["base_url"] = f"https://{name}.{SILENT}/inventory/v1"
    return json.dumps(centers)


DRILLS = (
    Drill(
        "a name server does not answer",
        "Other commands, data centers and the metrics answer as usual; SIGTERM ends the program in"
        " 10 s.",
        silent,
        ("sqlite",),
    ),
)
