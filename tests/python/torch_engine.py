"""Compares what mtrun computes for an imported module with PyTorch.

mtrun trains a few steps on equal samples and keeps its weights and moments. The
weights of a step are loaded into the module, whose loss and gradients must then be
those of the next step.
"""

import dataclasses
import json
import pathlib
import struct
import subprocess
import tempfile

import safetensors.torch
import torch
from torch.nn import functional as F

import mtplan
from mtplan._commands import MTRUN

STEPS, LENGTH, SAMPLES = 4, 16, 4
DECAY = 0.9  # of the first moment of AdamW


def load(module, imported, weights):
    """Loads a checkpoint's weights into the parameters of the module."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    with torch.no_grad():
        for op in imported.parameters:
            source, tensor = op.source, weights[op.label]
            target = parameters[source.name]
            if source.stop is not None:
                target = source.cut(target)
            tensor = tensor.mT if source.transposed else tensor
            target.copy_((tensor - source.added).reshape(target.shape))


def checkpoint(folder, step, kind):
    path = folder / f"step-{step:08}" / f"{kind}-00001-of-00001.safetensors"
    return safetensors.torch.load_file(path)


def errors(module, logits_of, classes):
    """Returns the errors of loss and gradients of a step of mtrun, in float32.

    ``logits_of`` computes the logits of a batch of tokens; the module returns them
    first.
    """
    ids = torch.tensor([[(7 * place + 3) % classes for place in range(LENGTH)]] * 2)
    targets = ids.roll(-1, 1)
    imported = mtplan.from_torch(module, (ids,), precision="fp32")
    plan = mtplan.plan(imported, gpus=1, hardware="cpu", global_batch=SAMPLES)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        plan.compile(folder / "run")
        words = ids[0].tolist() * (SAMPLES * STEPS + 2)
        (folder / "data.bin").write_bytes(struct.pack(f"<{len(words)}H", *words))
        subprocess.run(
            [MTRUN, folder / "run", "--data", folder / "data.bin", "--format", "uint16",
             "--steps", str(STEPS), "--lr", "0.01", "--lr-decay", "constant", "--warmup",
             "0", "--clip", "0", "--checkpoint", folder / "kept", "--save-every", "1",
             "--keep", str(STEPS), "--metrics", folder / "log", "--threads", "1"],
            check=True, capture_output=True)
        logged = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        weights = checkpoint(folder / "kept", STEPS - 1, "weights")
        moments = [checkpoint(folder / "kept", step, "first_moments")
                   for step in (STEPS - 1, STEPS)]
    load(module, imported, weights)
    module.zero_grad()
    logits = logits_of(ids)
    loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
    loss.backward()
    theirs = {name: parameter.grad for name, parameter
              in module.named_parameters(remove_duplicate=False)}
    largest = max(float(one.abs().max()) for one in theirs.values() if one is not None)
    worst = 0.0
    for op in imported.parameters:
        before, after = (one[op.label + ".first_moment"].double() for one in moments)
        made = (after - DECAY * before) / (1.0 - DECAY)
        expected = dataclasses.replace(op.source, added=0.0).of(theirs[op.source.name])
        scale = max(float(expected.abs().max()), largest / 100)
        worst = max(worst, float((made - expected).abs().max()) / scale)
    return abs(logged[-1]["loss"] - float(loss.detach())), worst
