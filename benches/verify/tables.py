"""Plain tables for terminals and for Markdown."""


def show(columns, rows):
    """Prints rows (lists of values) under column names, as a Markdown table."""
    text = [[cell(value) for value in row] for row in rows]
    widths = [max(len(line[i]) for line in [columns, *text]) for i in range(len(columns))]
    print(line_of(columns, widths))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in text:
        print(line_of(row, widths))
    print(flush=True)


def line_of(cells, widths):
    """One line of a table."""
    return "| " + " | ".join(value.ljust(width) for value, width in zip(cells, widths)) + " |"


def cell(value):
    """A value as text; shares (floats) in percent, rounded down so that 100 % means all."""
    if isinstance(value, float):
        return f"{int(value * 10000) / 100:.2f} %"
    return str(value)
