#!/usr/bin/env python3
"""How long checkpoints keep training, and how fast they are written.

  python3 bench/checkpoint_speed.py [BIN [FOLDER]]

Compiles GPT-2 124M (1.4 GiB of state in fp32) for 1, 2 and 4 ranks, trains it
on synthetic data with a save every two steps, and prints for each save how long
training waited and how long the save took; beside them `dd conv=fsync` of as
many random bytes to the same disk, in turns with the runs. Then kills a run
after a save and takes the time from the kill to the first new step.
FOLDER (default: a temporary one) says which disk.
"""

import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = sys.argv[1] if len(sys.argv) > 1 else f"{ROOT}/build/release/bin"
SAVED = re.compile(
    r"checkpoint of step (\d+): ([\d.]+) GiB in ([\d.]+) s, training waited ([\d.]+) s")
LAYOUTS = {1: [], 2: ["--tp", "2"], 4: ["--dp", "2", "--tp", "2", "--zero", "1"]}


def compiled(folder, ranks):
    with open(f"{ROOT}/examples/gpt2-124m.json") as file:
        model = json.load(file)
    model["n_positions"] = 64  # the state is what counts
    path = f"{folder}/gpt2-124m.json"
    with open(path, "w") as file:
        json.dump(model, file)
    subprocess.run(
        [f"{BIN}/mtplan", path, "--hardware", "cpu", "--gpus", str(ranks),
         "--global-batch", "2", "--micro-batch", "1", "--precision", "fp32",
         "-o", f"{folder}/plan{ranks}"] + LAYOUTS[ranks],
        check=True, stdout=subprocess.DEVNULL)


def command(folder, ranks, steps):
    return [f"{BIN}/mtrun", f"{folder}/plan{ranks}", "--data", "synthetic",
            "--steps", str(steps), "--warmup", "2", "--every", "1",
            "--checkpoint", f"{folder}/kept", "--save-every", "2"]


def dd(folder, size):
    source, target = f"{folder}/random", f"{folder}/copy"
    if not os.path.exists(source):
        with open(source, "wb") as file:
            for _ in range(size >> 20):
                file.write(os.urandom(1 << 20))
    start = time.monotonic()
    subprocess.run(["dd", f"if={source}", f"of={target}", "bs=1M", "conv=fsync"],
                   check=True, stderr=subprocess.DEVNULL)
    took = time.monotonic() - start
    os.remove(target)
    return size / took / 1e6


def saves(folder, ranks):
    subprocess.run(["rm", "-rf", f"{folder}/kept"], check=True)
    out = subprocess.run(command(folder, ranks, 9), check=True,
                         capture_output=True, text=True).stdout
    return [(float(g), float(s), float(w)) for _, g, s, w in SAVED.findall(out)]


def restart(folder, ranks):
    """Seconds from a kill to the end of the first step of the next run."""
    subprocess.run(["rm", "-rf", f"{folder}/kept"], check=True)
    run = subprocess.Popen(command(folder, ranks, 1000), stdout=subprocess.PIPE,
                           text=True)
    for line in run.stdout:
        if line.startswith("checkpoint of step 2"):
            break
    run.send_signal(signal.SIGKILL)
    start = time.monotonic()
    run.wait()
    run = subprocess.Popen(command(folder, ranks, 1000), stdout=subprocess.PIPE,
                           text=True)
    for line in run.stdout:
        if line.startswith("step"):
            break
    took = time.monotonic() - start
    run.kill()
    run.wait()
    return took


def main():
    with tempfile.TemporaryDirectory(
            dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        for ranks in LAYOUTS:
            compiled(folder, ranks)
            rates, waits, beside, alone = [], [], [], []
            for _ in range(3):
                rates.append(dd(folder, 1424 << 20))
                found = saves(folder, ranks)
                beside += [s for _, s, _ in found[:-1]]
                waits += [w for _, _, w in found[:-1]]
                alone.append(found[-1][1])
            gib = found[-1][0]
            median = statistics.median
            write = gib * 2**30 / median(alone) / 1e6
            print(f"{ranks} ranks: waited {median(waits):.3f} s (worst "
                  f"{max(waits):.3f}) of a save of {median(alone):.2f} s with "
                  f"nothing beside it ({median(waits) / median(alone):.1%}); "
                  f"{median(beside):.2f} s beside training; {write:.0f} MB/s, dd "
                  f"{median(rates):.0f} MB/s ({write / median(rates):.0%}); "
                  f"restart {median([restart(folder, ranks) for _ in range(3)]):.2f} s",
                  flush=True)


if __name__ == "__main__":
    main()
