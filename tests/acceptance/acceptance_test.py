#!/usr/bin/env python3
"""The run of acceptance on a GPU, rehearsed where there is none.

    acceptance_test.py <folder of programs> [<mtrun with an emulated GPU>]

Tiny models on CPU ranks, with stand-ins for the programs of other people, go
through every part; or the parts on numbers, on the emulator. Nothing of it may
be reported as met, and nothing that did not run as within its bound.
"""

import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

# pylint: disable=wrong-import-position
import gpu_acceptance
from acceptance import lines, numbers
from acceptance.machine import Failure

STAND_INS = {
    "python": """#!/bin/sh
case $1 in -c) exit 1 ;; esac
echo '{"torch": "0", "tokens_per_second": 10.0, "peak_bytes": 1048576}'
""",
    "nvidia-smi": """#!/bin/sh
case $1 in
*name*) echo 'A GPU, 1.0, 700 W' ;;
*) echo 100; echo 150; exec sleep 60 ;;
esac
""",
    "compute-sanitizer": """#!/bin/sh
tool=$2; shift 4
case $1 in *cuda_tests) echo '[  PASSED  ] 3 tests.'; echo '[  SKIPPED ] 2 tests' ;; *) "$@" ;; esac
case $tool in
racecheck) echo '========= RACECHECK SUMMARY: 0 hazards displayed' ;;
initcheck) echo '========= no summary' ;;
*) echo '========= ERROR SUMMARY: 2 errors' ;;
esac
""",
    "cmake": """#!/bin/sh
[ "$1" = -S ] || exit 0
mkdir -p "$4"
{ echo '#!/bin/sh'; for i in 1 2 3 4 5 6 7 8 9 10; do echo "echo 'step $i  loss 1.5  norm 1'"; done
} >"$4/train"
chmod +x "$4/train"
""",
}

faults = []


def expect(holds, what):
    if not holds:
        faults.append(what)
        print(f"FAILED: {what}", flush=True)


def refuses(what, text):
    try:
        expect(False, f"{what} gave {numbers.differences(text)}")
    except Failure:
        pass


def check_verdicts():
    line = lines.Line("x", 2.0)
    least = lines.Line("x", 2.0, least=True)

    def record(measured, **more):
        words = {"backend": "cuda", "scale": "full", "own": True, "device": {"name": "GPU"},
                 "lines": {"x": {"measured": measured}}}
        return {**words, **more}

    for made, wanted in (
            (record(2.0), "met"), (record(2.1), "NOT MET"), (record(math.nan), "NOT MET"),
            (record(None), "not run"), (record(True), "not run"), (record("0"), "not run"),
            (None, "not run"), (record(0, lines={}), "not run"), (record(0, scale="tiny"),
                                                                  "rehearsed, within"),
            (record(0, backend="cpu"), "rehearsed, within"),
            (record(0, own=False), "rehearsed, within"),
            (record(0, device={"name": ""}), "rehearsed, within"),
            (record(9, device={}), "rehearsed, outside")):
        expect(lines.verdict(line, made) == wanted, f"{made}: {lines.verdict(line, made)}")
    expect(lines.verdict(least, record(1.9)) == "NOT MET", "a bound from below")


def check_differences():
    one = "a.first_moment: 2 of 4 elements, by at most 2e-09 (element 1), where the largest is "
    found = numbers.differences(one + "1e-3\n3 tensors in both, 1 difference\n")
    expect(numbers.worst_gradient(found) == (2e-9 / 1e-3, "a.first_moment"), str(found))
    expect(numbers.differences("3 tensors in both, all equal\n") == {}, "equal checkpoints")
    refuses("no output", "")
    refuses("no tensors", "0 tensors in both, all equal\n")
    refuses("a tensor of one side", "b: only in the first\n3 tensors in both, 1 difference\n")


def check_suites():
    """Whatever a suite for GPUs skips where there is one cannot be met."""
    for path in sorted((ROOT / "tests" / "cudnn").glob("*_test.cpp")):
        expect("GTEST_SKIP" not in path.read_text(), f"{path} skips a case")


