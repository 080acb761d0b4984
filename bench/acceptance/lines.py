"""What is to hold, what was measured, and the verdict on it.

A verdict is made in one place, from a number that a part has written: without
a number a line was not run, and without a GPU and models of full size the run
was a rehearsal, which meets nothing.
"""

import dataclasses
import json
import math


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    bound: float
    least: bool = False  # the bound is from below
    unit: str = ""

    def holds(self, measured):
        return measured >= self.bound if self.least else measured <= self.bound

    def words(self):
        return f"{'>=' if self.least else '<='} {number(self.bound)}{self.unit}"


def number(value):
    return f"{value:.4g}"


def counts(record):
    """Whether a part's numbers are mtrun's own, on a GPU, at full size."""
    return (record.get("backend") == "cuda" and record.get("scale") == "full"
            and record.get("own") is True and bool(record.get("device", {}).get("name")))


def verdict(line, record):
    """Of a line, given its part's record (None: the part was not run)."""
    result = (record or {}).get("lines", {}).get(line.name)
    measured = result and result.get("measured")
    if isinstance(measured, bool) or not isinstance(measured, (int, float)):
        return "not run"
    holds = math.isfinite(measured) and line.holds(measured)
    if not counts(record):
        return "rehearsed, within" if holds else "rehearsed, outside"
    return "met" if holds else "NOT MET"


def load(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def shortened(text, most=600):
    """Begin and end, where what a command said last is."""
    text = cell(text)
    return text if len(text) <= most else f"{text[:most // 4]} … {text[-3 * most // 4:]}"


def table(head, rows):
    return ["| " + " | ".join(map(cell, row)) + " |"
            for row in [head, ["---"] * len(head), *rows]]


def report(date, parts, folder):
    """Markdown of all parts: dict of name to lines, in order."""
    records = {part: load(folder / f"{part}.json") for part in parts}
    known = [record for record in records.values() if record]
    devices = sorted({json.dumps(record["device"], sort_keys=True) for record in known})
    text = [f"# On a GPU, {date}", ""]
    if not any(map(counts, known)):
        text += ["A rehearsal: nothing here was run on a GPU at full size.", ""]
    for device in devices:
        text += [", ".join(f"{name} {value}" for name, value in json.loads(device).items() if value)
                 or "no GPU was found", ""]
    rows = []
    for part, lines in parts.items():
        record = records[part]
        for line in lines:
            result = (record or {}).get("lines", {}).get(line.name) or {}
            measured = result.get("measured")
            shown = f"{number(measured)}{line.unit}" if isinstance(measured, (int, float)) else "-"
            rows.append([part, line.name, line.words(), shown, verdict(line, record),
                         result.get("note", "")])
    text += table(["part", "line", "bound", "measured", "", "note"], rows)
    for part, record in records.items():
        if not record:
            continue
        text += ["", f"## {part}", "",
                 f"{record['date']}, {record['seconds']:.0f} s, `--backend {record['backend']}`, "
                 f"`--scale {record['scale']}`"]
        for one in record["tables"]:
            text += ["", one["title"], "", *table(one["head"], one["rows"])]
        if record["failures"]:
            text += ["", "What failed:", ""]
            text += [f"- {shortened(failure)}" for failure in record["failures"]]
        if record["unfinished"]:
            text += ["", f"It was cut off in: {', '.join(record['unfinished'])}."]
    return "\n".join(text) + "\n"
