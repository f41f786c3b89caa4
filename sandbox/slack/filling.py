"""Fills in a modal as a person would. Typed text and choices become the modal's `state.values`."""

from typing import Any

from sandbox.slack.messages import Json, View, label, label_of

ONE_OPTION = {"static_select", "external_select", "overflow"}
STATE_FIELDS = {
    "datetimepicker": "selected_date_time",
    **dict.fromkeys(ONE_OPTION, "selected_option"),
}
REQUIRED = "Please complete this required field."


class NotThereError(AssertionError):
    """Raised if a test or a person names an element that is not on the screen."""


def state_field(kind: str) -> str:
    """Return the name of the field that holds an element's value in `state.values`."""
    return STATE_FIELDS.get(kind, "value")


def state_of(element: Json, value: Any) -> Json:
    """Return the state that an element has after a person enters this value.

    An option can be chosen by either its text or its value.
    """
    kind = element["type"]
    if kind in ONE_OPTION and value is not None:
        value = pick(element, value)
    elif kind == "plain_text_input":
        value = str(value) if value not in {None, ""} else None
    return {"type": kind, state_field(kind): value}


def pick(element: Json, wanted: Any) -> Json:
    """Return the option that has this text or this value.

    Raises:
        NotThereError: There is no such option.
    """
    if isinstance(wanted, dict):
        return wanted
    offered = list(element.get("options") or [])
    for option in offered:
        if wanted in {option["text"]["text"], option["value"]}:
            return dict(option)
    names = [option["text"]["text"] for option in offered]
    raise NotThereError(f"no option {wanted!r} among {names}")


def initial_state(element: Json) -> Json:
    """Return the state of an element that nobody has changed yet."""
    field = state_field(element["type"])
    names = [key for key in element if key.startswith("initial_")]
    return {"type": element["type"], field: element[names[0]] if names else None}


def state_values(blocks: list[Json], elements: list[tuple[Json, Json]], typed: Json) -> Json:
    """Return the `state.values` of a message or modal. Typed values replace initial values."""
    values: Json = {}
    for block, element in elements:
        if element["type"] in {"button", "overflow"} or block not in blocks:
            continue
        block_id, action_id = str(block.get("block_id")), element["action_id"]
        state = typed.get(block_id, {}).get(action_id) or initial_state(element)
        values.setdefault(block_id, {})[action_id] = state
    return values


def view_state(view: View) -> Json:
    """Return a modal's current `state.values`."""
    return state_values(view.blocks, view.elements, view.values)


def find_input(view: View, name: str) -> tuple[Json, Json]:
    """Find the input that has this label or block_id, and return its block and its element.

    Raises:
        NotThereError: The modal has no such input.
    """
    for block in view.blocks:
        if block.get("type") == "input" and name in {label_of(block), block.get("block_id")}:
            return block, block["element"]
    raise NotThereError(f"no input {name!r}; the modal {view.title!r} has {view.labels}")


def fill(view: View, name: str, value: Any) -> None:
    """Enter a value in one of a modal's inputs."""
    block, element = find_input(view, name)
    state = state_of(element, value)
    view.values.setdefault(str(block["block_id"]), {})[element["action_id"]] = state


def missing(view: View) -> dict[str, str]:
    """Map the block_id of each invalid input to the error that Slack's client shows."""
    state = view_state(view)
    wrong = {}
    for block in view.blocks:
        if block.get("type") == "input":
            element = block["element"]
            value = state[block["block_id"]][element["action_id"]][state_field(element["type"])]
            problem = client_problem(block, element, value)
            if problem:
                wrong[str(block["block_id"])] = problem
    return wrong


def client_problem(block: Json, element: Json, value: Any) -> str | None:
    """Return the error that Slack's client shows for an input, or None if there is no error."""
    if value in (None, "", []):
        return None if block.get("optional") else REQUIRED
    most = element.get("max_length") or 3000
    if element["type"] == "plain_text_input" and len(value) > most:
        return f"Please enter at most {most} characters."
    return None


def find_element(
    elements: list[tuple[Json, Json]], name: str, block_id: str | None = None
) -> tuple[Json, Json] | None:
    """Find an element by its action_id or label, and return the element and its block."""
    for block, element in elements:
        names = {element.get("action_id"), label(element), label_of(block)}
        if name in names and block_id in {None, block.get("block_id")}:
            return block, element
    return None
