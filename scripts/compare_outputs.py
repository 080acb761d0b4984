#!/usr/bin/env python3
"""Compares the outputs of two builds of mtplan and mtrun.

    scripts/compare_outputs.py BEFORE AFTER [--show N] [--only WORD]

BEFORE and AFTER are the folders of the two builds' binaries. The script runs
the same commands with both builds, and compares what the commands print, their
exit status and every file that they write.

A refactoring must leave outputs equal to the byte. Each command gets one
verdict:

  equal   both builds give the same bytes
  words   the texts differ, but every number in them is the same, in order
  FIGURES a number or the exit status differs, or one build lacks a file

Prints one line for each command that is not equal, with the first N differing
lines (default 6), and the totals. Exits with 1 if any verdict is FIGURES.
"""

import argparse
import concurrent.futures
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
TINY = ["bert", "gpt2", "gpt_neox", "gpt_neox-sequential", "gptj", "llama",
        "mistral", "mixtral", "qwen2", "qwen2_moe", "t5", "t5_v1_1", "vit"]
OPEN = "--pp any --zero any --recompute any --schedule any"

# Times of the runtime differ from run to run; these members of a record do not.
COMPUTED = ["step", "loss", "gradient_norm", "learning_rate", "loss_scale",
            "skipped", "tokens"]


def screens():
    """Yields commands that plan all examples, two of them with many flags."""
    models = [path.stem for path in sorted((ROOT / "examples").glob("*.json"))]
    for model in models:
        where = f"mtplan examples/{model}.json"
        gpus = "--gpus 64 --hardware dgx-a100-80g"
        if model.startswith("tiny"):
            gpus = "--gpus 4 --hardware cpu --global-batch 16"
        elif model == "llama-3-405b":
            gpus = "--gpus 1024"
        yield f"{where} {gpus}"
        yield f"{where} {gpus} --json"
    for flags in ["--pp any", "--zero any", "--recompute any", "--cp any",
                  f"{OPEN} --micro-batch 1", "--offload any",
                  "--objective memory", "--objective gpus --max-step-time 90",
                  "--scale-network 0.5", "--memory-gib 60", "--explain",
                  "--overlap on", "--precision fp8", "--top 12", "--seq 2048",
                  "--layers 8", "--sequence-parallel on", "--tp 8 --json",
                  "--splits column,row,head,vocab", "--verify"]:
        yield f"mtplan examples/llama-3-8b.json --gpus 8 {flags}"
        yield (f"mtplan examples/gpt2-8.3b.json --gpus 16 --hardware dgx-2h "
               f"{flags}")
    for software in ["megatron-2022", "nemo-24", "torchtitan-compile", "alpa"]:
        yield f"mtplan examples/gpt2-8.3b.json --gpus 16 --software {software}"
    for hardware in ["dgx-1", "p4d", "p5", "hgx-h200", "gb200-nvl72",
                     "p6-b200", "generic"]:
        yield f"mtplan examples/gpt2-2.5b.json --hardware {hardware}"


def stages():
    """Yields commands that print the textual IR after each stage."""
    for name in TINY:
        for stage in ["model", "differentiated", "planned", "partitioned"]:
            yield (f"mtplan examples/tiny-{name}.json --gpus 4 --hardware cpu "
                   f"--global-batch 16 --tp 2 --emit mlir --stage {stage}")


def exports():
    """Yields commands that write plans in other formats or read other files."""
    forms = ["megatron", "deepspeed", "torchtitan", "accelerate", "hf-tp-plan",
             "jax", "shardy", "dtensor", "mesh-tensorflow", "constraints"]
    for form in forms:
        yield (f"mtplan examples/llama-3-8b.json --gpus 16 --tp 4 "
               f"--splits column,row,head,vocab --export {form}")
        yield (f"mtplan examples/gpt2-8.3b.json --gpus 16 --tp 4 --dp 2 --pp 2 "
               f"--micro-batch 4 --zero 1 --splits column,row,head,vocab "
               f"--export {form}")
    yield ("mtplan examples/gpt3-175b.json --gpus 128 --hardware dgx-a100-80g "
           "--import examples/exchange/gpt3-175b.args")
    for flag in ["--trace t.json", "--report p.html", "--dot g.dot",
                 "--save s.json"]:
        yield (f"mtplan examples/gpt2-8.3b.json --gpus 8 --hardware dgx-2h "
               f"{flag}")
        yield (f"mtplan examples/llama-3-8b.json --gpus 16 --pp 2 --zero 1 "
               f"{flag}")
    yield "mtplan examples/native/mlp.json --gpus 4"
    yield "mtplan examples/native/partial-fc.json --gpus 8 --micro-batch 512"
    yield "mtplan fit-hardware examples/measurements/a100-published.json -o m.json"


LAYOUTS = ["--gpus 1", "--gpus 2 --tp 2", "--gpus 2 --dp 2",
           "--gpus 4 --dp 2 --tp 2"]


def trained(name, layout, steps=3, more=""):
    """Returns a command that compiles a plan and trains it for some steps."""
    data = "synthetic" if name in ("vit", "bert", "t5", "t5_v1_1", "mixtral",
                                   "qwen2_moe") else "examples/data/opticks.txt"
    return (f"mtplan examples/tiny-{name}.json {layout} --hardware cpu "
            f"--global-batch 8 --micro-batch 2 {more} -o run && "
            f"mtrun run --data {data} --steps {steps} --metrics m.jsonl "
            f"--checkpoint kept")


