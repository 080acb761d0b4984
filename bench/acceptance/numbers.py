"""Holds the parts that check the numerical results of a GPU."""

import json
import os
import pathlib
import re

from .cases import FAMILIES, LAYOUTS, SUITES
from .lines import Line, load, shortened
from .machine import TAIL, Failure, NoTime

STEPS = 10
GRADIENTS, BF16_LOSS, ROUNDING, ROUNDING_16 = 1e-5, 0.02, 1e-5, 1e-3
# AdamW makes a step of this size even if a gradient is only rounding error, and
# later gradients then differ. At a learning rate of 1e-4, another order of
# summation (tp 2 of llama-30m on CPU ranks) changes gradients by 2.1e-5; at a
# rate of 1e-5, by 2.5e-6 (BERT by 9.1e-6). Ten steps at 1e-6 change weights by up
# to 1e-5, a thousandth of their size, so that a missing or wrong step still
# exceeds the bound.
RATE = 1e-6
# Trainings in 16 bits warm up, as is usual. Without warm-up, the loss of
# llama-30m on CPU ranks after ten steps differs by 0.025 between bf16 and fp32.
WARMUP = STEPS
LEAST = 1e-3  # smallest divisor of a difference, as a fraction of the largest moment
# This filter limits a tool to mtplan's own kernels: racecheck and synccheck
# everywhere, memcheck in the suite. In a training, initcheck must see every
# write, and memcheck also checks the arguments of library kernels.
OURS = ("--kernel-name", "kns=mtplan")
# Libraries ask CUDA for functions that a driver may lack, and memcheck would
# count these calls as errors. mtrun checks the result of each of its own calls.
NO_CALLS = ("--report-api-errors", "no")
# Without cuDNN, attention in 16 bits runs mtplan's own kernels.
OWN_ATTENTION = {"MTPLAN_CUDNN": "0"}
# Under racecheck the 16-bit products of cuBLASLt for Hopper fail to launch, so
# racecheck runs on a training in fp32, and on the suite's attention in 16 bits.
TOOLS = {"memcheck": (NO_CALLS, "sanitized"), "synccheck": (OURS, "sanitized"),
         "initcheck": ((), "sanitized"), "racecheck": (OURS, "sanitized-fp32")}
AT_ONCE = 8  # cases of a suite that share the GPU
# The cases for memcheck run every kernel.
SUITES_SANITIZED = {"memcheck": ((*NO_CALLS, *OURS), "*Conformance.AgreesWithTheReference/*"),
                    "racecheck": (OURS, "*Conformance.AttentionOfModelsAgrees/*")}
ATTENTION = "cuda_tests without cuDNN"
EMITTED = ("gpt2-fp32", "gpt2-bf16", "llama-fp32", "llama-bf16")

CONFORMANCE = [Line(f"{suite}: cases failed or left out", 0)
               for suite in (*SUITES, ATTENTION)]
PARITY = [line for family in FAMILIES for line in (
    Line(f"{family} fp32: gradients of step 1", GRADIENTS),
    Line(f"{family} fp32: mean gradients of {STEPS} steps", GRADIENTS),
    Line(f"{family} bf16: loss after {STEPS} steps", BF16_LOSS))]
RANKS = [line for layout in LAYOUTS if layout != "one" for line in (
    Line(f"{layout}: losses of {STEPS} steps, relative", ROUNDING),
    Line(f"{layout}: gradients of step 1", GRADIENTS))]
BITWISE = [Line(f"{what}: tensors that differ", 0) for what in ("one rank, bf16", "tp 4, fp32")]
EMITTED_LINES = [Line(f"{name}: losses of {STEPS} steps, relative",
                      ROUNDING if "fp32" in name else ROUNDING_16) for name in EMITTED]
SANITIZER = [Line(f"{what}: errors", 0) for what in
             (*(f"{tool}, mtrun" for tool in TOOLS),
              *(f"{tool}, cuda_tests" for tool in SUITES_SANITIZED))]


