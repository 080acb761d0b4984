#!/usr/bin/env python3
"""Checks emitted programs.

    check_program.py builds FOLDER [ARCH...]
    check_program.py trains FOLDER [DATA [TOLERANCE [STEPS [FLAG...]]]]

`builds` checks that FOLDER/train.cu has at most 1,200 lines, one wait for each
wait of the plan, no comment with a line break inside a shape and no literal for
a size that FOLDER/dimensions.h names. nvcc must compile and link it with
warnings as errors: for H100, or with MTPLAN_TEST_ALL for each ARCH.

`trains` compiles the program for the host and runs it on the emulator
(tests/emulator), with streams in three orders. The program's losses and norms
must equal those of mtrun for the same plan, data, seed and flags, and both must
skip the same steps.

MTPLAN_PROGRAMS names a file with the compiler commands (tests/CMakeLists.txt).
"""
import json
import os
import re
import subprocess
import sys

STEPS = 3  # Adam's first update hides a wrong gradient scale
MOST_LINES = 1200  # of train.cu
TOLERANCE = 1e-5  # relative; fp32 sums differ by their order
PACES = ["first", "last", "asked"]  # enum StreamOrder in tests/emulator/streams.h


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def listed(name):
    with open(os.environ["MTPLAN_PROGRAMS"], encoding="utf-8") as file:
        return json.load(file)[name].split()


def plan_of(folder):
    with open(f"{folder}/plan.json", encoding="utf-8") as file:
        return json.load(file)


def builds(folder, archs):
    planned = sum(len(one.get("waits", [])) for stage in plan_of(folder)["stages"]
                  for program in stage["programs"] for one in program["instructions"])
    with open(f"{folder}/train.cu", encoding="utf-8") as file:
        step = file.read()
    with open(f"{folder}/memory.cuh", encoding="utf-8") as file:
        written = Program(step, file.read()).waits()
    if written != planned:
        sys.exit(f"{written} waits, the plan has {planned}")
    reads(folder, step)
    if not os.environ.get("MTPLAN_TEST_ALL"):
        archs = ["sm_90"]
    flags = ["-std=c++20", "--expt-relaxed-constexpr", "-Werror", "all-warnings",
             "-Xcompiler=-Wall,-Wextra"]
    for arch in archs:
        number = arch.removeprefix("sm_")
        flags.append(f"-gencode=arch=compute_{number},code={arch}")
    made = f"{folder}/train.o"
    run([*listed("ccache"), *listed("nvcc"), *flags, "-c",
         f"{folder}/train.cu", "-o", made])
    run([*listed("nvcc"), made, "-o", f"{folder}/train", "-lcublasLt", "-lnccl"])


class Program:
    """Holds the functions and tables of an emitted program, to count waits."""

    def __init__(self, step, memory):
        self.functions, self.structs, self.rows = {}, {}, {}
        for space, text in self.spaces(step):
            for name, body in re.findall(r"^void (\w+)\(.*?\) {\n(.*?)^}", text,
                                         re.S | re.M):
                self.functions[space, name] = body
        for space, text in self.spaces(memory):
            for table, rows in re.findall(
                    r"^ *} (\w+)\[\] = {\n(.*?)\n *};", text, re.S | re.M):
                self.rows[space, table] = len(re.findall(r"^ *{", rows, re.M))
            for struct, body in re.findall(r"^struct (\w+) .*?{\n(.*?)^};", text,
                                           re.S | re.M):
                self.structs[space, struct] = dict(
                    re.findall(r"&(\w+) = buf::(\w+);", body) +
                    re.findall(r"using (\w+) = \w+::(\w+);", body))
        self.steps = re.findall(r"stage\d+::open, .*?}", step, re.S)

    @staticmethod
    def spaces(text):
        """Yields each namespace and its text; stages share the namespace ""."""
        yield "", re.sub(r"^namespace stage\d+ {$.*?^} // namespace stage\d+$", "",
                         text, flags=re.S | re.M)
        yield from re.findall(r"^namespace (stage\d+) {$(.*?)^} // namespace", text,
                              re.S | re.M)

    def waits(self):
        """Counts the waits of all programs of the plan. A function counts once
        for each stage or part that uses it, a loop once for each table row."""
        found = {}
        for stage, row in enumerate(self.steps):
            for name in re.findall(r"\b(?:forwardAndBackward|update)\w*(?:<[\w:]+>)?", row):
                name, _, struct = name.rstrip(">").partition("<")
                self.visit(f"stage{stage}", name, struct.split("::")[-1] or "buf", 1,
                           found)
        return sum(found.values())

    def visit(self, stage, name, struct, rows, found):
        space = stage if (stage, name) in self.functions else ""
        if (stage, space, name, struct) in found:
            return
        body = self.functions[space, name]
        own = self.structs.get((stage, struct), {})

        def rowsOf(table):
            return self.rows[stage, own.get(table, table)]
        count = len(re.findall(r"now\.wait\(", body))
        for _, table, loop in re.findall(
                r"^( *)for \(const auto &row : buf::(\w+)\) {\n(.*?)^\1}", body,
                re.S | re.M):
            count += len(re.findall(r"now\.wait\(", loop)) * (rowsOf(table) - 1)
        found[stage, space, name, struct] = count * rows
        calls = re.findall(r"(?:row\d*(?: : | = )buf::(\w+)(?:\)|\[i\];)\n"
                           r"(?: *for .*\n)? *)?"
                           r"\b(\w+)(?:<(?:typename )?(?:buf::)?(\w+)>)?\(\{?rank,",
                           body)
        calls += [("", *one) for one in re.findall(
            r"\b(\w+)(?:<(?:typename )?(?:buf::)?(\w+)>)?(?=[,}])",
            "".join(re.findall(r"parts\[\].*?};", body, re.S)))]
        for table, callee, argument in calls:
            if (stage, callee) in self.functions or ("", callee) in self.functions:
                other = struct if argument in ("", "buf") else argument
                self.visit(stage, callee, own.get(other, other),
                           rowsOf(table) if table else 1, found)


