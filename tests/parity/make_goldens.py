#!/usr/bin/env python3
"""make_goldens.py [--check] [MODEL ...]: trains the tiny models of this folder with
PyTorch in float64 and writes the results to goldens/. With --check it compares
the results with the files instead. README.md says what a golden has.
"""

import argparse
import json
import math
import pathlib
import random
import sys

import torch
from torch import nn
from torch.nn import functional as F

from torch_models import MODELS

HERE = pathlib.Path(__file__).resolve().parent
STEPS, BATCH, MICRO_BATCHES = 10, 8, 2
SAMPLES = "ids", "types", "decoder_ids", "patches", "targets"
BOUND, BLIND = 1e-12, 1e-8  # relative differences that --check allows

# Holds the settings of each training. Some steps exceed the clip and some do
# not.
TRAINING = {
    "gpt2": {"peak": 0.01, "floor": 0.001, "warmup": 3, "end": 12, "decay": "cosine",
             "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8, "weight_decay": 0.1,
             "clip": 1.5},
    "bert": {"peak": 0.01, "floor": 0.0, "warmup": 2, "end": 20, "decay": "linear",
             "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-6, "weight_decay": 0.01,
             "clip": 2.0},
    "llama": {"peak": 0.01, "floor": 0.01, "warmup": 0, "end": 10, "decay": "constant",
              "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-5, "weight_decay": 0.1,
              "clip": 1.5},
    "gemma2": {"peak": 0.01, "floor": 0.001, "warmup": 2, "end": 12, "decay": "linear",
               "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-6, "weight_decay": 0.1,
               "clip": 1.5},
    "mixtral": {"peak": 0.01, "floor": 0.001, "warmup": 2, "end": 12, "decay": "linear",
                "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-5, "weight_decay": 0.1,
                "clip": 1.2},
    "t5": {"peak": 0.005, "floor": 0.0, "warmup": 3, "end": 20, "decay": "cosine",
           "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-5, "weight_decay": 0.01,
           "clip": 0.3},
    "vit": {"peak": 0.01, "floor": 0.001, "warmup": 2, "end": 10, "decay": "cosine",
            "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "weight_decay": 0.05,
            "clip": 2.3},
}


def learning_rate(how, step):
    """Returns the learning rate of a step, counted from 1. The rate rises
    linearly, then falls as `decay` says."""
    if step <= how["warmup"]:
        return how["peak"] * step / how["warmup"]
    share = (step - how["warmup"]) / (how["end"] - how["warmup"])
    left = {"constant": 1.0, "linear": 1.0 - share,
            "cosine": (1.0 + math.cos(math.pi * share)) / 2.0}[how["decay"]]
    return how["floor"] + (how["peak"] - how["floor"]) * left


def length_of(config):
    """Returns the positions of a sample."""
    if "image_size" in config:
        height, width = config["image_size"]
        return 1 + height * width // config["patch_size"] ** 2
    return config.get("n_positions") or config["max_position_embeddings"]


def draw_images(config, dice):
    """Returns the images of one step as patches [sample, position, feature], blank
    at the class token's position, and the classes (-1: none). A feature is a pixel
    of a patch, channel by channel."""
    positions = length_of(config) - 1
    features = config["num_channels"] * config["patch_size"] ** 2
    patches, classes = [], []
    for _ in range(BATCH):
        patches += [0.0] * features
        patches += [round(dice.uniform(-1, 1), 2) for _ in range(positions * features)]
        classes.append(-1 if dice.random() < 0.125 else dice.randrange(config["num_labels"]))
    return {"patches": patches, "targets": classes}


def images_of(patches, config):
    """Returns the images [sample, channel, row, column] of patches."""
    return F.fold(patches[:, 1:].transpose(1, 2), config["image_size"],
                  config["patch_size"], stride=config["patch_size"])


