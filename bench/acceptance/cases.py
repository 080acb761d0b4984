"""Compiles the plans that the parts of the acceptance test train. The compiler
and the GPU may be on different machines."""

import dataclasses
import json
import shutil
import subprocess

from .machine import Failure

FAMILIES = ("gpt2", "bert", "llama")
LAYOUTS = {"one": [], "tp4": ["--tp", "4"], "pp2tp2": ["--pp", "2", "--tp", "2"],
           "zero3": ["--dp", "4", "--zero", "3"]}
SUITES = ("cuda_tests", "cudnn_tests")
SPEED = {"gpt2": "gpt2-1.2b", "gpt2-no-dropout": "gpt2-1.2b", "llama": "llama-3.2-1b",
         "qwen2": "qwen2.5-1.5b"}
# Efficiencies of 1 and no overheads give the roofline of a device's peaks.
IDEAL = {"bandwidth_efficiency": 1.0, "elementwise_efficiency": 1.0, "gemm_efficiency": 1.0,
         "gemm_efficiency_fp8": 1.0, "attention_efficiency": 1.0, "unaligned_64_rate": 1.0,
         "unaligned_8_rate": 1.0, "batched_rate": 1.0, "launch_us": 0.0, "wave_us": 0.0}


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    model: str  # name of a file in examples/, without ".json"
    flags: tuple
    program: bool = False  # whether the plan is also compiled to a CUDA program
    dropout: bool = True
    speed: bool = False


def model_of(family, scale):
    """Returns a model, and flags for it, that CPU ranks train within a minute."""
    if scale == "tiny":
        return f"tiny-{family}", ()
    return {"gpt2": ("gpt2-124m", ("--layers", "4")), "bert": ("bert-336m", ("--layers", "4")),
            "llama": ("llama-30m", ())}[family]


def cases(scale):
    sequence = [] if scale == "tiny" else ["--seq", "256"]
    common = (*sequence, "--global-batch", "4")
    found = []
    for family in FAMILIES:
        model, layers = model_of(family, scale)
        for precision in "fp32", "bf16":
            found.append(Case(f"parity-{family}-{precision}", model,
                              (*layers, *common, "--gpus", "1", "--micro-batch", "4",
                               "--precision", precision), program=family != "bert"))
    model, layers = model_of("gpt2", scale)
    for name, flags in LAYOUTS.items():
        found.append(Case(f"ranks-{name}", model,
                          (*layers, *common, "--precision", "fp32", "--micro-batch", "1",
                           "--gpus", "1" if name == "one" else "4", *flags)))
    for name, precision in ("sanitized", "bf16"), ("sanitized-fp32", "fp32"):
        found.append(Case(name, "tiny-gpt2", ("--gpus", "1", "--global-batch", "4",
                                              "--micro-batch", "2", "--precision", precision)))
    for name, model in SPEED.items():
        shape = ("--seq", "1024", "--global-batch", "8", "--micro-batch", "8")
        if scale == "tiny":
            model, shape = f"tiny-{name.split('-')[0]}", shape[2:]
        found.append(Case(f"speed-{name}", model,
                          (*shape, "--gpus", "1", "--precision", "bf16"), speed=True,
                          dropout="no-dropout" not in name))
    return found


def check_suites(binaries):
    """Fails unless the build has the GPU suites; cudnn_tests needs cuDNN."""
    missing = [suite for suite in SUITES if not (binaries / suite).exists()]
    if missing:
        raise Failure(
            f"{binaries} has no {' and no '.join(missing)}: a package of this build cannot run "
            "the GPU conformance tests, and without cudnn_tests its attention does not use cuDNN. "
            "Build with CUDA, cuDNN and the headers of cuDNN's frontend (scripts/setup_cudnn.sh "
            "reports why they are missing), or pass --without-suites")


def mtplan(binaries, case, model, hardware, *more):
    done = subprocess.run(
        [binaries / "mtplan", model, "--hardware", hardware, *case.flags, "--json", *more],
        capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{case.name}: mtplan ended with {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def ideal(hardware):
    """Returns a machine file whose device reaches its peak rates."""
    machine = json.loads(hardware.read_text(encoding="utf-8"))
    device = machine["device"]
    device.pop("kernels", None)
    for name, value in IDEAL.items():
        if name in device or name in ("launch_us", "wave_us"):
            device[name] = {"value": value, "source": "its peaks, for a roofline"}
    if "tiles" in device:
        device["tiles"] = {"value": [[1, 1, 1]], "source": "its peaks, for a roofline"}
    if "speed_spread" in device:
        device["speed_spread"] = {"value": 0.0, "source": "its peaks, for a roofline"}
    return json.dumps(machine)


def ideal_software(software):
    """Returns a software file whose attention runs at the device's peak rate."""
    words = json.loads(software.read_text(encoding="utf-8"))
    for rates in words["attention"]["rates"]:
        for way in "forward", "backward":
            rates[way] = {"value": 1.0, "source": "the peak, for a roofline"}
    return json.dumps(words)


def prepare(binaries, root, folder, scale):
    """Compiles all plans into `folder`, with models and data beside them."""
    name = "cpu" if scale == "tiny" else "dgx-h100"
    hardware = root / "examples" / "machines" / f"{name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ideal.json").write_text(ideal(hardware), encoding="utf-8")
    (folder / "ideal-software.json").write_text(
        ideal_software(root / "examples" / "software" / "mtplan.json"), encoding="utf-8")
    shutil.copy(root / "examples" / "data" / "opticks.txt", folder / "data.txt")
    for case in cases(scale):
        to = folder / case.name
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        words = json.loads((root / "examples" / f"{case.model}.json").read_text(encoding="utf-8"))
        if not case.dropout:
            words.update({word: 0.0 for word in words if word.endswith(("pdrop", "dropout"))})
        model = to / "model.json"
        model.write_text(json.dumps(words), encoding="utf-8")
        program = ["--emit", "cuda"] if case.program else []
        facts = mtplan(binaries, case, model, hardware, "-o", to, *program)
        (to / "prediction.json").write_text(json.dumps(facts["prediction"]), encoding="utf-8")
        if case.speed:
            mtplan(binaries, case, model, folder / "ideal.json", "--software",
                   folder / "ideal-software.json", "-o", folder / "roofline")
            shutil.move(folder / "roofline" / "predicted.json", to / "roofline.json")
            shutil.rmtree(folder / "roofline")
        print(f"{case.name}: {facts['model']['parameters'] / 1e6:.1f} M parameters, "
              f"{facts['prediction']['step_time_s'] * 1e3:.1f} ms predicted", flush=True)
    (folder / "scale.txt").write_text(scale, encoding="utf-8")