class Rehearsal:
    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        for name, text in STAND_INS.items():
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        self.run("--prepare", folder / "prepared")

    def run(self, *words):
        done = subprocess.run(
            [sys.executable, ROOT / "bench" / "gpu_acceptance.py", "--binaries", self.binaries,
             "--scale", "tiny", *words], capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}"})
        expect(done.returncode == 0, f"{words} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def parts(self, results, *words):
        """Verdict by part and line, as the report has them."""
        self.run("--prepared", self.folder / "prepared", "--results", results, "--steps", "2",
                 "--pairs", "1", "--torch-python", self.folder / "bin" / "python", *words)
        said = self.run("--report", "--results", results)
        rows = re.findall(r"^\| (\S+) \| (.+?) \| [<>]= .*? \| .*? \| (.*?) \|", said, re.M)
        declared = sum(map(len, gpu_acceptance.PARTS.values()))
        expect(len(rows) == declared, f"{len(rows)} rows of {declared}:\n{said}")
        expect(not re.search(r"\| (met|NOT MET) \|", said), f"a rehearsal met something:\n{said}")
        return {(part, line): verdict for part, line, verdict in rows}


def check_cpu(rehearsal):
    results = rehearsal.folder / "results"
    results.mkdir()
    wanted = [part for part in gpu_acceptance.PARTS if part not in ("calibrate", "predict")]
    rehearsal.parts(results, "--backend", "cpu", *(word for part in wanted
                                                   for word in ("--part", part)))
    # In place of the half minute that calibrating takes.
    speed = json.loads((results / "speed-gpt2.json").read_text())
    machine = json.loads((ROOT / "examples" / "machines" / "cpu.json").read_text())
    (results / "calibrate.json").write_text(json.dumps(
        {**speed, "part": "calibrate", "lines": {}, "facts": {"machine": machine}}))
    found = rehearsal.parts(results, "--part", "predict")
    for (part, line), verdict in found.items():
        within = {"parity": True, "ranks": True, "bitwise": True, "emitted": False}.get(part)
        if within is not None:
            expect(verdict == f"rehearsed, {'within' if within else 'outside'}",
                   f"{part}, {line}: {verdict}")
    for part, line, verdict in (
            ("sanitizer", "memcheck, mtrun: errors", "rehearsed, outside"),
            ("sanitizer", "racecheck, mtrun: errors", "rehearsed, within"),
            ("sanitizer", "initcheck, mtrun: errors", "not run"),
            ("sanitizer", "memcheck, cuda_tests: errors", "not run"),
            ("speed-gpt2", "tokens/s beside PyTorch eager", "rehearsed, within"),
            ("calibrate", "machine files that were not written", "not run"),
            ("predict", "llama: predicted memory off by", "rehearsed, outside")):
        got = found[(part, line)]
        expect(got == verdict, f"{part}, {line}: {got}, not {verdict}")


def check_nothing_runs(rehearsal):
    """Where mtrun fails nothing is within a bound, and all parts are made."""
    results = rehearsal.folder / "nothing"
    parts = "parity", "ranks", "bitwise", "emitted", "speed-llama", "calibrate", "predict"
    found = rehearsal.parts(results, "--mtrun", "/bin/false",
                            *(word for part in parts for word in ("--part", part)))
    expect(set(found.values()) == {"not run"}, str(found))
    expect(all((results / f"{part}.json").exists() for part in parts), "a part left nothing")


def check_emulated(rehearsal, mtrun):
    found = rehearsal.parts(rehearsal.folder / "results", "--mtrun", mtrun, "--part", "parity",
                            "--part", "ranks", "--part", "bitwise", "--seconds", "1500")
    for (part, line), verdict in found.items():
        if part in ("parity", "ranks", "bitwise"):
            expect(verdict == "rehearsed, within", f"{part}, {line}: {verdict}")


def main():
    check_verdicts()
    check_differences()
    check_suites()
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Rehearsal(pathlib.Path(sys.argv[1]), pathlib.Path(folder))
        if len(sys.argv) > 2:
            check_emulated(rehearsal, sys.argv[2])
        else:
            check_cpu(rehearsal)
            check_nothing_runs(rehearsal)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
