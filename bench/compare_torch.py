#!/usr/bin/env python3
"""Compares the step times of mtrun and PyTorch eager, in alternating pairs.

    bench/compare_torch.py build/release/bin --torch-python python3 > table.md

For each case both programs train a few steps, one after the other, --pairs
times. The median step time without the first step gives the tokens/s of a run,
and the table has medians over runs. A run in which other programs took more
than the share --quiet of all cores is repeated, up to --attempts runs in all.
The least disturbed run counts, and the last line states the largest share that
other programs had in a run that counts. The script also compares mtrun on two
ranks, each with half of --threads, with mtrun on one rank with all threads.
"""

import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def busy_seconds():
    """Returns the busy seconds of all cores and programs, with stolen time."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    ticks = [int(field) for field in fields]
    # The fields are user nice system idle iowait irq softirq steal.
    return (sum(ticks[:8]) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def alone(path, patience):
    """Locks the file, if given; after `patience` seconds, continues unlocked."""
    if not path:
        yield
        return
    with open(path, "a", encoding="utf-8") as file:
        end = time.monotonic() + patience
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > end:
                    break
                time.sleep(0.02)
        yield


class Runner:
    def __init__(self, flags):
        self.flags = flags
        self.disturbed = 0.0
        self.again = 0

    def run(self, command, variables=None):
        """Returns output and peak bytes of a quiet run, else of the quietest."""
        best = None
        for attempt in range(self.flags.attempts):
            with alone(self.flags.lock, self.flags.patience):
                share, text, peak = self.run_once(command, variables)
            if best is None or share < best[0]:
                best = (share, text, peak)
            if share <= self.flags.quiet or attempt + 1 == self.flags.attempts:
                break
            self.again += 1
            time.sleep(1 + attempt)
        self.disturbed = max(self.disturbed, best[0])
        return best[1:]

    @staticmethod
    def run_once(command, variables):
        start, busy = time.monotonic(), busy_seconds()
        with tempfile.TemporaryFile("w+") as out:
            with subprocess.Popen(command, stdout=out, stderr=subprocess.DEVNULL,
                                  env=dict(os.environ, **(variables or {}))) as process:
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            text = out.read()
        if process.returncode:
            sys.exit(f"{' '.join(map(str, command))} ended with "
                     f"{process.returncode}:\n{text}")
        wall = time.monotonic() - start
        others = busy_seconds() - busy - usage.ru_utime - usage.ru_stime
        return max(0.0, others) / wall / os.cpu_count(), text, usage.ru_maxrss * 1024


def compile_plan(flags, config, precision, layout, folder):
    subprocess.run(
        [flags.binaries / "mtplan", config, "--hardware", "cpu", "--seq",
         str(flags.sequence), "--global-batch", str(flags.batch), "--precision", precision,
         *layout, "-o", folder],
        check=True, stdout=subprocess.DEVNULL)
    return folder


def run_mtrun(flags, runner, folder, threads):
    with tempfile.NamedTemporaryFile(suffix=".jsonl") as metrics:
        text, peak = runner.run(
            [flags.binaries / "mtrun", folder, "--data", "synthetic", "--steps",
             str(flags.steps + 1), "--threads", str(threads), "--metrics", metrics.name])
        steps = [json.loads(line) for line in open(metrics.name, encoding="utf-8")][1:]
    return {
        "rate": statistics.median(step["tokens_per_second"] for step in steps),
        "flops": statistics.median(step["flops_per_rank"] for step in steps),
        "peak": peak,
        "outside": float(re.search(r"the rest ([0-9.]+) %", text).group(1)),
    }


def run_torch(flags, runner, config, precision, way):
    text, peak = runner.run(
        [flags.torch_python, ROOT / "bench" / "torch_step.py", config, "--precision",
         precision, "--bf16", way, "--batch", str(flags.batch), "--sequence",
         str(flags.sequence), "--steps", str(flags.steps), "--threads", str(flags.threads)])
    found = json.loads(text.splitlines()[-1])
    flags.torch_version = found["torch"]
    return {"rate": found["tokens_per_second"], "peak": peak}


def median(runs, name):
    return statistics.median(run[name] for run in runs)


def without_dropout(config, folder):
    """Returns a file of the model without dropout; None if all rates are 0."""
    words = json.loads(pathlib.Path(config).read_text())
    rates = {name: 0.0 for name in words if name.endswith(("pdrop", "dropout")) and words[name]}
    if not rates:
        return None
    words.update(rates)
    path = pathlib.Path(folder) / (pathlib.Path(config).stem + "-no-dropout.json")
    path.write_text(json.dumps(words))
    return path


def peaks(flags, runner):
    """Returns oneDNN's best rate for a product of two matrices, by precision."""
    found = {}
    for precision, name in ("fp32", "f32"), ("bf16", "bf16"):
        text, _ = runner.run(
            [flags.binaries / "mtplan_kernel_bench", f"--benchmark_filter=^bare/{name}_",
             "--benchmark_format=json", "--benchmark_min_time=0.1",
             "--benchmark_repetitions=5"], {"OMP_NUM_THREADS": str(flags.threads)})
        found[precision] = max(run["FLOP/s"] for run in json.loads(text)["benchmarks"]
                               if run["run_type"] == "iteration")
    return found


