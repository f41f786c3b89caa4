"""Limits of the blocks that hold data: tables, charts and rich text.

Source: Slack's reference pages of the table, data table, data visualization and rich text blocks.
"""

from typing import Any

from sandbox.slack.checker import Checker, Rule
from sandbox.slack.messages import Json, texts

CELL_CHARACTERS = 10_000


def raw_text(check: Checker, part: Json, at: str) -> None:
    """A cell of plain words."""
    check.keys(part, at, "text")
    check.string(part.get("text"), f"{at}/text", CELL_CHARACTERS)


def raw_number(check: Checker, part: Json, at: str) -> None:
    """A cell of a number, with how it is written."""
    check.keys(part, at, "value text")
    check.string(part.get("text"), f"{at}/text", CELL_CHARACTERS)
    if not isinstance(part.get("value"), int | float) or isinstance(part.get("value"), bool):
        check.wrong("must be a number", f"{at}/value")


def rich_text(check: Checker, part: Json, at: str) -> None:
    """Formatted text."""
    check.keys(part, at, "elements", "block_id")
    for place, element in check.objects(part, at, "elements", 1, 500):
        check.follow(RICH_PARTS, element, place, "rich text element")


def rich_section(check: Checker, part: Json, at: str) -> None:
    """A run of formatted words."""
    check.keys(part, at, "elements", "border language")
    for place, element in check.objects(part, at, "elements", 0, 2000):
        check.follow(RICH_WORDS, element, place, "rich text word")


def rich_list(check: Checker, part: Json, at: str) -> None:
    """A list of sections."""
    check.keys(part, at, "elements style", "indent offset border")
    check.choice(part, at, "style", {"bullet", "ordered"})
    for place, element in check.objects(part, at, "elements", 1, 500):
        check.follow({"rich_text_section": rich_section}, element, place, "list item")


def rich_word(required: str, optional: str = "") -> Rule:
    """The rule of one run of rich text."""

    def rule(check: Checker, part: Json, at: str) -> None:
        check.keys(part, at, required, f"style {optional}")
        if "text" in part:
            check.string(part["text"], f"{at}/text", 10_000)
            check.count(part["text"])
        style = part.get("style") or {}
        for key in style:
            if key not in {"bold", "italic", "strike", "code", "underline", "highlight"}:
                check.wrong(f"invalid additional property: {key}", f"{at}/style")

    return rule


RICH_WORDS: dict[str, Rule] = {
    "text": rich_word("text"),
    "link": rich_word("url", "text unsafe"),
    "emoji": rich_word("name", "unicode skin_tone"),
    "user": rich_word("user_id"),
    "usergroup": rich_word("usergroup_id"),
    "channel": rich_word("channel_id"),
    "broadcast": rich_word("range"),
    "color": rich_word("value"),
    "date": rich_word("timestamp format", "url fallback"),
}
RICH_PARTS: dict[str, Rule] = {
    "rich_text_section": rich_section,
    "rich_text_preformatted": rich_section,
    "rich_text_quote": rich_section,
    "rich_text_list": rich_list,
}
CELLS: dict[str, Rule] = {"raw_text": raw_text, "raw_number": raw_number, "rich_text": rich_text}


def rows(check: Checker, part: Json, at: str, least: int, most: int) -> list[list[Any]]:
    """The rows of either kind of table: at most 20 cells each, 10,000 characters in all."""
    found = []
    for place, row in check.items(part, at, "rows", least, most):
        cells = check.objects({"cells": row}, place, "cells", 1, 20)
        for cell_place, cell in cells:
            check.follow(CELLS, cell, cell_place.replace("/cells", ""), "cell")
        found.append([cell for _, cell in cells])
    size = sum(len(text) for text in texts(found))
    check.total += size
    if size > CELL_CHARACTERS:
        check.wrong(f"no more than {CELL_CHARACTERS} characters in a table", f"{at}/rows")
    return found


def table(check: Checker, part: Json, at: str) -> None:
    """A plain table."""
    check.keys(part, at, "rows", "block_id column_settings")
    rows(check, part, at, 1, 100)
    if part.get("column_settings") is None:
        return
    for place, setting in check.items(part, at, "column_settings", 0, 20):
        if setting is None:
            continue
        check.keys(setting, place, "", "align is_wrapped")
        check.choice(setting, place, "align", {"left", "center", "right"})


def data_table(check: Checker, part: Json, at: str) -> None:
    """A table with a caption, a header and pages."""
    check.keys(part, at, "caption rows", "block_id page_size row_header_column_index")
    check.string(part.get("caption"), f"{at}/caption", 3000)
    check.number(part, at, "page_size", 1, 100)
    check.number(part, at, "row_header_column_index", 0, 19)
    found = rows(check, part, at, 2, 101)
    if len({len(row) for row in found}) > 1:
        check.wrong("all rows must have the same number of cells", f"{at}/rows")
    if found and any(cell.get("type") == "rich_text" for cell in found[0]):
        check.wrong("rich_text is not allowed in the header", f"{at}/rows/0")


def data_visualization(check: Checker, part: Json, at: str) -> None:
    """A chart."""
    check.keys(part, at, "title chart", "block_id")
    check.string(part.get("title"), f"{at}/title", 50)
    check.count(part.get("title"))
    check.follow(CHARTS, part.get("chart"), f"{at}/chart", "chart")


def pie(check: Checker, part: Json, at: str) -> None:
    """A pie of one to six slices."""
    check.keys(part, at, "segments")
    for place, segment in check.objects(part, at, "segments", 1, 6):
        check.keys(segment, place, "label value")
        check.string(segment.get("label"), f"{place}/label", 20)
        number(check, segment, place)
        if not segment.get("value", 0) > 0:
            check.wrong("must be more than 0", f"{place}/value")


def axes_chart(check: Checker, part: Json, at: str) -> None:
    """Bars, lines or areas: one point for every category in every series."""
    check.keys(part, at, "series axis_config")
    axis = part.get("axis_config") or {}
    check.keys(axis, f"{at}/axis_config", "categories", "x_label y_label")
    check.strings(axis, f"{at}/axis_config", x_label=50, y_label=50)
    for place, category in check.items(axis, f"{at}/axis_config", "categories", 1, 20):
        check.string(category, place, 20)
    found = check.objects(part, at, "series", 1, 6)
    for place, series in found:
        check.keys(series, place, "name data")
        check.string(series.get("name"), f"{place}/name", 20)
        points(check, series, place, axis.get("categories") or [])
    if len({series.get("name") for _, series in found}) != len(found):
        check.wrong("series names must be unique", f"{at}/series")


def points(check: Checker, series: Json, at: str, categories: list[str]) -> None:
    """Exactly one point for each category."""
    found = check.objects(series, at, "data", 1, 20)
    for place, point in found:
        check.keys(point, place, "label value")
        number(check, point, place)
    if sorted(str(point.get("label")) for _, point in found) != sorted(map(str, categories)):
        check.wrong("data must have exactly one point for each category", f"{at}/data")


def number(check: Checker, part: Json, at: str) -> None:
    """A point's value."""
    value = part.get("value")
    if not isinstance(value, int | float) or isinstance(value, bool):
        check.wrong("must be a number", f"{at}/value")


CHARTS: dict[str, Rule] = {"pie": pie, "bar": axes_chart, "line": axes_chart, "area": axes_chart}
