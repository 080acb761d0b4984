"""Holds the parts that measure the speed of a GPU, and check predictions."""

import json
import statistics

from . import cases
from .lines import Line, load
from .machine import Failure, last_object

WAYS = {"eager": [], "compiled": ["--compile"]}
LINES = {name: [
    Line("tokens/s beside PyTorch eager", 1.1, least=True, unit=" x"),
    Line("tokens/s beside torch.compile", 1.1, least=True, unit=" x"),
    Line("share of the measured peak of a large product", 55, least=True, unit=" %"),
    Line("time outside kernels", 2, unit=" %")] for name in cases.SPEED}
CALIBRATE = [Line("machine files that were not written", 0)]
PREDICT = [line for name in cases.SPEED for line in (
    Line(f"{name}: predicted step off by", 8, unit=" %"),
    Line(f"{name}: predicted memory off by", 5, unit=" %"))]
PLACE = ("backend", "scale", "device", "own")  # conditions under which a part was measured
# Maps a GPU's name to the preset whose peaks `mtrun calibrate` uses.
LIKE = {"NVIDIA H100 80GB HBM3": "H100-SXM5-80GB", "NVIDIA H200": "H200-SXM-141GB"}
# The sum of separately timed instructions may exceed the step's time by this
# share, because the GPU's clock and caches differ.
CLOCKS = 0.03
FIRST = 3  # warm-up steps: allocation, capture, first launch


