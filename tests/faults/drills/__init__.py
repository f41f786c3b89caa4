"""The drills, by what goes wrong."""

from tests.faults.drills import database

ALL = (*database.DRILLS,)
