"""What a part found, as the JSON that it leaves behind."""

import contextlib
import datetime
import json
import time

from .machine import Failure


class Record:
    def __init__(self, part, flags, device):
        self.start = time.monotonic()
        self.words = {
            "part": part,
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "backend": flags.backend, "scale": flags.scale, "device": device,
            "own": flags.mtrun is None,  # not an emulator's
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
        try:
            yield
        except (Failure, OSError, ValueError, KeyError, IndexError, ZeroDivisionError) as error:
            message = f"{what}: {type(error).__name__}: {error}"
            self.words["failures"].append(message)
            print(f"    failed: {message}", flush=True)

    def write(self, path):
        self.words["seconds"] = time.monotonic() - self.start
        path.write_text(json.dumps(self.words, indent=1) + "\n", encoding="utf-8")
