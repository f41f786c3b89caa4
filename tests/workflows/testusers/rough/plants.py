"""Faults to plant into the bot, each the code without one cure: see that the days find them."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from bot.model import doubt
from bot.model.testusers import approval
from bot.model.testusers.approval import Decision, Reason
from bot.model.testusers.changes import NO_CHANGE
from bot.model.testusers.requests import Request
from bot.workflows.testusers import applying, failing, settling
from bot.workflows.testusers.finishing import ChangeSet
from bot.workflows.testusers.rendering import RequestMessages
from bot.workflows.testusers.settling import Settling, Waiting

Plant = Callable[[pytest.MonkeyPatch], None]
# By name, with a scene that finds it.
PLANTS: dict[str, tuple[Plant, tuple]] = {}


def _plant(*scene: object) -> Callable[[Plant], Plant]:
    def note(plant: Plant) -> Plant:
        PLANTS[plant.__name__.replace("_", "-")] = plant, scene
        return plant

    return note


@_plant("late_post", "+1")
def late_post_not_repaired(patch) -> None:
    """What a late POST undid stays undone."""
    patch.setattr(doubt.DoubtfulPost, "undone_in", lambda *_: NO_CHANGE)


@_plant("answer_unknown", "+1")
def failed_stays_failed(patch) -> None:
    """Nobody looks whether what failed in doubt has arrived."""
    real = Settling._settle

    async def settle(self, changes):
        waiting = self._waiting
        self._waiting = replace(waiting, doubtful=[])
        left = await real(self, changes)
        self._waiting = waiting
        return left

    patch.setattr(Settling, "_settle", settle)


@_plant("stored_in_part", "+1")
def applied_by_majority(patch) -> None:
    """A change is true when most of it is."""

    def is_true(change, listed) -> bool:
        right = [one for one in change.additions if one in listed]
        right += [one for one in change.removals if one not in listed]
        return 2 * len(right) > len(change.identities)

    patch.setattr(settling, "is_true", is_true)


@_plant("third_try_lands", "+1")
def spent_without_a_look(patch) -> None:
    """What has had its tries fails, though it is true by now."""
    patch.setattr(Settling, "_is_spent", lambda _, request: failing.is_spent(request))


@_plant("one_spoils", "+1")
def tried_together_only(patch) -> None:
    """No request has its last try alone."""
    patch.setattr(Waiting, "is_last_try_of_several", False)


@_plant("end_refused", "+1", "400")
def ends_hammered(patch) -> None:
    """What fails again and again is tried as often as at first."""
    patch.setattr(applying, "pause_seconds", lambda _: 10.0)


@_plant("end_refused", "+1", "503")
def audit_fills(patch) -> None:
    """Each POST that never arrived has an entry, the same one or not."""
    patch.setattr(doubt.DoubtfulPost, "has_same_content", lambda *_: False)


@_plant("end_refused", "+1", "403")
def overdue_stays(patch) -> None:
    """The card of an overdue grant says so after the grant was extended."""
    patch.setattr(ChangeSet, "_not_overdue", lambda _, request_id, progress: progress)


@_plant("extension_waits", "+1")
def extension_ignored(patch) -> None:
    """A grant ends though an approved extension waits for its next try."""
    patch.setattr(Waiting, "over", property(lambda self: self.due))


@_plant("extension_unknown", "+1")
def replaced_grant_ends(patch) -> None:
    """A grant ends though the look that finds it over has just replaced it."""
    patch.setattr(ChangeSet, "is_in_force", lambda *_: True)


@_plant("undo_late", "+1")
def undo_forgets_the_end(patch) -> None:
    """An undo lets in whose time is over by then."""
    patch.setattr(Request, "change_at", lambda self, _: self.left)


@_plant("quorum_lowered", "+1", 2)
def quorum_counts_new_presses_only(patch) -> None:
    """Who approved before moves nothing, though fewer are needed by now."""
    real = approval._count

    def count(request, actor_id, rules, entitled_ids, at) -> Decision:
        if actor_id in request.approver_ids and actor_id in entitled_ids:
            return Decision(Reason.APPROVED_BEFORE)
        return real(request, actor_id, rules, entitled_ids, at)

    patch.setattr(approval, "_count", count)


@_plant("quorum_lowered", "+1", 3)
def none_more_needed(patch) -> None:
    """A card counts what is missing, though nothing is."""
    patch.setattr(Request, "has_enough_approvals", lambda *_: False)


@_plant("deleted", "+1", True)
def deleted_flow_kept(patch) -> None:
    """Grants of a deleted flow go on for ever."""
    patch.setattr(applying, "is_deleted", lambda _: False)


@_plant("under_maintenance", "+1")
def first_404_believed(patch) -> None:
    """One look that finds no flow ends its grants."""
    patch.setattr(applying, "is_deleted", bool)


@_plant("settings_change", "+1", True, "not Ada", "greeting")
def open_cards_left_behind(patch) -> None:
    """A start shows no card as its settings have it."""

    async def plan(*_) -> None:
        """Do nothing."""

    patch.setattr(RequestMessages, "plan", plan)
