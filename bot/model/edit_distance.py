"""How far two words are from each other, for what was probably meant."""


def edit_distance(one: str, other: str, most: int) -> int:
    """How many characters to change, add, leave out or swap make one word of the other.

    Two neighbours that are swapped count as one. Whatever is more than `most` is `most` + 1.
    """
    if abs(len(one) - len(other)) > most:
        return most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    for at, character in enumerate(one, 1):
        older, before, row = before, row, [at]
        for column, theirs in enumerate(other, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (character != theirs))
            swapped = at > 1 and column > 1 and one[at - 2 : at] == theirs + other[column - 2]
            row.append(min(cost, older[column - 2] + 1) if swapped else cost)
        if min(row) > most and min(before) > most:
            return most + 1
    return min(row[-1], most + 1)
