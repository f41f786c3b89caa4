"""How many pages there are."""


def page_count(total: int, size: int) -> int:
    """How many pages of that size hold all; one when there is nothing."""
    return max(1, -(-total // size))