def differences(text):
    """Returns {tensor: (largest difference, largest element)}.

    `text` is the output of `mtrun ckpt diff`.
    """
    counted = re.search(r"^(\d+) tensors in both, (?:(\d+) differences?|all equal)$", text, re.M)
    if not counted or int(counted.group(1)) == 0:
        raise Failure(f"the output does not compare two checkpoints: {text[-500:]}")
    found = {name: (float(by), float(largest)) for name, by, largest in re.findall(
        r"^(\S+): \d+ of \d+ elements, by at most (\S+) \(element \d+\), where the largest is "
        r"(\S+)$", text, re.M)}
    if len(found) != int(counted.group(2) or 0):
        raise Failure(f"{counted.group(2)} differences, of which {len(found)} were parsed: "
                      f"{text[:500]}")
    return found


def worst_gradient(found):
    """Returns the worst relative difference of first moments, and its tensor.

    After one step, first moments are a tenth of the gradients.
    """
    moments = {name: pair for name, pair in found.items() if name.endswith(".first_moment")}
    floor = LEAST * max((largest for _, largest in moments.values()), default=0.0)
    return max(((by / max(largest, floor), name) for name, (by, largest) in moments.items()),
               default=(0.0, "all equal"))


def outcome(words, status, said):
    """Returns the result of one case of GoogleTest, and its first message."""
    if words is None:
        return f"status {status}, no report", shortened(said[-TAIL:])
    tests = [test for suite in words["testsuites"] for test in suite["testsuite"]
             if test["status"] == "RUN"]
    if len(tests) != 1:
        return f"{len(tests)} cases were run", shortened(said[-TAIL:])
    failures = tests[0].get("failures", [])
    if failures:
        return (f"{len(failures)} failure{'s' if len(failures) > 1 else ''}",
                shortened(failures[0]["failure"]))
    if status:
        return f"status {status}", shortened(said[-TAIL:])
    return tests[0]["result"], ""


def passed(said):
    """Returns whether a suite ran at least one case, skipped none and passed."""
    return re.search(r"^\[  PASSED  \] [1-9]", said, re.M) and "[  SKIPPED ]" not in said


def relative(losses, expected):
    return max(abs(a - b) / abs(b) for a, b in zip(losses, expected, strict=True))


def developing(folder):
    """Returns CMake options and an environment to build with NVIDIA's wheels.

    The names of the wheels' libraries end in a version, so `folder` gets links
    without the version. The headers are in a folder beside that of the libraries.
    """
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    headers = []
    for place in map(pathlib.Path, filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))):
        for path in sorted(place.glob("lib*.so.*")):
            link = folder / "lib" / f"{path.name.partition('.so.')[0]}.so"
            if not link.is_symlink():
                link.symlink_to(path)
        if (place.parent / "include").is_dir():
            headers.append(str(place.parent / "include"))
    options = [f"-DCMAKE_LIBRARY_PATH={folder / 'lib'}",
               f"-DCMAKE_INCLUDE_PATH={';'.join(headers)}"]
    return options, {**os.environ, "CPATH": ":".join(headers)} if headers else dict(os.environ)


