"""What is printed for people: names and words of others stay on their line."""


def on_one_line(text: str) -> str:
    r"""Return a text for a terminal: what would move its cursor, or is not seen, as escapes.

    >>> on_one_line("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
