"""Lists the drills for each kind of fault."""

from tests.faults.drills import database, kills, services, slack, time

ALL = (
    *database.DRILLS,
    *slack.DRILLS,
    *services.DRILLS,
    *time.DRILLS,
    *kills.DRILLS,
)
