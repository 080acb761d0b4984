#!/usr/bin/env python3
"""pasted.py <folder of binaries> [--update]: runs every command shown in
PAGES, and compares what it prints now with the output pasted below it.

A shown command starts with `$ `, and its output follows to the end of the block
or the next command. A line `…` stands for any number of lines, and ` …` at the
end of a line for the rest of that line. --update replaces pasted output that
differs by the printed lines. In output with a `…`, --update replaces only each
line that differs, by the most similar printed line.
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ["README.md", "examples/README.md", "docs/measurements-format.md",
         "docs/default-plans.md", "docs/planning.md", "docs/stand-alone.md"]


def printed(command, binaries, scratch):
    """Returns the lines that the command prints. Files it writes go to the
    scratch folder, where later commands find them."""
    path = f"{pathlib.Path(binaries).resolve()}:{os.environ['PATH']}"
    run = subprocess.run(["bash", "-c", command], cwd=scratch, text=True,
                         env={**os.environ, "PATH": path}, check=False,
                         capture_output=True)
    return [line.rstrip() for line in
            (run.stdout + run.stderr).rstrip("\n").split("\n")]


def matches(wanted, line):
    if wanted.endswith(" …"):
        return line.startswith(wanted[:-2])
    return line == wanted.rstrip()


def mended(wanted, lines):
    """Returns the pasted lines, with lines that differ replaced."""
    if "…" not in wanted:
        if len(wanted) == len(lines) and all(map(matches, wanted, lines)):
            return wanted
        if not any(w.endswith(" …") for w in wanted):
            return lines
    result, at, free = [], 0, False
    for want in wanted:
        if want == "…":
            result.append(want)
            free = True
            continue
        found = next((i for i in range(at, len(lines))
                      if matches(want, lines[i])), None)
        if found is None or (not free and found != at):
            rest = lines[at:] if free else lines[at:at + 1]
            close = difflib.get_close_matches(want, rest, 1, 0.0)
            if not close:
                continue
            found = lines.index(close[0], at)
            want = close[0]
        result.append(want)
        at, free = found + 1, False
    return result


def page_mended(page, binaries, scratch):
    """Returns the page, with output that differs replaced."""
    def block(match):
        out = []
        parts = re.split(r"^\$ ", match.group(1), flags=re.MULTILINE)
        for part in parts[1:]:
            command, _, rest = part.partition("\n")
            lines = printed(command, binaries, scratch)
            out.append("$ " + command)
            pasted = rest.rstrip("\n").split("\n") if rest.strip() else []
            out += mended(pasted, lines) if pasted else []
            out += [""] * (len(rest) - len(rest.rstrip("\n")) - 1)
        return "```\n" + "\n".join(out).rstrip("\n") + "\n```"

    return re.sub(r"```\n(\$ .*?)\n```", block, page, flags=re.DOTALL)


def main():
    update = "--update" in sys.argv
    bad = 0
    for name in PAGES:
        path = ROOT / name
        text = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as scratch:
            scratch = pathlib.Path(scratch)
            os.symlink(ROOT / "examples", scratch / "examples")
            (scratch / "build/release").mkdir(parents=True)
            os.symlink(pathlib.Path(sys.argv[1]).resolve(),
                       scratch / "build/release/bin")
            right = page_mended(text, sys.argv[1], scratch)
        if right == text:
            continue
        if update:
            path.write_text(right, encoding="utf-8")
            continue
        bad += 1
        sys.stdout.writelines(difflib.unified_diff(
            text.splitlines(True), right.splitlines(True), name,
            "current output", n=0))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
