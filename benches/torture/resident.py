"""Memory of a process, as the kernel tells it."""
from pathlib import Path


def memory(pid):
    """(resident KiB, private and written to KiB) of a process."""
    sums = {"Rss": 0, "Private_Dirty": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in sums:
            sums[name] += int(rest.split()[0])
    return sums["Rss"], sums["Private_Dirty"]
