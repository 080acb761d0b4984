#!/usr/bin/env python3
"""plan_cost.py [--measure BIN] [--repeat N] [--check]: shows how the cost of
planning grows with the number of GPUs and of layers, with the choices of OPEN.

Draws docs/planning-cost.svg and writes docs/planning-cost.md from
bench/results/plan-cost.csv. --measure first runs BIN/mtplan and rewrites the
CSV file. --check writes neither drawing nor page, and fails if one of them
differs from the one that the CSV file gives.
"""

import argparse
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORD = ROOT / "bench/results/plan-cost.csv"
PAGE = ROOT / "docs/planning-cost.md"
DRAWING = ROOT / "docs/planning-cost.svg"
COMMAND = "scripts/plan_cost.py --measure build/release/bin"

OPEN = ["--pp", "any", "--stage-layers", "even", "--cp", "any", "--vp", "any",
        "--zero", "any", "--zero-ranks", "all",
        "--schedule", "any", "--recompute", "any", "--overlap", "on"]

# Each row has the model, the machine and the samples per step. One sweep varies
# the number of GPUs, from the smallest number that fits the model (LEAST_GPUS)
# on. The other sweep varies the number of layers, on LAYERS_ON GPUs.
MODELS = [("llama-3-8b", "dgx-h100", 2048), ("gpt3-175b", "dgx-a100-80g", 1536),
          ("llama-3-405b", "dgx-h100", 2048)]
LEAST_GPUS = {"llama-3-8b": 8, "gpt3-175b": 64, "llama-3-405b": 256}
LAYERS_ON = {"llama-3-8b": 64, "gpt3-175b": 1024, "llama-3-405b": 4096}
GPUS = [2**i for i in range(3, 15)]
LAYERS = [12, 24, 48, 96, 192, 384]

COLUMNS = ["sweep", "model", "machine", "gpus", "layers", "samples",
           "candidates", "gap_percent", "wall_s", "wall_slowest_s",
           "processor_s", "peak_MB"]


def run_once(arguments):
    """Returns wall and processor seconds, peak KiB and the printed report."""
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        child = subprocess.Popen(arguments, stdout=out)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{' '.join(arguments)}: exit status {child.returncode}")
        out.seek(0)
        report = json.load(out)
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss, report


def measure(binaries, repeat):
    """Writes one row for each point: the fastest of `repeat` runs."""
    points = [("GPUs", *model, gpus, None) for model in MODELS
              for gpus in GPUS if gpus >= LEAST_GPUS[model[0]]]
    points += [("layers", *model, LAYERS_ON[model[0]], layers)
               for model in MODELS for layers in LAYERS]
    rows = []
    for sweep, model, machine, samples, gpus, layers in points:
        arguments = [str(binaries / "mtplan"), f"examples/{model}.json",
                     "--hardware", machine, "--gpus", str(gpus),
                     "--global-batch", str(samples), "--top", "1", "--json",
                     *OPEN]
        if layers:
            arguments += ["--layers", str(layers)]
        runs = [run_once(arguments) for _ in range(repeat)]
        wall, processor, peak, report = min(runs, key=lambda one: one[0])
        search = report["search"]
        rows.append(dict(zip(COLUMNS, [
            sweep, model, machine, gpus, layers or report["model"]["layers"],
            samples, search["candidates"], f"{100 * search['gap']:.2g}", f"{wall:.3g}",
            f"{max(one[0] for one in runs):.3g}", f"{processor:.3g}",
            round(peak / 1000)])))
        print(" ".join(str(value) for value in rows[-1].values()), flush=True)
    with RECORD.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# The drawing has two panels with logarithmic axes.

SIDE, HIGH, LEFT, TOP, BETWEEN = 400, 360, 64, 40, 76
COLOURS = {"llama-3-8b": "#1f5fa8", "gpt3-175b": "#d95f02",
           "llama-3-405b": "#2f8f4e"}


