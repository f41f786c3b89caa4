"""Checks tables and bar charts against Slack's limits.

The limits come from Slack's reference pages for the table and data visualization blocks.
"""

from typing import Any

from sandbox.slack.checker import Checker
from sandbox.slack.messages import Json, texts

CELL_CHARACTERS = 10_000


def raw_text(check: Checker, part: Json, at: str) -> None:
    """Check a cell that contains plain text."""
    check.keys(part, at, "text")
    check.string(part.get("text"), f"{at}/text", CELL_CHARACTERS)


def rows(check: Checker, part: Json, at: str, least: int, most: int) -> list[list[Any]]:
    """Check a table's rows.

    A row can have up to 20 cells, and a table can have up to 10,000 characters.
    """
    found = []
    for place, row in check.items(part, at, "rows", least, most):
        cells = check.objects({"cells": row}, place, "cells", 1, 20)
        for cell_place, cell in cells:
            check.follow({"raw_text": raw_text}, cell, cell_place.replace("/cells", ""), "cell")
        found.append([cell for _, cell in cells])
    size = sum(len(text) for text in texts(found))
    check.total += size
    if size > CELL_CHARACTERS:
        check.wrong(f"no more than {CELL_CHARACTERS} characters in a table", f"{at}/rows")
    return found


def table(check: Checker, part: Json, at: str) -> None:
    """Check a plain table."""
    check.keys(part, at, "rows", "block_id column_settings")
    rows(check, part, at, 1, 100)
    if part.get("column_settings") is None:
        return
    for place, setting in check.items(part, at, "column_settings", 0, 20):
        if setting is None:
            continue
        check.keys(setting, place, "", "align is_wrapped")
        check.choice(setting, place, "align", {"left", "center", "right"})


def data_visualization(check: Checker, part: Json, at: str) -> None:
    """Check a chart."""
    check.keys(part, at, "title chart", "block_id")
    check.string(part.get("title"), f"{at}/title", 50)
    check.count(part.get("title"))
    check.follow({"bar": axes_chart}, part.get("chart"), f"{at}/chart", "chart")


def axes_chart(check: Checker, part: Json, at: str) -> None:
    """Check a bar chart, which must have exactly one series."""
    check.keys(part, at, "series axis_config")
    axis = part.get("axis_config") or {}
    check.keys(axis, f"{at}/axis_config", "categories", "y_label")
    check.strings(axis, f"{at}/axis_config", y_label=50)
    for place, category in check.items(axis, f"{at}/axis_config", "categories", 1, 20):
        check.string(category, place, 20)
    found = check.objects(part, at, "series", 1, 1)
    for place, series in found:
        check.keys(series, place, "name data")
        check.string(series.get("name"), f"{place}/name", 20)
        points(check, series, place, axis.get("categories") or [])


def points(check: Checker, series: Json, at: str, categories: list[str]) -> None:
    """Check that the series has exactly one point for each category."""
    found = check.objects(series, at, "data", 1, 20)
    for place, point in found:
        check.keys(point, place, "label value")
        number(check, point, place)
    if sorted(str(point.get("label")) for _, point in found) != sorted(map(str, categories)):
        check.wrong("data must have exactly one point for each category", f"{at}/data")


def number(check: Checker, part: Json, at: str) -> None:
    """Check that a point's value is a number."""
    value = part.get("value")
    if not isinstance(value, int | float) or isinstance(value, bool):
        check.wrong("must be a number", f"{at}/value")