def processor():
    names = re.findall(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


def compare(flags, runner, folder):
    peak = peaks(flags, runner)
    print(f"{processor()}; {flags.threads} threads, batch {flags.batch}, sequence "
          f"{flags.sequence}, {flags.pairs} pairs of {flags.steps} steps\n")
    print("| model | precision | mtrun tokens/s | PyTorch | ratio | mtrun peak | PyTorch "
          "| GFLOP/s | of oneDNN's best | outside kernels |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    plans = []
    for model in flags.models:
        config = ROOT / "examples" / f"{model}.json"
        cases = [(model, config)]
        if flags.also_without_dropout and without_dropout(config, folder):
            cases.append((model + ", no dropout", without_dropout(config, folder)))
        for name, file in cases:
            for precision in flags.precisions:
                plan = compile_plan(flags, file, precision,
                                    ["--gpus", "1", "--micro-batch", str(flags.batch)],
                                    f"{folder}/{name}-{precision}")
                if file == config:
                    plans.append((name, file, precision, plan))
                ways = ["autocast"] if precision == "fp32" else flags.bf16
                ours, theirs = [], {way: [] for way in ways}
                for _ in range(flags.pairs):
                    ours.append(run_mtrun(flags, runner, plan, flags.threads))
                    for way in ways:
                        theirs[way].append(run_torch(flags, runner, file, precision, way))
                for way in ways:
                    rate, other = median(ours, "rate"), median(theirs[way], "rate")
                    label = precision if precision == "fp32" else f"bf16, {way}"
                    print(f"| {name} | {label} | {rate:.0f} | {other:.0f} | {rate / other:.2f} "
                          f"| {median(ours, 'peak') / 2**30:.2f} GiB "
                          f"| {median(theirs[way], 'peak') / 2**30:.2f} GiB "
                          f"| {median(ours, 'flops') / 1e9:.0f} "
                          f"| {100 * median(ours, 'flops') / peak[precision]:.0f} % of "
                          f"{peak[precision] / 1e9:.0f} | {median(ours, 'outside'):.1f} % |",
                          flush=True)
    print("\n| model | precision | ranks | one rank, tokens/s | tokens/s | lost |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for name, file, precision, plan in plans:
        for layout in flags.layouts:
            ranks = compile_plan(flags, file, precision, ["--gpus", "2", *layout.split()],
                                 f"{folder}/{name}-{precision}-{layout.replace(' ', '')}")
            one, two = [], []
            for _ in range(flags.pairs):
                one.append(run_mtrun(flags, runner, plan, flags.threads))
                two.append(run_mtrun(flags, runner, ranks, max(1, flags.threads // 2)))
            alone, both = median(one, "rate"), median(two, "rate")
            print(f"| {name} | {precision} | {layout.replace('--', '')} | {alone:.0f} "
                  f"| {both:.0f} | {100 * (1 - both / alone):.1f} % |", flush=True)
    torch = getattr(flags, "torch_version", "none")
    print(f"\nPyTorch {torch}; Python {platform.python_version()}; {runner.again} runs "
          f"repeated because other programs were busy; in the runs that count, other programs "
          f"used at most {100 * runner.disturbed:.1f} % of the cores.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("binaries", type=pathlib.Path)
    parser.add_argument("--torch-python", default=sys.executable)
    parser.add_argument("--models", nargs="+", default=["gpt2-124m", "llama-30m"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"])
    parser.add_argument("--bf16", nargs="+", default=["autocast"],
                        help="PyTorch variants: autocast, plain, master")
    parser.add_argument("--also-without-dropout", action="store_true")
    parser.add_argument("--layouts", nargs="*", default=["--tp 2", "--dp 2", "--dp 2 --zero 1"])
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quiet", type=float, default=0.03)
    parser.add_argument("--attempts", type=int, default=6)
    parser.add_argument("--lock", help="a lock file shared by all benchmarks of this machine")
    parser.add_argument("--patience", type=float, default=60.0, help="seconds to wait for the lock")
    flags = parser.parse_args()
    flags.binaries = flags.binaries.resolve()
    with tempfile.TemporaryDirectory() as folder:
        compare(flags, Runner(flags), folder)


if __name__ == "__main__":
    main()
