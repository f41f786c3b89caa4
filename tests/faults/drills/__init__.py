"""The drills, by what goes wrong."""

from tests.faults.drills import database, gateway, kills, late, names, scale, services, slack, time

ALL = (
    *database.DRILLS,
    *slack.DRILLS,
    *services.DRILLS,
    *names.DRILLS,
    *time.DRILLS,
    *late.DRILLS,
    *scale.DRILLS,
    *gateway.DRILLS,
    *kills.DRILLS,
)