class Speed:
    """Has a method for each kind of part. Each method fills the record."""

    def __init__(self, machine, record):
        self.machine, self.record = machine, record

    def torch(self, name, way):
        """Runs bench/torch_step.py and returns its JSON."""
        flags = self.machine.flags
        batch, sequence = (8, 32) if flags.scale == "tiny" else (8, 1024)
        said = self.machine.run(
            flags.torch_python, flags.bench / "torch_step.py",
            self.machine.prepared / f"speed-{name}" / "model.json", "--device", flags.backend,
            "--precision", "bf16", "--bf16", way.split()[-1], "--batch", batch, "--sequence",
            sequence, "--steps", flags.steps, "--warmup", FIRST, *WAYS[way.split()[0]])
        return last_object(said)

    def model(self, name):
        """Runs mtrun and PyTorch on the same step, in turns."""
        case, ours, theirs = f"speed-{name}", [], {}
        for pair in range(self.machine.flags.pairs):
            with self.record.attempt(f"mtrun, {pair + 1}"):
                ours.append(self.machine.train(case, FIRST + self.machine.flags.steps, watch=True))
            for way in self.machine.flags.torch_ways:
                with self.record.attempt(f"PyTorch {way}, {pair + 1}"):
                    run = self.torch(name, way)
                    theirs.setdefault(way, []).append(run)
        if ours:
            self.own(name, case, ours)
        with self.record.attempt("in comparison"):
            self.beside(ours, theirs)

    def own(self, name, case, ours):
        with self.record.attempt("of the peak"):
            share = statistics.median(run.median("share_of_peak", FIRST) for run in ours)
            rate = statistics.median(run.median("flops_per_rank", FIRST) for run in ours)
            self.record.measure("share of the measured peak of a large product", 100 * share,
                                f"{rate / 1e12:.4g} of {rate / share / 1e12:.4g} TFLOP/s")
        with self.record.attempt("classes"):
            tables = [run.classes() for run in ours]
            classes = {what: statistics.median(one.get(what, 0.0) for one in tables)
                       for what in tables[0]}
            step = classes.pop("step")
            rest = step - sum(classes.values()) if "rest" not in classes else classes.pop("rest")
            self.lost(case, classes, rest, step)
            said = (f"instructions took {1e3 * (step - rest):.4g} ms in a step without overlap, "
                    f"and a step {1e3 * step:.4g} ms")
            if rest < -CLOCKS * step:
                raise Failure(f"{said}: the time outside kernels is unknown")
            self.record.measure("time outside kernels", 100 * max(0.0, rest) / step,
                                said if rest < 0 else "")
        seconds = statistics.median(run.median("seconds", FIRST) for run in ours)
        used = [run.device_bytes for run in ours if run.device_bytes]
        self.record.words["facts"] = {"case": name, "step_seconds": seconds,
                                      "device_bytes": max(used) if used else None}

    def lost(self, case, classes, rest, step):
        peaks = dict(load(self.machine.prepared / case / "roofline.json")["classes"])
        rows = sorted(((seconds - peaks.get(what, 0.0), what, seconds)
                       for what, seconds in classes.items()), reverse=True)
        rows.append((rest, "outside kernels", rest))
        self.record.table(
            "Time lost against the roofline (data sheet peaks, no overheads) in a step of "
            f"{1e3 * step:.3f} ms, largest first:", ["class", "measured ms", "roofline ms",
                                                     "lost ms", "of the step"],
            [[what, f"{1e3 * seconds:.3f}", f"{1e3 * (seconds - lost):.3f}", f"{1e3 * lost:.3f}",
              f"{100 * lost / step:.1f} %"] for lost, what, seconds in sorted(rows, reverse=True)])

    def beside(self, ours, theirs):
        rates = [run.median("tokens_per_second", FIRST) for run in ours]
        rows = [["mtrun", *map(rounded, spread(rates)), memory(ours[0].device_bytes if ours
                                                               else None), len(rates)]]
        for way, runs in theirs.items():
            rows.append([f"PyTorch {way}",
                         *map(rounded, spread([run["tokens_per_second"] for run in runs])),
                         memory(max(run["peak_bytes"] for run in runs)), len(runs)])
        self.record.table("Alternating runs; memory is the increase of the GPU's used memory "
                          "(mtrun) and the memory that PyTorch reserved:",
                          ["", "tokens/s, median", "least", "most", "memory", "runs"],
                          [row for row in rows if row[-1]])
        for line, word in (("tokens/s beside PyTorch eager", "eager"),
                           ("tokens/s beside torch.compile", "compiled")):
            # mtrun is compared with PyTorch's fastest variant, so all must have run.
            wanted = [way for way in self.machine.flags.torch_ways if way.startswith(word)]
            if not rates or not wanted or any(way not in theirs for way in wanted):
                continue
            best = max(statistics.median(run["tokens_per_second"] for run in theirs[way])
                       for way in wanted)
            self.record.measure(line, statistics.median(rates) / best,
                                f"the fastest of {', '.join(wanted)}")

    def like(self):
        name = self.record.words["device"]["name"]
        found = self.machine.flags.like or LIKE.get(name)
        if not found:
            raise Failure(f"no preset is known for {name}: --like DEVICE is needed")
        return found

    def calibrate(self):
        machine, measured = (self.machine.flags.results / name
                             for name in ("machine.json", "measurements.json"))
        with self.record.attempt("mtrun calibrate"):
            tiny = self.machine.scale == "tiny"
            seconds = max(1, min(1 if tiny else 240, int(0.8 * self.machine.left())))
            like = ["--like", self.like()] if self.machine.backend == "cuda" else []
            said = self.machine.run(
                self.machine.mtrun(), "calibrate", "--backend", self.machine.backend, "-o", machine,
                "--measurements", measured, "--replace", "--seconds", seconds,
                "--precisions", "fp32,bf16", *like)
            (self.machine.flags.results / "calibrate.txt").write_text(said, encoding="utf-8")
            self.record.words["facts"] = {"machine": json.loads(machine.read_text())}
            self.record.measure("machine files that were not written",
                                sum(path.stat().st_size == 0 for path in (machine, measured)))
            _, _, figures = said.partition("Fitted figures\n")
            self.record.table("Figures that the measurements (calibrate.txt) give:", ["figure"],
                              [[line.strip()] for line in figures.splitlines()])

    def predict(self):
        """Compares the speed parts with predictions; needs no GPU.

        The predictions use the machine file of the part calibrate.
        """
        flags = self.machine.flags
        found = {case.name: case for case in cases.cases(flags.scale)}
        calibrated = load(flags.results / "calibrate.json")
        if not calibrated or "machine" not in calibrated["facts"]:
            raise Failure("the part calibrate left no machine file")
        self.record.words.update({word: calibrated[word] for word in PLACE})
        file = self.machine.folder / "machine.json"
        file.write_text(json.dumps(calibrated["facts"]["machine"]), encoding="utf-8")
        rows = []
        for name in cases.SPEED:
            with self.record.attempt(name):
                run = load(flags.results / f"speed-{name}.json") or {"facts": {}}
                if run["facts"].get("case") != name:
                    raise Failure(f"the part speed-{name} measured nothing")
                for word in PLACE:
                    if run[word] != calibrated[word]:
                        raise Failure(f"measured with {word} {run[word]}, calibrated with "
                                      f"{calibrated[word]}")
                self.machine.program("mtplan")
                case = f"speed-{name}"
                said = cases.mtplan(flags.binaries, found[case],
                                    self.machine.prepared / case / "model.json",
                                    file)["prediction"]
                step, measured = said["step_time_s"], run["facts"]["step_seconds"]
                self.record.measure(f"{name}: predicted step off by",
                                    100 * abs(step / measured - 1),
                                    f"{1e3 * step:.4g} against {1e3 * measured:.4g} ms")
                rows.append([name, "step", f"{1e3 * step:.2f} ms", f"{1e3 * measured:.2f} ms"])
                # Spare memory and slack are margins, not predicted use.
                kept = said["memory_bytes"]
                planned = kept["total"] - kept["spare"] - said["margins_bytes"]["slack"]
                used = run["facts"]["device_bytes"]
                if not used:
                    raise Failure("the GPU's memory was not measured (nvidia-smi)")
                self.record.measure(f"{name}: predicted memory off by",
                                    100 * abs(planned / used - 1),
                                    f"{memory(planned)} against {memory(used)}")
                rows.append([name, "memory", memory(planned), memory(used)])
        self.record.table("Predicted with the calibrated machine file, and measured:",
                          ["model", "what", "predicted", "measured"], rows)


def spread(values):
    """Returns median, minimum and maximum, or zeros if there are no values."""
    return [statistics.median(values), min(values), max(values)] if values else [0.0] * 3


def rounded(value):
    return f"{value:.0f}"


def memory(size):
    return f"{size / 2**30:.2f} GiB" if size else "not known"
