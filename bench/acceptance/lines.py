"""Compares the measurements of a part with bounds, and writes verdicts.

A line of the report without a number was not run. A run without a GPU, without
models of full size or with an emulator's mtrun is a rehearsal, whose lines are
never `met`.
"""

import contextlib
import dataclasses
import datetime
import json
import math
import os
import time

from .machine import NoTime


@dataclasses.dataclass(frozen=True)
class Line:
    name: str
    bound: float
    least: bool = False  # True: the bound is a lower bound
    unit: str = ""

    def holds(self, measured):
        return measured >= self.bound if self.least else measured <= self.bound

    def words(self):
        return f"{'>=' if self.least else '<='} {number(self.bound)}{self.unit}"


def number(value):
    return f"{value:.4g}"


class Record:
    """Holds the results of a part, and writes them when an attempt begins or ends.

    Therefore a part that is cut off leaves its measurements.
    """

    def __init__(self, part, flags, device, start):
        self.start = start
        self.path = flags.results / f"{part}.json"
        self.words = {
            "part": part,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "backend": flags.backend, "scale": flags.scale, "device": device,
            "own": flags.mtrun is None,  # False if an emulator's mtrun runs
            "unfinished": [],  # attempts in progress, the outermost first
            "lines": {}, "tables": [], "failures": [], "facts": {}}

    def measure(self, line, measured, note=""):
        self.words["lines"][line] = {"measured": measured, "note": note}

    def table(self, title, head, rows):
        if rows:
            self.words["tables"].append({"title": title, "head": head, "rows": rows})

    @contextlib.contextmanager
    def attempt(self, what):
        """Records a failure inside the block, and continues after it."""
        print(f"  {what}", flush=True)
        self.words["unfinished"].append(what)
        self.write()
        try:
            yield
        except Exception as error:  # pylint: disable=broad-exception-caught
            why = ("not run for want of time" if isinstance(error, NoTime)
                   else type(error).__name__)
            message = f"{what}: {why}: {error}"
            self.words["failures"].append(message)
            print(f"    failed: {message}", flush=True)
        except BaseException:
            self.write()
            raise
        self.words["unfinished"].pop()
        self.write()

    def write(self):
        self.words["seconds"] = time.monotonic() - self.start
        new = self.path.with_suffix(".json.new")
        new.write_text(json.dumps(self.words, indent=1) + "\n", encoding="utf-8")
        os.replace(new, self.path)


def counts(record):
    """Returns whether mtrun itself was measured on a GPU, at full size."""
    return (record.get("backend") == "cuda" and record.get("scale") == "full"
            and record.get("own") is True and bool(record.get("device", {}).get("name")))


def verdict(line, record):
    """Judges a line by its part's record, which is None for a part not run."""
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
    """Shortens a text to its beginning and end, where a command's errors are."""
    text = cell(text)
    return text if len(text) <= most else f"{text[:most // 4]} … {text[-3 * most // 4:]}"


def table(head, rows):
    return ["| " + " | ".join(map(cell, row)) + " |"
            for row in [head, ["---"] * len(head), *rows]]


def report(date, parts, folder):
    """Returns a report on `parts`, a dict from name to lines, in Markdown."""
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
