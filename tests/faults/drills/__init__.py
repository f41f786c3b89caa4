"""The drills, by what goes wrong."""

from tests.faults.drills import database, kills, late, services, slack, time

ALL = (
    *database.DRILLS,
    *slack.DRILLS,
    *services.DRILLS,
    *time.DRILLS,
    *late.DRILLS,
    *kills.DRILLS,
)
