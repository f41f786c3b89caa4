"""Text for terminals, in which untrusted names and words stay on one line."""


def on_one_line(text: str) -> str:
    r"""Return text for a terminal, with control and invisible characters escaped.

    >>> on_one_line("a\x1b[2J\nb")
    'a\\x1b[2J\\nb'
    """
    return "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text
    )
