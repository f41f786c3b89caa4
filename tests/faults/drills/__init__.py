"""The drills, by what goes wrong."""

from tests.faults.drills import database, services, slack, time

ALL = (*database.DRILLS, *slack.DRILLS, *services.DRILLS, *time.DRILLS)
