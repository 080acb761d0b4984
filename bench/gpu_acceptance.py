#!/usr/bin/env python3
"""Checks on one GPU that mtplan is correct and fast, part by part.

    bench/gpu_acceptance.py --prepare DIR --binaries build/package/bin
    bench/gpu_acceptance.py --part conformance --part parity --prepared DIR --results OUT
    bench/gpu_acceptance.py --report --results OUT > bench/results/2026-12-01-gpu.md

The first command compiles the plans and needs mtplan. The second runs where the
GPU is and needs the packages of `make package`; each part takes --seconds at
most. A part leaves OUT/<part>.json even if something in it fails or the part is
cut off, and the report has a verdict on every line of every part
(docs/gpu-acceptance.md).
"""

import argparse
import datetime
import os
import pathlib
import signal
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))

# pylint: disable=wrong-import-position
from acceptance import cases, lines, numbers, speed
from acceptance.lines import Record
from acceptance.machine import Failure, Machine, device_facts

PARTS = {**numbers.PARTS, **{f"speed-{name}": held for name, held in speed.LINES.items()},
         "calibrate": speed.CALIBRATE, "predict": speed.PREDICT}


def run_part(part, flags, device, start):
    print(f"{part}:", flush=True)
    machine, record = Machine(flags, start), Record(part, flags, device, start)
    try:
        with record.attempt(part):
            if part in numbers.PARTS:
                getattr(numbers.Numbers(machine, record), part)()
            elif part.startswith("speed-"):
                speed.Speed(machine, record).model(part.removeprefix("speed-"))
            else:
                getattr(speed.Speed(machine, record), part)()
    finally:
        machine.close()
    for line in PARTS[part]:
        print(f"  {lines.verdict(line, record.words)}: {line.name}", flush=True)


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prepare", type=pathlib.Path, metavar="DIR",
                        help="compile what the parts train into DIR")
    parser.add_argument("--without-suites", action="store_true",
                        help="--prepare also without the test suites for GPUs")
    parser.add_argument("--part", action="append", default=[], choices=[*PARTS, "all"])
    parser.add_argument("--report", action="store_true", help="print all parts as Markdown")
    parser.add_argument("--prepared", type=pathlib.Path, help="the folder that --prepare wrote")
    parser.add_argument("--results", type=pathlib.Path, help="folder for the parts' results")
    parser.add_argument("--binaries", type=pathlib.Path, default=ROOT / "bin")
    parser.add_argument("--mtrun", type=pathlib.Path, help="default: mtrun of --binaries")
    parser.add_argument("--backend", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--scale", choices=["full", "tiny"], default="full",
                        help="tiny: models of a rehearsal")
    parser.add_argument("--seconds", type=float, default=500, help="time limit of each part")
    parser.add_argument("--pairs", type=int, default=2, help="pairs of runs in each speed part")
    parser.add_argument("--steps", type=int, default=12, help="measured steps of each run")
    parser.add_argument("--torch-python", default="python3")
    parser.add_argument("--torch-ways", nargs="+", metavar="WAY",
                        default=["eager master", "eager autocast", "compiled master"],
                        help="eager or compiled, and torch_step.py's --bf16, as one word each")
    parser.add_argument("--like", metavar="DEVICE",
                        help="mtrun calibrate's device (default: by the GPU's name)")
    parser.add_argument("--cmake", nargs="*", default=[], help="options for emitted programs")
    flags = parser.parse_args()
    flags.binaries = flags.binaries.resolve()
    flags.bench = ROOT / "bench"
    if flags.prepare and flags.scale == "full" and not flags.without_suites:
        try:
            cases.check_suites(flags.binaries)
        except Failure as missing:
            parser.error(str(missing))
    if (flags.part or flags.report) and not flags.results:
        parser.error("--results is needed")
    if flags.part and not flags.prepared:
        parser.error("--prepared is needed")
    if flags.part and (flags.prepared / "scale.txt").read_text() != flags.scale:
        parser.error(f"{flags.prepared} was not prepared for --scale {flags.scale}")
    return flags


def main():
    start = time.monotonic()
    # sys.exit raises an exception, so run_part() ends the processes it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    flags = parsed()
    if flags.prepare:
        cases.prepare(flags.binaries, ROOT, flags.prepare, flags.scale)
    if flags.part:
        flags.prepared = flags.prepared.resolve()
        flags.results.mkdir(parents=True, exist_ok=True)
        os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # all ranks share one GPU
        device = device_facts(flags.torch_python)
        for part in PARTS if "all" in flags.part else flags.part:
            run_part(part, flags, device, start)
            start = time.monotonic()  # only the first part's time includes device_facts
    if flags.report:
        date = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
        print(lines.report(date, PARTS, flags.results), end="")


if __name__ == "__main__":
    main()
