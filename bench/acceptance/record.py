"""What a part found, as the JSON that it leaves behind."""

import contextlib
import datetime
import json
import os
import time

from .machine import NoTime


class Record:
    """Written whenever an attempt begins or ends: what is cut off leaves the rest."""

    def __init__(self, part, flags, device, start):
        self.start = start
        self.path = flags.results / f"{part}.json"
        self.words = {
            "part": part,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "backend": flags.backend, "scale": flags.scale, "device": device,
            "own": flags.mtrun is None,  # not an emulator's
            "unfinished": [],  # attempts that were begun, the outer ones first
            "lines": {}, "tables": [], "failures": [], "facts": {}}

    def measure(self, line, measured, note=""):
        self.words["lines"][line] = {"measured": measured, "note": note}

    def table(self, title, head, rows):
        if rows:
            self.words["tables"].append({"title": title, "head": head, "rows": rows})

    @contextlib.contextmanager
    def attempt(self, what):
        """What fails in here is written down, and the rest goes on."""
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
