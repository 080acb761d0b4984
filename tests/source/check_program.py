#!/usr/bin/env python3
"""check_program.py builds FOLDER [ARCH...]  |  check_program.py trains FOLDER [DATA]

builds: nvcc compiles FOLDER/train.cu for the architectures and links it, with
warnings as errors. trains: the program, compiled for the host and run on the
emulator of tests/emulator, has the losses that mtrun has for the same plan, data
and seed. Where things are CMake says in MTPLAN_PROGRAMS (tests/CMakeLists.txt).
"""
import json
import os
import re
import subprocess
import sys

STEPS = 2
TOLERANCE = 1e-5  # of fp32: sums in another order


def run(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def listed(name):
    with open(os.environ["MTPLAN_PROGRAMS"], encoding="utf-8") as file:
        return json.load(file)[name].split()


def builds(folder, archs):
    flags = ["-std=c++20", "--expt-relaxed-constexpr", "-Werror", "all-warnings",
             "-Xcompiler=-Wall,-Wextra"]
    for arch in archs:
        number = arch.removeprefix("sm_")
        flags.append(f"-gencode=arch=compute_{number},code={arch}")
    made = f"{folder}/train.o"
    run([*listed("ccache"), *listed("nvcc"), *flags, "-c",
         f"{folder}/train.cu", "-o", made])
    run([*listed("nvcc"), made, "-o", f"{folder}/train", "-lcublasLt", "-lnccl"])


def trains(folder, data="synthetic"):
    made, program = f"{folder}/host.o", f"{folder}/host"
    run([*listed("ccache"), *listed("host"), "-c", f"{folder}/train.cu", "-o",
         made])
    run([*listed("link"), made, "-o", program, *listed("libraries")])
    with open(f"{folder}/plan.json", encoding="utf-8") as file:
        ranks = json.load(file)["ranks"]
    stored = data
    if data != "synthetic":
        stored = f"{folder}/steps"
        run(["mtrun", "data", "steps", data, folder, stored, "--steps",
             str(STEPS)])
    said = run([program, "--steps", str(STEPS), "--data", stored], env={**os.environ, "MTPLAN_DEVICES": str(ranks)})
    metrics = f"{folder}/metrics.jsonl"
    if os.path.exists(metrics):
        os.remove(metrics)
    run(["mtrun", folder, "--steps", str(STEPS), "--data", data, "--patience",
         "300", "--metrics", metrics])
    with open(metrics, encoding="utf-8") as file:
        expected = [json.loads(line) for line in file]
    own = re.findall(r"^step (\d+) .*?loss (\S+)  norm (\S+)", said, re.M)
    if len(own) != STEPS:
        sys.exit(f"{len(own)} of {STEPS} steps:\n{said}")
    for (step, loss, norm), record in zip(own, expected):
        for name, mine, theirs in [("loss", loss, record["loss"]),
                                   ("norm", norm, record["gradient_norm"])]:
            if abs(float(mine) - theirs) > TOLERANCE * abs(theirs):
                sys.exit(f"step {step}: {name} {mine}, mtrun has {theirs}")
    print(f"{STEPS} steps as mtrun has them")


if __name__ == "__main__":
    if sys.argv[1] == "builds":
        builds(sys.argv[2], sys.argv[3:] or ["sm_90"])
    else:
        trains(*sys.argv[2:])