class Numbers:
    """Has a method for each part. Each method fills the record."""

    def __init__(self, machine, record):
        self.machine, self.record = machine, record

    def kept(self, name):
        return self.machine.folder / name

    def gradients(self, case, steps, keep, **more):
        """Starts a run whose checkpoint reveals its gradients."""
        return self.machine.training(case, steps, "--clip", 0, "--lr", RATE, "--checkpoint",
                                     self.kept(keep), **more)

    def train(self, case, steps, keep):
        return self.gradients(case, steps, keep)()

    def compare(self, one, other):
        return differences(self.machine.run(self.machine.mtrun(), "ckpt", "diff", self.kept(one),
                                            self.kept(other), status=None))

    def conformance(self):
        for suite in SUITES:
            with self.record.attempt(suite):
                self.suite(suite, suite)
        with self.record.attempt(ATTENTION):
            self.suite(ATTENTION, "cuda_tests", "*Attention*", {**os.environ, **OWN_ATTENTION})

    def suite(self, suite, program, cases="*", env=None):
        """Runs each case in its own process, so a crash ends only one case."""
        program, kept = self.machine.program(program), self.kept(f"{suite}.json")
        output = self.machine.flags.results / f"{suite.replace(' ', '-')}.txt"
        output.unlink(missing_ok=True)
        self.machine.run(program, "--gtest_list_tests", f"--gtest_filter={cases}",
                         f"--gtest_output=json:{kept}")
        names = [f"{one['name']}.{test['name']}" for one in load(kept)["testsuites"]
                 for test in one["testsuite"]]
        unlike, late = [], []

        def note(name, error):
            late.append(name)
            unlike.append([name, "not run to its end", shortened(error)])

        for first in range(0, len(names), AT_ONCE):
            started = []
            for name in names[first:first + AT_ONCE]:
                report = self.kept(f"{suite}-{len(self.machine.started)}.json")
                try:
                    started.append((name, report, self.machine.start(
                        program, f"--gtest_filter={name}", f"--gtest_output=json:{report}",
                        share=0.5, env=env)))
                except NoTime as error:
                    note(name, error)
            for name, report, command in started:
                try:
                    said = command.end(status=None)
                except NoTime as error:
                    note(name, error)
                    continue
                finally:
                    with open(output, "a", encoding="utf-8") as file:
                        file.write(command.said())
                result, why = outcome(load(report), command.process.returncode, said)
                if result != "COMPLETED":
                    unlike.append([name, result, why])
        self.record.table(f"{suite}: cases that did not pass (full output: {output.name}):",
                          ["case", "result", "first message"], unlike)
        if late:
            raise NoTime(f"{len(late)} of {len(names)} cases were not run to their end")
        if len(unlike) == len(names):
            raise Failure(f"none of {len(names)} cases passed; {' '.join(unlike[0])}")
        self.record.measure(f"{suite}: cases failed or left out", len(unlike), f"of {len(names)}")

    def parity(self):
        for family in FAMILIES:
            for steps, what in (1, "gradients of step 1"), (STEPS, f"mean gradients of {STEPS} "
                                                                   "steps"):
                with self.record.attempt(f"{family} fp32, {steps} steps"):
                    case, kept = f"parity-{family}-fp32", f"{family}-{steps}"
                    self.machine.together(
                        self.gradients(case, steps, f"{kept}-ours"),
                        self.gradients(case, steps, f"{kept}-cpu", backend="cpu"))
                    worst, where = worst_gradient(self.compare(f"{kept}-ours", f"{kept}-cpu"))
                    self.record.measure(f"{family} fp32: {what}", worst, where)
            with self.record.attempt(f"{family} bf16"):
                case = f"parity-{family}-bf16"
                ours, theirs = (run.losses for run in self.machine.together(
                    self.machine.training(case, STEPS, warmup=WARMUP),
                    self.machine.training(case, STEPS, warmup=WARMUP, backend="cpu")))
                self.record.measure(f"{family} bf16: loss after {STEPS} steps",
                                    abs(ours[-1] - theirs[-1]),
                                    f"{ours[-1]:.5f} against {theirs[-1]:.5f}")

    def ranks(self):
        one = None
        with self.record.attempt("one rank"):
            one = self.machine.train("ranks-one", STEPS).losses
            self.train("ranks-one", 1, "one")
        for layout in LAYOUTS:
            if layout == "one" or one is None:
                continue
            with self.record.attempt(layout):
                several = self.machine.train(f"ranks-{layout}", STEPS).losses
                self.record.measure(f"{layout}: losses of {STEPS} steps, relative",
                                    relative(several, one))
                self.train(f"ranks-{layout}", 1, layout)
                worst, where = worst_gradient(self.compare(layout, "one"))
                self.record.measure(f"{layout}: gradients of step 1", worst, where)

    def bitwise(self):
        for case, what in (("parity-gpt2-bf16", "one rank, bf16"), ("ranks-tp4", "tp 4, fp32")):
            with self.record.attempt(what):
                first, second = (self.train(case, STEPS, f"{case}-{run}") for run in "ab")
                found = self.compare(f"{case}-a", f"{case}-b")
                unlike = sum(a != b for a, b in zip(first.losses, second.losses, strict=True))
                self.record.measure(f"{what}: tensors that differ", len(found) + unlike,
                                    f"losses that differ among them: {unlike}")

    def emitted(self):
        """Compares emitted programs with mtrun.

        All programs are compiled at once, because each takes most of a minute.
        """
        builds, prepared = {}, self.machine.prepared
        options, variables = developing(self.kept("developing"))
        for name in EMITTED:
            with self.record.attempt(f"{name}, to be compiled"):
                builds[name] = self.machine.start(
                    "sh", "-ec", 'cmake "$@"; cmake --build "$0"', self.kept(f"{name}-build"),
                    "-S", prepared / f"parity-{name}", "-B", self.kept(f"{name}-build"),
                    "-DCMAKE_CUDA_ARCHITECTURES=native", *options, *self.machine.flags.cmake,
                    env=variables)
        for name, compiled in builds.items():
            with self.record.attempt(name):
                case, steps = f"parity-{name}", self.kept(f"{name}-steps")
                compiled.end()
                self.machine.run(self.machine.mtrun(), "data", "steps", prepared / "data.txt",
                                 prepared / case, steps, "--steps", STEPS)
                said = self.machine.run(self.kept(f"{name}-build") / "train", "--steps", STEPS,
                                        "--data", steps, "--every", 1, "--warmup", 0,
                                        "--lr-decay", "constant")
                losses = [float(loss) for loss in re.findall(r"^step \d+ .*?loss (\S+)", said,
                                                             re.M)]
                # The programs contain mtplan's own attention, and not that of cuDNN.
                expected = self.machine.train(
                    case, STEPS, env={**os.environ, **OWN_ATTENTION}).losses
                if len(losses) != STEPS:
                    raise Failure(f"{len(losses)} losses of {STEPS}: {said[-500:]}")
                self.record.measure(f"{name}: losses of {STEPS} steps, relative",
                                    relative(losses, expected))

    def sanitizer(self):
        steps = 3  # step 2 is captured as a graph, step 3 launches the graph

        def trained_to_the_end(said):
            return re.search(rf"^step {steps}/{steps} ", said, re.M)

        runs = []
        for tool, (only, case) in TOOLS.items():
            runs.append((f"{tool}, mtrun", tool, only, trained_to_the_end, [
                self.machine.mtrun(), self.machine.prepared / case, "--data",
                self.machine.prepared / "data.txt", "--steps", steps, "--backend",
                self.machine.backend, "--patience", 3600]))
        for tool, (only, cases) in SUITES_SANITIZED.items():
            runs.append((f"{tool}, cuda_tests", tool, only, passed, [
                self.machine.binaries / "cuda_tests", f"--gtest_filter={cases}"]))
        # All tools run at once, so that a slow tool does not use up the others' time.
        started = {}
        for what, tool, only, whole, command in runs:
            env = {**os.environ, **OWN_ATTENTION} if "cuda_tests" in what else None
            with self.record.attempt(f"{what}, to be started"):
                output = self.machine.flags.results / f"{what.replace(', ', '-')}.txt"
                output.unlink(missing_ok=True)
                started[what] = whole, output, self.machine.start(
                    "compute-sanitizer", "--tool", tool, "--error-exitcode", "99", *only,
                    *command, to=output, env=env)
        for what, (whole, output, process) in started.items():
            with self.record.attempt(what):
                said = process.end(status=None)
                found = re.findall(r"^=+ (?:ERROR|RACECHECK) SUMMARY: (\d+)", said, re.M)
                if not found or not whole(said):
                    raise Failure(f"it did not run to its end: {said[-TAIL:]}")
                self.record.measure(f"{what}: errors", sum(map(int, found)))
                if any(map(int, found)):
                    self.record.table(f"{what} ({output.name} has all):", ["first lines"],
                                      [[line] for line in said.splitlines()
                                       if line.startswith("=====")][:20])


PARTS = {"conformance": CONFORMANCE, "parity": PARITY, "ranks": RANKS, "bitwise": BITWISE,
         "emitted": EMITTED_LINES, "sanitizer": SANITIZER}
