#!/usr/bin/env python3
"""Rehearses bench/gpu_acceptance.py without a GPU.

    acceptance_test.py <folder of programs> [<mtrun with an emulated GPU>]

Runs every part with tiny models on CPU ranks and with stand-ins for third-party
programs; or, with an emulated GPU, the parts that compare numbers. No line may
be reported as met, and a line that did not run must not be reported as within
its bound.
"""

import json
import math
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))

# pylint: disable=wrong-import-position
import gpu_acceptance
from acceptance import lines, numbers
from acceptance.lines import Record
from acceptance.machine import DeviceMemory, Failure, Machine, NoTime, last_object
from acceptance.speed import Speed

STAND_INS = {
    "python": """#!/bin/sh
case $1 in -c) exit 1 ;; esac
echo '{"torch": "0", "tokens_per_second": 10.0, "peak_bytes": 1048576}'
echo 'a warning at exit' >&2
""",
    "nvidia-smi": """#!/bin/sh
case $1 in
*name*) echo 'A GPU, 1.0, 700 W' ;;
*) { echo 100; echo 150; exec sleep 600; } | tr x x ;; # which holds back what it says
esac
""",
    "compute-sanitizer": """#!/bin/sh
tool=$2; shift 4
case $1 in --report-api-errors) shift 2 ;; esac
case $1 in --kernel-name) echo "checks $2"; shift 2 ;; esac
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
    # A suite of four cases: one fails, one is killed, and one can wait.
    "suite": """#!/bin/sh
for word; do case $word in
--gtest_output=json:*) to=${word#*json:} ;;
--gtest_filter=*) name=${word#*=} ;;
esac; done
case $1 in
--gtest_list_tests)
  cases='{"name": "Good"}, {"name": "Bad"}, {"name": "Gone"}, {"name": "Late"}'
  echo '{"testsuites": [{"name": "A/B", "testsuite": ['"$cases"']}]}' >"$to"
  exit ;;
esac
echo "[ RUN      ] $name"
case $name in
A/B.Gone) echo 'the device is lost'; kill -9 $$ ;;
A/B.Late) [ -z "$SUITE_WAITS" ] || { echo 'waits'; sleep 600; } ;;
A/B.Bad) failures=', "failures": [{"failure": "file:3: 1 | 2"}, {"failure": "file:4"}]' ;;
esac
echo '{"testsuites": [{"testsuite": [{"status": "RUN", "result": "COMPLETED"'"$failures"'}]}]}' \\
  >"$to"
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
    """Checks that no cuDNN case is skipped, and that skipped cases do not pass."""
    paths = sorted((ROOT / "tests" / "runtime" / "cuda" / "cudnn").glob("*_test.cpp"))
    expect(paths, "no cuDNN tests were found")
    for path in paths:
        expect("GTEST_SKIP" not in path.read_text(), f"{path} skips a case")
    for said, wanted in (("[  PASSED  ] 12 tests.\n", True), ("[  PASSED  ] 0 tests.\n", False),
                         ("[  PASSED  ] 1 test.\n[  SKIPPED ] 1 test\n", False), ("", False)):
        expect(bool(numbers.passed(said)) == wanted, f"passed: {said}")


class Place:
    """Holds a folder with the Machine and the Record of one part."""

    def __init__(self, folder, seconds=60.0):
        self.folder = folder
        flags = types.SimpleNamespace(
            binaries=folder, prepared=folder, results=folder, backend="cpu", scale="tiny",
            mtrun=None, seconds=seconds)
        self.machine = Machine(flags, time.monotonic())
        self.record = Record("part", flags, {}, time.monotonic())

    def suite(self, name):
        (self.folder / name).write_text(STAND_INS["suite"])
        (self.folder / name).chmod(0o755)

    def written(self):
        return json.loads((self.folder / "part.json").read_text())


