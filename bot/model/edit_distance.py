"""How far two words are from each other, for what was probably meant."""


def edit_distance(one: str, other: str, most: int) -> int:
    """How many characters to change, add, leave out or swap make one word of the other.

    Two neighbours that are swapped count as one, also where another came between them (Damerau and
    Levenshtein). Whatever is more than `most` is `most` + 1.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    # Each edit brings in one character at most.
    if sum(character not in other for character in one) > most:
        return most + 1
    # Row and column 0 are out of reach: what would be swapped with nothing.
    far = len(one) + len(other)
    table = [[far] * len(other), [far, *range(len(other) + 1)]]
    last_row: dict[str, int] = {}
    for at, character in enumerate(one, 1):
        before, row, last_match = table[-1], [far, at], 0
        for column, theirs in enumerate(other, 1):
            match_row, match_column = last_row.get(theirs, 0), last_match
            if character == theirs:
                last_match = column
            swapped = at - match_row + column - match_column - 1
            row.append(
                min(
                    before[column] + (character != theirs),
                    row[-1] + 1,
                    before[column + 1] + 1,
                    table[match_row][match_column] + swapped,
                )
            )
        last_row[character] = at
        table.append(row)
        # No swap leaps over this row for less than it takes to leave out letters up to it.
        if min(row) > most:
            return most + 1
    return int(min(table[-1][-1], most + 1))
