"""The drills, by what goes wrong."""

from tests.faults.drills import database, kills, late, scale, services, slack, time

ALL = (
    *database.DRILLS,
    *slack.DRILLS,
    *services.DRILLS,
    *time.DRILLS,
    *late.DRILLS,
    *scale.DRILLS,
    *kills.DRILLS,
)