def runs():
    """Yields commands that compile and train every family on CPU ranks."""
    for name in TINY:
        for layout in LAYOUTS:
            yield trained(name, layout)
    for more in ["--zero 1", "--zero 2", "--zero 3", "--recompute full",
                 "--overlap on", "--overlap on --zero 1",
                 "--offload optimizer"]:
        yield trained("gpt2", "--gpus 4 --dp 4", 3, more)
        yield trained("llama", "--gpus 4 --dp 2 --tp 2", 3, more)
    for more in ["--schedule 1f1b", "--schedule gpipe",
                 "--schedule zero-bubble", "--schedule interleaved --vp 2"]:
        yield trained("gpt2", "--gpus 2 --pp 2 --layers 4", 3, more)
    yield trained("llama", "--gpus 4 --cp 2 --dp 2")
    yield trained("mixtral", "--gpus 4 --dp 4 --ep 2")


def emitted():
    """Yields commands that emit standalone CUDA programs."""
    for name, flags in [
            ("gpt2", "--gpus 2 --dp 2"), ("gpt2", "--gpus 2 --dp 2 --overlap on"),
            ("llama", "--gpus 2 --tp 2 --sequence-parallel on"),
            ("gpt2", "--gpus 2 --pp 2"), ("llama", "--gpus 2 --dp 2 --zero 1"),
            ("llama", "--gpus 2 --dp 2 --zero 3"),
            ("mixtral", "--gpus 2 --dp 2 --ep 2")]:
        yield (f"mtplan examples/tiny-{name}.json {flags} --global-batch 16 "
               f"--micro-batch 4 --emit cuda -o prog")


def refusals():
    """Yields commands with bad input, which print errors."""
    model = "mtplan examples/llama-3-8b.json"
    for flags in ["--tp 3", "--gpus 0", "--gpus x", "--hardware dgx-h10",
                  "--pp 5", "--micro-batch 7", "--seq 0", "--schedule 1f2b",
                  "--zero 4", "--splits colum", "--pin nothing=row",
                  "--pin wte.weight=[xx,-]", "--memory-gib 1", "--tpp 2",
                  "--export nobody", "--load missing.json", "--emit cuda",
                  "--software none-such", "--precision fp7",
                  "--ep 2", "--recompute some", "--import missing.args"]:
        yield f"{model} {flags}"
    yield "mtplan missing.json"
    yield "mtplan examples/llama-3-70b.json"
    yield "mtrun missing"
    yield "mtrun --stepss 3"


COMMANDS = [*screens(), *stages(), *exports(), *runs(), *emitted(),
            *refusals()]


def output_of(command, binaries):
    """Returns {name: lines} of a command's status, output and files."""
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(ROOT / "examples", f"{folder}/examples")
        path = f"{pathlib.Path(binaries).resolve()}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, check=False,
            capture_output=True, env={**os.environ, "PATH": path,
                                      "OMP_NUM_THREADS": "1"})
        training = "mtrun run" in command
        out = {"status": [str(done.returncode)],
               "stderr": lines_of(done.stderr),
               "stdout": without_times(lines_of(done.stdout), training)}
        for file in sorted(pathlib.Path(folder).rglob("*")):
            name = str(file.relative_to(folder))
            if file.is_file() and not name.startswith("examples"):
                out[name] = contents(file)
        return out


def lines_of(data):
    return data.decode("utf-8", "replace").splitlines()


def without_times(lines, training):
    """Drops the times that mtrun measures: from the first step on, keeps only
    the losses of steps, and the lines about checkpoints without their times."""
    if not training:
        return lines
    kept = []
    for line in lines:
        if found := re.match(r"step +\d+/\d+ +loss \S+", line):
            kept.append(found.group())
        elif line.startswith("checkpoint of step"):
            kept.append(re.sub(r"in [0-9.]+ .*$", "", line))
    first = next((i for i, line in enumerate(lines)
                  if line.startswith("step")), len(lines))
    return lines[:first] + kept


def contents(file):
    """Returns the lines of a text file, the members COMPUTED of each line of a
    .jsonl file, or the bytes of another file as one line."""
    data = file.read_bytes()
    if file.suffix == ".jsonl":
        return [str([json.loads(line).get(name) for name in COMPUTED])
                for line in lines_of(data)]
    try:
        return data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        return [data.hex()]


def numbers_of(lines):
    return re.findall(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+)?", "\n".join(lines))


def verdict(before, after):
    """Returns ('equal' | 'words' | 'FIGURES', differing lines)."""
    worst, shown = "equal", []
    for name in sorted(set(before) | set(after)):
        old, new = before.get(name), after.get(name)
        if old == new:
            continue
        if old is None or new is None:
            worst = "FIGURES"
            shown.append(f"{name}: only {'after' if old is None else 'before'}")
            continue
        same = name != "status" and numbers_of(old) == numbers_of(new)
        worst = "words" if same and worst != "FIGURES" else "FIGURES"
        shown += [f"{name}: {line[:160]}" for line in difflib.unified_diff(
            old, new, n=0, lineterm="") if line[:3] not in ("---", "+++")]
    return worst, shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--show", type=int, default=6)
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    commands = [c for c in dict.fromkeys(COMMANDS) if arguments.only in c]
    counts = {"equal": 0, "words": 0, "FIGURES": 0}

    def both(command):
        return verdict(output_of(command, arguments.before),
                       output_of(command, arguments.after))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for command, (kind, shown) in zip(commands, pool.map(both, commands)):
            counts[kind] += 1
            if kind != "equal":
                print(f"{kind}: {command}")
                for line in shown[:arguments.show]:
                    print(f"    {line}")
                sys.stdout.flush()
    print(f"{len(commands)} commands: {counts['equal']} equal, "
          f"{counts['words']} with other words, "
          f"{counts['FIGURES']} with other figures")
    return 1 if counts["FIGURES"] else 0


if __name__ == "__main__":
    sys.exit(main())