def holds_soon(condition):
    end = time.monotonic() + 60
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def gone(pid):
    """Returns whether a process has ended; a zombie counts as ended."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def check_commands(folder):
    """Checks that a command that times out keeps its output and leaves no process."""
    place = Place(folder)
    command = place.machine.start("sh", "-c", 'sleep 600 & echo "child $!"; wait')
    expect(holds_soon(command.said), "a command said nothing")
    command.until = time.monotonic()
    try:
        command.end()
        expect(False, "a command had no end")
    except NoTime as late:
        child = re.search(r"child (\d+)$", str(late))
        expect(child, f"what it said is not in: {late}")
        expect(child and holds_soon(lambda: gone(child.group(1))),
               "what a late command started lives on")
    marker, place.machine.until = folder / "begun", time.monotonic()
    with place.record.attempt("too late"):
        place.machine.run("touch", marker)
    expect(not marker.exists(), "a command was started when no time was left")
    failures = place.written()["failures"]
    expect(failures and failures[0].startswith("too late: not run for want of time: touch was "
                                               "not started"), str(failures))
    place.machine.close()

    place = Place(folder)
    said = place.machine.run("sh", "-c", "echo one; echo two >&2; exit 3", status=3)
    expect(said == "one\ntwo\n", repr(said))
    try:
        place.machine.run("sh", "-c", "echo why; exit 3")
        expect(False, "status 3 is no failure")
    except Failure as failure:
        expect("why" in str(failure) and "status 3" in str(failure), str(failure))
    sleeper = place.machine.start("sleep", 60)
    try:
        place.machine.together(place.machine.start("false").end, sleeper.end)
        expect(False, "a failure of two is none")
    except Failure:
        expect(sleeper.process.poll() is not None, "beside what failed it went on")
    sleeper = place.machine.start("sleep", 60)
    place.machine.close()
    expect(sleeper.process.poll() is not None, "what a part started outlives it")
    expect(last_object('{"a": 1}\n{"a": 2}\nwarning: at exit\n') == {"a": 2}, "the last object")


def check_record(folder):
    """Checks that a record exists while a part runs and names where it was ended."""
    place = Place(folder)
    with place.record.attempt("first"):
        place.record.measure("x", 1.0)
    try:
        with place.record.attempt("second"):
            place.record.measure("y", 2.0)
            expect(place.written()["lines"].keys() == {"x"} and
                   place.written()["unfinished"] == ["second"], str(place.written()))
            raise SystemExit(1)
    except SystemExit:
        pass
    words = place.written()
    expect(words["lines"].keys() == {"x", "y"} and words["unfinished"] == ["second"], str(words))
    said = lines.report("today", {"part": []}, folder)
    expect("It was cut off in: second." in said, said)
    expect(not list(folder.glob("*.new")), "half a record was left")


def check_conformance(folder):
    """Checks that a killed case keeps its output, and that the others still run."""
    place = Place(folder)
    place.suite("cuda_tests")
    start, shares, own = place.machine.start, [], []
    place.machine.start = lambda *words, share=1.0, env=None, **more: (
        shares.append(share), own.append((env or {}).get("MTPLAN_CUDNN") == "0"),
        start(*words, share=share, env=env, **more))[-1]
    numbers.Numbers(place.machine, place.record).conformance()
    expect(shares == 2 * ([1.0] + 4 * [0.5]), f"a case that hangs leaves no time: {shares}")
    expect(own == 6 * [False] + 4 * [True], f"the second four run without cuDNN: {own}")
    listed = (folder / "cuda_tests-without-cuDNN.txt").read_text()
    expect(listed.count("[ RUN      ] ") == 4, listed)
    words = place.written()
    expect(words["lines"] == {f"cuda_tests{how}: cases failed or left out":
                              {"measured": 2, "note": "of 4"} for how in ("", " without cuDNN")},
           str(words["lines"]))
    rows = words["tables"][0]["rows"]
    expect([row[:2] for row in rows] == [["A/B.Bad", "2 failures"],
                                         ["A/B.Gone", "status -9, no report"]], str(rows))
    expect("file:3" in rows[0][2] and "the device is lost" in rows[1][2], str(rows))
    expect(any("cudnn_tests is not there" in failure for failure in words["failures"]),
           str(words["failures"]))
    expect((folder / "cuda_tests.txt").read_text().count("[ RUN      ] ") == 4,
           (folder / "cuda_tests.txt").read_text())
    place.machine.close()

    os.environ["SUITE_WAITS"] = "1"
    place = Place(folder, seconds=3.0)
    numbers.Numbers(place.machine, place.record).conformance()
    del os.environ["SUITE_WAITS"]
    words = place.written()
    expect(not words["lines"] and "A/B.Late" in str(words["tables"]) and
           re.search(r"want of time: \d of 4 cases", str(words["failures"])), str(words))
    place.machine.close()


def check_like(folder):
    """Checks that the preset for calibration is that of the GPU's exact name."""
    place = Place(folder)
    speed = Speed(place.machine, place.record)
    for name, wanted in (("NVIDIA H200", "H200-SXM-141GB"), ("NVIDIA GH200 480GB", None),
                         ("NVIDIA H100 PCIe", None)):
        place.record.words["device"] = {"name": name}
        place.machine.flags.like = None
        try:
            expect(speed.like() == wanted, f"{name}: {speed.like()}")
        except Failure as failure:
            expect(wanted is None and name in str(failure), str(failure))
        place.machine.flags.like = "another"
        expect(speed.like() == "another", name)
    place.machine.close()


def check_classes(folder):
    """Checks that time outside kernels is unknown, not 0, if kernels alone take much
    longer than the step."""
    line = "time outside kernels"
    longer = "instructions took 1020 ms in a step without overlap, and a step 1000 ms"
    for products, rest, wanted in ((0.8, 0.2, {"measured": 20.0, "note": ""}),
                                   (1.02, None, {"measured": 0.0, "note": longer}),
                                   (1.3, None, None)):
        place = Place(folder)
        (folder / "speed-x").mkdir(exist_ok=True)
        (folder / "speed-x" / "roofline.json").write_text('{"classes": []}')
        classes = {"products": products, "step": 1.0}
        if rest is not None:
            classes["rest"] = rest
        run = types.SimpleNamespace(median=lambda *_: 1.0, classes=classes.copy, device_bytes=None)
        Speed(place.machine, place.record).own("x", "speed-x", [run])
        place.record.write()
        words = place.written()
        expect(words["lines"].get(line) == wanted, str(words["lines"]))
        expect(len(words["tables"]) == 1 and bool(words["failures"]) == (wanted is None),
               str(words))
        place.machine.close()