def reads(folder, step):
    """Checks that the step is short and uses the names of sizes."""
    lines = step.splitlines()
    if len(lines) > MOST_LINES:
        sys.exit(f"train.cu has {len(lines)} lines, of {MOST_LINES}")
    for line in lines:
        if line.lstrip().startswith("//") and line.count("[") != line.count("]"):
            sys.exit(f"a comment breaks within a shape: {line}")
    with open(f"{folder}/dimensions.h", encoding="utf-8") as file:
        sizes = dict(re.findall(r"int64_t (\w+) = (\d+);", file.read()))
    # Numbers below 64 are skipped: they also occur as other counts.
    digits = {value for name, value in sizes.items() if int(value) >= 64}
    for line in lines:
        code = line.split("//")[0]
        for number in re.findall(r"(?<![\w.\"])\d+(?![\w.\"])", code):
            if number in digits and "rank.lines" not in code:
                sys.exit(f"{number} has a name: {line}")


def trains(folder, data="synthetic", tolerance=TOLERANCE, steps=STEPS, *flags):
    made, program = f"{folder}/host.o", f"{folder}/host"
    run([*listed("ccache"), *listed("host"), "-c", f"{folder}/train.cu", "-o",
         made])
    run([*listed("link"), made, "-o", program, *listed("libraries")])
    ranks = plan_of(folder)["ranks"]
    stored = data
    if data != "synthetic":
        stored = f"{folder}/steps"
        run(["mtrun", "data", "steps", data, folder, stored, "--steps",
             str(steps)])
    metrics = f"{folder}/metrics.jsonl"
    if os.path.exists(metrics):
        os.remove(metrics)
    run(["mtrun", folder, "--steps", str(steps), "--data", data, "--patience",
         "300", "--metrics", metrics, *flags])
    with open(metrics, encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    for pace in PACES:
        said = run([program, "--steps", str(steps), "--data", stored],
                   env={**os.environ, "MTPLAN_DEVICES": str(ranks),
                        "MTPLAN_PACE": pace})
        compare(said, expected, float(tolerance), pace)
    print(f"{steps} steps as mtrun has them")


def compare(said, expected, tolerance, pace):
    own = re.findall(r"^step (\d+) .*?loss (\S+)  norm (\S+)(?:.*?  (skipped)$)?", said, re.M)
    if len(own) != len(expected):
        sys.exit(f"{len(own)} of {len(expected)} steps:\n{said}")
    for (step, loss, norm, skipped), record in zip(own, expected):
        if bool(skipped) != record["skipped"]:
            sys.exit(f"step {step}: is {skipped or 'not skipped'}, unlike mtrun's")
        if skipped:  # A skipped step has no norm.
            norm = record["gradient_norm"] = 0
        for name, mine, theirs in [("loss", loss, record["loss"]),
                                   ("norm", norm, record["gradient_norm"])]:
            # The comparison is negated so that NaN fails.
            if not abs(float(mine) - theirs) <= tolerance * abs(theirs):
                sys.exit(f"step {step}: {name} {mine}, mtrun has {theirs} "
                         f"(streams: {pace})")


if __name__ == "__main__":
    if sys.argv[1] == "builds":
        builds(sys.argv[2], sys.argv[3:] or ["sm_90"])
    else:
        trains(*sys.argv[2:])
