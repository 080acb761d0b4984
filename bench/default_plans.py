#!/usr/bin/env python3
"""Checks the plans that `mtplan MODEL --gpus N` finds by default.

    bench/default_plans.py BIN CHECK [--count N] [--seed S]

CHECK is one of
  typed   checks that no typed configuration is faster than the fastest plan of
          the default search, with 1,000 random configurations by default, of
          six models that are not among the examples;
  prove   checks that --verify proves the default plans of random small models,
          200 by default;
  gaps    prints the gap, the time and the memory of the default search for
          every example and for random models, 20 by default, and checks that
          no gap is above 0.1 %;
  train   checks that the default plan of every tiny example trains on 1, 2, 4
          and 8 CPU ranks with the losses of one rank;
  lines   checks that train.cu of the default plan of every dense decoder has at
          most 1,200 lines.

Prints a line for each case that fails, and a summary; exits with 1 if a case
fails.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]

# TYPED_MODELS maps the name of a model that is not among the examples to a number
# of GPUs and to the model's published configuration.
LLAMA = {"model_type": "llama", "hidden_act": "silu", "rms_norm_eps": 1e-5}
TYPED_MODELS = {
    "llama-2-13b": (8, LLAMA | {
        "hidden_size": 5120, "intermediate_size": 13824,
        "num_hidden_layers": 40, "num_attention_heads": 40,
        "vocab_size": 32000, "max_position_embeddings": 4096}),
    "gpt2-xl": (8, {
        "model_type": "gpt2", "n_embd": 1600, "n_layer": 48, "n_head": 25,
        "n_positions": 1024, "vocab_size": 50257}),
    "qwen2.5-14b": (16, {
        "model_type": "qwen2", "hidden_size": 5120,
        "intermediate_size": 13824, "num_hidden_layers": 48,
        "num_attention_heads": 40, "num_key_value_heads": 8,
        "vocab_size": 152064, "max_position_embeddings": 4096}),
    "pythia-6.9b": (32, {
        "model_type": "gpt_neox", "hidden_size": 4096,
        "intermediate_size": 16384, "num_hidden_layers": 32,
        "num_attention_heads": 32, "vocab_size": 50432,
        "max_position_embeddings": 2048, "rotary_pct": 0.25}),
    "llama-30b": (64, LLAMA | {
        "hidden_size": 6656, "intermediate_size": 17920,
        "num_hidden_layers": 60, "num_attention_heads": 52,
        "vocab_size": 32000, "max_position_embeddings": 2048}),
    "mixtral-8x22b": (64, {
        "model_type": "mixtral", "hidden_size": 6144,
        "intermediate_size": 16384, "num_hidden_layers": 56,
        "num_attention_heads": 48, "num_key_value_heads": 8,
        "num_local_experts": 8, "num_experts_per_tok": 2,
        "vocab_size": 32768, "max_position_embeddings": 4096,
        "capacity_factor": 1.25}),
}


def run(binary, config, flags, folder):
    """Returns the report, the exit status, the wall seconds and peak KiB."""
    path = pathlib.Path(folder) / "config.json"
    path.write_text(json.dumps(config))
    return run_file(binary, path, flags)


def run_file(binary, path, flags):
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        child = subprocess.Popen([binary / "mtplan", path, *flags, "--json"],
                                 stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
        if not text:
            err.seek(0)
            sys.exit(f"{path} {' '.join(flags)}: {err.read().decode()}")
    return json.loads(text), child.returncode, wall, usage.ru_maxrss


def fastest_step(report):
    """Returns the step time of the fastest plan; the chosen, simpler plan may be slower."""
    step = report["prediction"]["step_time_s"]
    return step / (1 + report["search"]["slower_than_fastest"])


def typed_flags(draw, gpus):
    """Returns the flags that a person might type."""
    degrees = [2**i for i in range(gpus.bit_length())]
    tp = draw.choice([d for d in degrees if d <= 8])
    pp = draw.choice([d for d in degrees if d <= gpus // tp and d <= 16])
    flags = ["--tp", str(tp), "--pp", str(pp),
             "--zero", draw.choice("0123"),
             "--micro-batch", draw.choice(["1", "2", "4", "8"]),
             "--recompute", draw.choice(["none", "selective", "full"])]
    schedule = draw.choice(["1f1b", "interleaved", "zero-bubble", "gpipe"])
    sequence_parallel = draw.choice(["on", "off"])
    if tp > 1:
        flags += ["--sequence-parallel", sequence_parallel]
    return flags + (["--schedule", schedule] if pp > 1 else [])


def check_typed(binary, draw, count, folder):
    """Checks that no typed configuration is faster than the default's fastest plan."""
    kept_free = 0.96  # The search returns fuller plans only as a last resort.
    faults = fit = closest = refused = 0
    names = list(TYPED_MODELS)
    for i, name in enumerate(names):
        gpus, config = TYPED_MODELS[name]
        default, status, _, _ = run(binary, config, ["--gpus", str(gpus)],
                                    folder)
        if status != 0:
            sys.exit(f"{name}: no default plan on {gpus} GPUs")
        best = fastest_step(default)
        for _ in range(count * (i + 1) // len(names) - count * i // len(names)):
            flags = typed_flags(draw, gpus)
            report, status, _, _ = run(
                binary, config, ["--gpus", str(gpus), "--tolerance", "0",
                                 "--open", "none", *flags], folder)
            refused += status == 2  # such as heads that tp does not divide
            if status != 0:
                continue
            memory = report["prediction"]["memory_bytes"]
            if memory["total"] > kept_free * memory["limit"]:
                continue
            fit += 1
            step = report["prediction"]["step_time_s"]
            closest += step < best * 1.01
            if step < best * (1 - 1e-9):
                faults += 1
                print(f"{name} on {gpus}: {' '.join(flags)} takes {step:.6g} "
                      f"s, the default search {best:.6g} s")
    print(f"typed: {count} configurations, {refused} refused, {fit} fit, "
          f"{closest} within 1 % of the default's fastest plan, {faults} faster")
    return faults + (fit < count // 10)


def random_config(draw, tiny):
    """Returns a configuration of a random family, small enough for a proof if `tiny`."""
    family = draw.choice(["gpt2", "llama", "qwen2", "mistral", "mixtral",
                          "gpt_neox", "gptj", "gemma2"])
    heads = draw.choice([2, 4, 8] if tiny else [16, 24, 32, 40])
    width = heads * (draw.choice([8, 16]) if tiny else 128)
    layers = draw.randint(1, 6) if tiny else draw.choice([24, 32, 40, 48])
    sequence = draw.choice([16, 32, 64] if tiny else [2048, 4096])
    vocabulary = draw.choice([96, 128, 512] if tiny else [32000, 50257])
    if family == "gpt2":
        return {"model_type": family, "n_embd": width, "n_layer": layers,
                "n_head": heads, "n_positions": sequence,
                "vocab_size": vocabulary}
    if family == "gptj":
        return {"model_type": family, "n_embd": width, "n_layer": layers,
                "n_head": heads, "n_positions": sequence,
                "vocab_size": vocabulary, "rotary_dim": 8 if tiny else 64}
    config = {"model_type": family, "hidden_size": width,
              "intermediate_size": width * draw.choice([2, 3, 4]),
              "num_hidden_layers": layers, "num_attention_heads": heads,
              "vocab_size": vocabulary, "max_position_embeddings": sequence}
    if family in ("llama", "qwen2", "mistral", "mixtral", "gemma2"):
        config["num_key_value_heads"] = heads // draw.choice([1, 2])
    if family == "gemma2":
        config |= {"head_dim": width // heads, "query_pre_attn_scalar": 16}
    if family == "mixtral":
        config |= {"num_local_experts": draw.choice([2, 4, 8]),
                   "num_experts_per_tok": draw.choice([1, 2]),
                   "capacity_factor": 1.25}
    return config


def check_proofs(binary, draw, count, folder):
    """Checks that --verify proves the default plans of random small models."""
    faults = proved = 0
    for _ in range(count):
        config = random_config(draw, True)
        flags = ["--gpus", str(draw.choice([1, 2, 4, 8])), "--global-batch",
                 str(draw.choice([8, 16, 32])), "--hardware",
                 draw.choice(["dgx-h100", "cpu"]), "--verify"]
        report, status, _, _ = run(binary, config, flags, folder)
        if status == 1 and not report.get("plan"):
            continue  # nothing fits
        proved += status == 0 and report["proof"]["holds"]
        if status != 0:
            faults += 1
            print(f"{json.dumps(config)} {' '.join(flags)}: "
                  f"{json.dumps(report.get('proof') or report)[:400]}")
    print(f"prove: {proved} of {count} default plans are proved, {faults} fail")
    return faults + (proved < count // 2)


def check_gaps(binary, draw, count, folder):
    """Prints the gap of every example, and of random models."""
    bound = 0.001
    rows = []
    for path in sorted((ROOT / "examples").glob("*.json")):
        for gpus in (8, 64):
            rows.append((path.stem, path, gpus))
    for i in range(count):
        path = pathlib.Path(folder) / f"random{i}.json"
        path.write_text(json.dumps(random_config(draw, False)))
        rows.append((path.stem, path, draw.choice([8, 16, 32, 64])))
    faults = 0
    for name, path, gpus in rows:
        report, status, wall, peak = run_file(binary, path,
                                              ["--gpus", str(gpus)])
        if status != 0:
            continue
        gap = report["search"]["gap"]
        faults += gap > bound
        print(f"{name:26} {gpus:3} GPUs  gap {100 * gap:6.3f} %  {wall:5.2f} s "
              f"{peak / 1024:5.0f} MB{'' if gap <= bound else '  above 0.1 %'}",
              flush=True)
    print(f"gaps: {faults} of {len(rows)} are above {100 * bound} %")
    return faults


def check_training(binary, draw, count, folder):
    """Checks losses of three steps in single precision, ignoring `draw` and `count`."""
    most = 1e-6
    runs = faults = 0
    worst = 0.0
    for path in sorted((ROOT / "examples").glob("tiny-*.json")):
        alone = []
        for ranks in (1, 2, 4, 8):
            into = pathlib.Path(folder) / f"{path.stem}-{ranks}"
            metrics = into / "metrics.jsonl"
            run_file(binary, path, ["--gpus", str(ranks), "--hardware", "cpu",
                                    "--global-batch", "8", "--precision",
                                    "fp32", "-o", str(into)])
            done = subprocess.run(
                [binary / "mtrun", into, "--data", "synthetic", "--steps", "3",
                 "--metrics", metrics], capture_output=True, text=True)
            losses = []
            if done.returncode == 0:
                lines = map(json.loads, metrics.read_text().splitlines())
                losses = [line["loss"] for line in lines if "loss" in line]
            alone = alone or losses
            runs += 1
            apart = (max(abs(a - b) / b for a, b in zip(losses, alone))
                     if len(losses) == len(alone) == 3 else float("inf"))
            worst = max(worst, apart)
            if apart > most:
                faults += 1
                print(f"{path.stem} on {ranks}: losses {losses}, alone {alone}"
                      f"{done.stderr[-400:]}")
    print(f"train: {runs} default plans, losses at most {worst:.2g} apart "
          f"(bound {most:g}), {faults} fail")
    return faults


def check_lines(binary, draw, count, folder):
    """Prints the number of lines of each program, ignoring `draw` and `count`."""
    most, faults, programs = 1200, 0, 0
    for path in sorted((ROOT / "examples").glob("*.json")):
        if path.stem.startswith("tiny") or "mixtral" in path.stem or "moe" in path.stem:
            continue
        for gpus in (8, 64, 512):
            into = pathlib.Path(folder) / f"{path.stem}-{gpus}"
            done = subprocess.run(
                [binary / "mtplan", path, "--gpus", str(gpus), "--emit", "cuda",
                 "-o", into], capture_output=True, text=True)
            if done.returncode != 0:
                continue  # It does not fit, or its plan cannot be compiled.
            lines = len((into / "train.cu").read_text().splitlines())
            programs += 1
            faults += lines > most
            print(f"{path.stem:26} {gpus:3} GPUs  {lines:5}"
                  f"{'' if lines <= most else '  above 1,200'}", flush=True)
    print(f"lines: {faults} of {programs} programs are above {most}")
    return faults


CHECKS = {"typed": (check_typed, 1000), "prove": (check_proofs, 200),
          "gaps": (check_gaps, 20), "train": (check_training, 0),
          "lines": (check_lines, 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=pathlib.Path, metavar="BIN",
                        help="the folder of mtplan")
    parser.add_argument("check", choices=CHECKS, metavar="CHECK",
                        help=", ".join(CHECKS))
    parser.add_argument("--count", type=int, help="number of random cases")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    check, count = CHECKS[arguments.check]
    with tempfile.TemporaryDirectory() as folder:
        faults = check(arguments.binary, random.Random(arguments.seed),
                       arguments.count or count, folder)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