def panel(rows, sweep, left, low, high):
    key = "gpus" if sweep == "GPUs" else "layers"
    rows = [row for row in rows if row["sweep"] == sweep]
    values = sorted({int(row[key]) for row in rows})
    first, last = math.log(values[0]), math.log(values[-1])

    def x_of(value):
        return left + SIDE * (math.log(value) - first) / (last - first)

    def y_of(seconds):
        share = (math.log10(seconds) - low) / (high - low)
        return TOP + HIGH * (1 - share)

    text = [f'<text x="{left + SIDE / 2:.1f}" y="{TOP - 14}" '
            f'text-anchor="middle">seconds against {sweep}</text>']
    for decade in range(low, high + 1):
        y = y_of(10**decade)
        text.append(f'<path class="grid" d="M{left} {y:.1f}h{SIDE}"/>'
                    f'<text x="{left - 8}" y="{y + 4:.1f}" '
                    f'text-anchor="end">{10.0**decade:g}</text>')
    for value in values:
        x = x_of(value)
        text.append(f'<path class="grid" d="M{x:.1f} {TOP}v{HIGH}"/>'
                    f'<text x="{x:.1f}" y="{TOP + HIGH + 16}" class="tick" '
                    f'text-anchor="middle">{value}</text>')
    for model, _, _ in MODELS:
        mine = [row for row in rows if row["model"] == model]
        at = [(x_of(int(row[key])), y_of(float(row["wall_s"])))
              for row in mine]
        line = "L".join(f"{x:.1f} {y:.1f}" for x, y in at)
        colour = COLOURS[model]
        text.append(f'<path fill="none" stroke="{colour}" d="M{line}"/>')
        text += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}">'
                 f'<title>{model}, {row["gpus"]} GPUs, {row["layers"]} layers:'
                 f' {row["wall_s"]} s</title></circle>'
                 for (x, y), row in zip(at, mine)]
    return text


def drawing(rows):
    walls = [float(row["wall_s"]) for row in rows]
    low = math.floor(math.log10(min(walls)))
    high = math.ceil(math.log10(max(walls)))
    right = LEFT + SIDE + BETWEEN
    width, height = right + SIDE + 24, TOP + HIGH + 100
    text = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} '
            f'{height}" font-family="sans-serif" font-size="12">',
            "<style>.grid{stroke:#ddd}.tick{font-size:10px}</style>",
            '<rect width="100%" height="100%" fill="#fff"/>']
    text += panel(rows, "GPUs", LEFT, low, high)
    text += panel(rows, "layers", right, low, high)
    for i, (model, machine, samples) in enumerate(MODELS):
        y = TOP + HIGH + 46 + 18 * i
        text.append(f'<circle cx="{LEFT + 4}" cy="{y}" r="4" '
                    f'fill="{COLOURS[model]}"/><text x="{LEFT + 14}" '
                    f'y="{y + 4}">{model} on {machine}, {samples} samples a '
                    f"step; right: its shape on {LAYERS_ON[model]} GPUs</text>")
    return "\n".join(text + ["</svg>", ""])


def table(rows, sweep, key):
    text = [f"| model | {sweep} | {'layers' if key == 'gpus' else 'GPUs'} | "
            "candidates | gap % | wall s | slowest s | processor s | "
            "peak MB |",
            "| --- |" + " ---: |" * 8]
    other = "layers" if key == "gpus" else "gpus"
    text += [f"| {row['model']} | {row[key]} | {row[other]} | "
             f"{row['candidates']} | {row['gap_percent']} | {row['wall_s']} | "
             f"{row['wall_slowest_s']} | {row['processor_s']} | "
             f"{row['peak_MB']} |" for row in rows if row["sweep"] == sweep]
    return "\n".join(text)


def page(rows):
    return f"""# What planning costs

Wall time of the command `mtplan MODEL --gpus N` on two shared cores with
all options open except uneven stages and hybrid sharding, `{' '.join(OPEN)}`:
the fastest of a few runs, against the number of GPUs and of layers. The gap is
by how much the plan may be slower than the optimum.
`{COMMAND}` measures again, writes
[the record](../bench/results/plan-cost.csv) and draws it; without `--measure`
it only draws.

![planning time against GPUs and layers](planning-cost.svg)

## Against GPUs

{table(rows, "GPUs", "gpus")}

## Against layers

{table(rows, "layers", "layers")}
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--measure", type=pathlib.Path, metavar="BIN")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    os.chdir(ROOT)
    if options.measure:
        measure(options.measure, options.repeat)
    with RECORD.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    stale = []
    for path, text in ((DRAWING, drawing(rows)), (PAGE, page(rows))):
        if not options.check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            stale.append(path.relative_to(ROOT))
    for path in stale:
        print(f"{path} is not what {RECORD.relative_to(ROOT)} says: "
              "run scripts/plan_cost.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
