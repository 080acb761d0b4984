#!/usr/bin/env python3
"""Measures how long checkpoints hold up training, and how fast they are written.

  python3 bench/checkpoint_speed.py [--ranks 1,2,4] [--pairs 5] [--folder FOLDER]

Compiles GPT-2 124M (1.4 GiB of state in fp32) for 1, 2 and 4 ranks and trains
it on synthetic data with a save every two steps. For each run the script
measures how long training waited for the saves that ran beside training, and
how fast the last save, which ran alone, was written. That rate is compared with
the mean rate of `dd conv=fsync` of as many random bytes to the same disk just
before and just after the run. Then the script kills a run after a save and
measures the time from the kill to the end of the first new step.

On virtual machines, memory that a process has just given back is several times
as fast to write as other memory. Therefore each dd starts a few seconds after
the preceding run.
"""

import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BIN = os.environ.get("MTPLAN_BIN", f"{ROOT}/build/release/bin")
SAVED = re.compile(
    r"checkpoint of step (\d+): ([\d.]+) GiB in ([\d.]+) s, training waited ([\d.]+) s")
SETTLES = 4.0  # seconds before each dd
STATE = 1424 << 20
LAYOUTS = {1: [], 2: ["--tp", "2"], 4: ["--dp", "2", "--tp", "2", "--zero", "1"]}


def compiled(folder, ranks):
    if os.path.exists(f"{folder}/plan{ranks}"):
        return
    with open(f"{ROOT}/examples/gpt2-124m.json") as file:
        model = json.load(file)
    model["n_positions"] = 64  # short, because only the size of the state matters
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
    time.sleep(SETTLES)
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


def removed(folder):
    subprocess.run(["rm", "-rf", f"{folder}/kept"], check=True)


def saves(folder, ranks):
    """Returns (GiB, seconds, seconds that training waited) of each save of a run."""
    removed(folder)
    out = subprocess.run(command(folder, ranks, 7), check=True,
                         capture_output=True, text=True).stdout
    return [(float(g), float(s), float(w)) for _, g, s, w in SAVED.findall(out)]


def restart(folder, ranks):
    """Returns seconds from a kill to the end of the next run's first step."""
    removed(folder)
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


def measure(folder, ranks, pairs):
    compiled(folder, ranks)
    ratios, rates, ddRates, waits, beside, alone = [], [], [], [], [], []
    dd(folder, STATE)  # warm-up: the host may not have allocated the memory yet
    before = dd(folder, STATE)
    for _ in range(pairs):
        found = saves(folder, ranks)
        removed(folder)
        after = dd(folder, STATE)
        gib, seconds, _ = found[-1]
        rate, ddRate = gib * 2**30 / seconds / 1e6, (before + after) / 2
        print(f"  save {seconds:.2f} s, {rate:.0f} MB/s; dd {before:.0f} and "
              f"{after:.0f} MB/s; {rate / ddRate:.0%}", flush=True)
        ratios.append(rate / ddRate)
        rates.append(rate)
        ddRates.append(ddRate)
        alone.append(seconds)
        beside += [s for _, s, _ in found[:-1]]
        waits += [w for _, _, w in found[:-1]]
        before = after
    median = statistics.median
    print(f"{ranks} ranks: {median(rates):.0f} MB/s, dd {median(ddRates):.0f} "
          f"MB/s, ratio {median(ratios):.0%} ({min(ratios):.0%} to "
          f"{max(ratios):.0%}); waited {median(waits):.3f} s (worst "
          f"{max(waits):.3f}) of a save of {median(alone):.2f} s with nothing "
          f"beside it ({median(waits) / median(alone):.1%}); "
          f"{median(beside):.2f} s beside training", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", default="1,2,4")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--restarts", type=int, default=3)
    parser.add_argument("--folder", help="a folder on the disk to measure; compiled "
                        "plans stay there (default: a temporary folder)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or temporary
        os.makedirs(folder, exist_ok=True)
        for ranks in map(int, options.ranks.split(",")):
            if options.pairs:
                measure(folder, ranks, options.pairs)
            else:
                compiled(folder, ranks)
            took = [restart(folder, ranks) for _ in range(options.restarts)]
            if took:
                print(f"{ranks} ranks: from the kill to the first new step "
                      f"{statistics.median(took):.2f} s", flush=True)
            removed(folder)


if __name__ == "__main__":
    main()