def check_memory(folder):
    """Checks that the buffered output of a running nvidia-smi is read."""
    path = folder / "nvidia-smi"
    path.write_text(STAND_INS["nvidia-smi"])
    path.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}:{before}"
    try:
        with DeviceMemory() as memory:
            expect(holds_soon(lambda: memory.bytes), "nothing was read while it ran")
        expect(memory.bytes == 50 * 2**20, f"{memory.bytes} bytes came into use")
    finally:
        os.environ["PATH"] = before


def check_package(folder):
    """Checks that packaging warns about a missing GPU suite."""
    (folder / "scripts").mkdir()
    (folder / "build" / "package").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "package.sh", folder / "scripts")
    for path, text in (("scripts/build.sh", ""), ("cpack", """
cd build; mkdir -p m/bin; touch m/bin/cuda_tests; tar cJf m-tests.tar.xz m
echo 'CPack: - package: build/m-tests.tar.xz generated.'
""")):
        (folder / path).write_text("#!/bin/sh\n" + text)
        (folder / path).chmod(0o755)
    done = subprocess.run([folder / "scripts" / "package.sh"], capture_output=True, text=True,
                          check=False,
                          env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
    expect(done.returncode == 0 and "m-tests.tar.xz" in done.stdout, f"{done}")
    expect("no cudnn_tests" in done.stderr and "no cuda_tests" not in done.stderr, done.stderr)


def check_prepare(folder):
    """Checks that full-size preparation needs the GPU suites."""
    def prepared(*words):
        return subprocess.run(
            [sys.executable, ROOT / "bench" / "gpu_acceptance.py", "--binaries", folder,
             "--prepare", folder / "plans", *words], capture_output=True, text=True, check=False)
    (folder / "cuda_tests").touch()
    done = prepared()
    expect(done.returncode == 2 and "no cudnn_tests" in done.stderr
           and "no cuda_tests" not in done.stderr and not (folder / "plans").exists(), f"{done}")
    done = prepared("--without-suites")
    expect("cudnn_tests" not in done.stderr and (folder / "plans").exists(), f"{done}")


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
        """Runs parts and returns the report's verdicts by part and line."""
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
    # Calibrating takes half a minute, so this test writes its result.
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
            ("sanitizer", "memcheck, cuda_tests: errors", "not run"),  # cases are skipped
            ("conformance", "cuda_tests: cases failed or left out", "rehearsed, outside"),
            ("speed-gpt2", "tokens/s beside PyTorch eager", "rehearsed, within"),
            ("calibrate", "machine files that were not written", "not run"),
            ("predict", "llama: predicted memory off by", "rehearsed, outside")):
        got = found[(part, line)]
        expect(got == verdict, f"{part}, {line}: {got}, not {verdict}")


    for tool, ours in ("memcheck", False), ("racecheck", True), ("initcheck", False):
        said = (results / f"{tool}-mtrun.txt").read_text()
        expect(("checks kns=mtplan" in said) == ours, f"{tool} checks other kernels: {said[:80]}")


def check_ended(rehearsal):
    """Checks that SIGTERM leaves a part's record and none of its processes."""
    results, pids = rehearsal.folder / "ended", rehearsal.folder / "pids"
    slow = rehearsal.folder / "slow"
    slow.write_text(f"#!/bin/sh\nsleep 600 & echo $! >>'{pids}'\nwait\n")
    slow.chmod(0o755)
    with subprocess.Popen(
            [sys.executable, ROOT / "bench" / "gpu_acceptance.py", "--binaries",
             rehearsal.binaries, "--scale", "tiny", "--prepared", rehearsal.folder / "prepared",
             "--results", results, "--mtrun", slow, "--part", "bitwise", "--torch-python",
             rehearsal.folder / "bin" / "python"], stdout=subprocess.DEVNULL) as part:
        expect(holds_soon(lambda: pids.exists() and pids.read_text()), "nothing was started")
        part.send_signal(signal.SIGTERM)
    expect(holds_soon(lambda: all(map(gone, pids.read_text().split()))),
           f"{pids.read_text()} live on")
    words = json.loads((results / "bitwise.json").read_text())
    expect(words["unfinished"] == ["bitwise", "one rank, bf16"], str(words))


def check_nothing_runs(rehearsal):
    """Checks that if mtrun fails, every part is recorded and no line has run."""
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
    for check in (check_commands, check_record, check_conformance, check_like, check_classes, check_memory,
                  check_package, check_prepare):
        with tempfile.TemporaryDirectory() as folder:
            check(pathlib.Path(folder))
    with tempfile.TemporaryDirectory() as folder:
        rehearsal = Rehearsal(pathlib.Path(sys.argv[1]), pathlib.Path(folder))
        if len(sys.argv) > 2:
            check_emulated(rehearsal, sys.argv[2])
        else:
            check_cpu(rehearsal)
            check_nothing_runs(rehearsal)
            check_ended(rehearsal)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
