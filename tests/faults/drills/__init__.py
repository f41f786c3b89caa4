"""The drills, grouped by kind of fault."""

from tests.faults.drills import database, kills, services, slack, time

ALL = (
    *database.DRILLS,
    *slack.DRILLS,
    *services.DRILLS,
    *time.DRILLS,
    *kills.DRILLS,
)
