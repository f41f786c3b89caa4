"""Page counts."""


def page_count(total: int, size: int) -> int:
    """Return the number of pages of this size; 1 if there is nothing."""
    return max(1, -(-total // size))