def draw_samples(name, config, length, dice):
    """Returns the inputs and the targets (-1: none) of one step, sample after
    sample."""
    if name == "vit":
        return draw_images(config, dice)
    vocabulary = config["vocab_size"]
    if name == "t5":  # The decoder reads the token before each target.
        ids, decoder_ids, targets = [], [], []
        for _ in range(BATCH):
            ids += [dice.randrange(vocabulary) for _ in range(length)]
            tokens = [dice.randrange(vocabulary)
                      for _ in range(config["decoder_sequence"] + 1)]
            decoder_ids += tokens[:-1]
            targets += [-1 if dice.random() < 0.125 else t for t in tokens[1:]]
        return {"ids": ids, "decoder_ids": decoder_ids, "targets": targets}
    ids, types, targets = [], [], []
    for _ in range(BATCH):
        tokens = [dice.randrange(vocabulary) for _ in range(length + 1)]
        if name == "bert":  # About a third of the tokens are hidden.
            hidden = [dice.random() < 0.3 for _ in range(length)]
            ids += [vocabulary - 1 if h else t for h, t in zip(hidden, tokens)]
            targets += [t if h else -1 for h, t in zip(hidden, tokens)]
            types += [0 if i < length // 2 else 1 for i in range(length)]
        else:
            ids += tokens[:-1]
            targets += [-1 if dice.random() < 0.125 else t for t in tokens[1:]]
    samples = {"ids": ids, "types": types, "targets": targets}
    return {what: numbers for what, numbers in samples.items() if numbers}


def draw_weights(model, dice, matrices=0.6):
    """Draws numbers of three decimals, which are short when written in full."""
    with torch.no_grad():
        for name, value in model.named_parameters():
            far = matrices if value.dim() > 1 else 0.3
            centre = 1.0 if value.dim() == 1 and name.endswith("weight") else 0.0
            flat = [round(centre + dice.uniform(-far, far), 3)
                    for _ in range(value.numel())]
            value.copy_(torch.tensor(flat).view_as(value))


def as_mtplan(model, tensors):
    """Returns tensors by label, flat, in mtplan's shapes: weights of products are
    [in, out], and the kernels of a convolution are such a weight."""
    turned = {id(m.weight) for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))}
    turned -= {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    return {name: (tensor.flatten(1).t() if id(value) in turned else tensor).reshape(-1).tolist()
            for (name, value), tensor in zip(model.named_parameters(), tensors)}


def train(name):
    config = json.loads((HERE / f"{name}.json").read_text())
    length = length_of(config)
    how = TRAINING[name]
    dice = random.Random(name)  # Python's sequence per seed is stable
    model = MODELS[name](config)
    # T5 does not scale its scores: larger weights would make the softmax so sharp
    # that single precision diverges within ten steps.
    draw_weights(model, dice, matrices=0.4 if name == "t5" else 0.6)
    weights = list(model.parameters())
    columns = {"initial": as_mtplan(model, [w.detach() for w in weights])}
    # Weight decay applies only to matrices and tables.
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in weights if w.dim() > 1],
          "weight_decay": how["weight_decay"]},
         {"params": [w for w in weights if w.dim() == 1], "weight_decay": 0.0}],
        betas=(how["beta1"], how["beta2"]), eps=how["epsilon"])
    steps = []
    for step in range(1, STEPS + 1):
        samples = draw_samples(name, config, length, dice)
        count = sum(t >= 0 for t in samples["targets"])
        batches = {what: torch.tensor(numbers).view(MICRO_BATCHES, BATCH // MICRO_BATCHES, -1)
                   for what, numbers in samples.items()}
        targets = batches.pop("targets")
        optimizer.zero_grad()
        loss = 0.0
        for batch in range(MICRO_BATCHES):
            inputs = {what: numbers[batch] for what, numbers in batches.items()}
            if "patches" in inputs:
                patches = inputs.pop("patches").unflatten(1, (length, -1))
                inputs["images"] = images_of(patches, config)
            logits = model(**inputs)
            part = F.cross_entropy(logits.flatten(0, -2), targets[batch].flatten(),
                                   ignore_index=-1, reduction="sum") / count
            # Training minimises the auxiliary loss too, which is reported separately.
            auxiliary = model.auxiliary() / count if hasattr(model, "auxiliary") else 0.0
            (part + auxiliary).backward()
            loss += part.item()
        if step == 1:
            columns["gradient"] = as_mtplan(model, [w.grad for w in weights])
        norm = nn.utils.clip_grad_norm_(weights, how["clip"]).item()
        rate = learning_rate(how, step)
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.step()
        steps.append({**samples, "rate": rate, "loss": loss, "norm": norm})
    columns["final"] = as_mtplan(model, [w.detach() for w in weights])
    parameters = {label: {column: values[label] for column, values in columns.items()}
                  for label in columns["initial"]}
    return {"made_by": f"PyTorch {torch.__version__}", "sequence": length,
            "global_batch": BATCH, "training": how, "steps": steps,
            "parameters": parameters}


def text_of(value):
    """Returns JSON with a line for every list of numbers."""
    if isinstance(value, dict):
        members = (f"{json.dumps(key)}: {text_of(one)}" for key, one in value.items())
        return "{\n" + ",\n".join(members) + "\n}"
    if isinstance(value, list) and isinstance(value[0], dict):
        return "[\n" + ",\n".join(map(text_of, value)) + "\n]"
    return json.dumps(value, separators=(",", ":"))


def start_of(golden):
    """Returns the random inputs of a golden, which must be equal to the bit."""
    return (golden["sequence"], golden["global_batch"], golden["training"],
            [[step.get(key) for key in SAMPLES] for step in golden["steps"]],
            {label: columns["initial"] for label, columns in golden["parameters"].items()})


def differences(committed, made):
    """Yields relative differences, each with its bound and its name. A tensor's
    difference is relative to its largest element."""
    def apart(old, new, least=0.0):
        return max(abs(a - b) for a, b in zip(old, new, strict=True)) / max(least, *map(abs, old))

    for key in ("rate", "loss", "norm"):
        old, new = ([step[key] for step in golden["steps"]] for golden in (committed, made))
        yield apart(old, new), BOUND, key
    parameters = committed["parameters"]
    largest = max(abs(g) for columns in parameters.values() for g in columns["gradient"])
    for label, old in parameters.items():
        new = made["parameters"][label]
        yield (apart(old["gradient"], new["gradient"], 1e-3 * largest), BOUND,
               f"gradient of {label}")
        # Softmax cancels a bias of all keys. Its gradient is rounding error, which
        # AdamW divides by its own size.
        blind = max(map(abs, old["gradient"])) < 1e-12 * largest
        yield apart(old["final"], new["final"]), BLIND if blind else BOUND, f"final {label}"


def check(committed, made):
    """Prints the largest differences and returns whether all are within bounds."""
    if start_of(committed) != start_of(made):
        print("  does not start from the same numbers")
        return False
    found = list(differences(committed, made))
    for bound in (BOUND, BLIND):
        for one in sorted((one for one in found if one[1] == bound), reverse=True)[:1]:
            print(f"  {one[0]:.1e} of {bound:.0e} allowed, {one[2]}")
    return all(apart <= bound for apart, bound, _ in found)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true",
                        help="compare with the files and write nothing")
    parser.add_argument("models", metavar="MODEL", nargs="*", default=list(MODELS),
                        help="the models to train (default: all)")
    arguments = parser.parse_args()
    checks = arguments.check
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    good = True
    for name in arguments.models:
        golden = train(name)
        file = HERE / "goldens" / f"{name}.json"
        print(f"{name}, by {golden['made_by']} of {sys.executable}")
        if checks:
            good &= check(json.loads(file.read_text()), golden)
        else:
            file.write_text(text_of(golden) + "\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
