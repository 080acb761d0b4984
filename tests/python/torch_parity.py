"""Compares an imported module with what PyTorch computes, in double precision."""

import dataclasses

import torch
from torch.nn import functional as F

import ir_in_torch
from mtplan import from_torch


def in_double(program):
    """Returns a program that computes in double precision throughout.

    Transformers rounds norms, rotations and softmax to single precision.
    """
    module = program.module()
    for part in module.modules():
        if not isinstance(part, torch.fx.GraphModule):
            continue
        for node in part.graph.nodes:
            def change(one):
                return torch.float64 if one is torch.float32 else one
            node.args = tuple(change(one) for one in node.args)
            node.kwargs = {key: change(one) for key, one in node.kwargs.items()}
        part.recompile()
    return module


class Recorder(torch.fx.Interpreter):
    """Runs a program and keeps what every node computes."""

    def __init__(self, module):
        super().__init__(module)
        self.seen = {}

    def run_node(self, node):
        # These nodes assert the types in which the module computes.
        if "_assert_tensor_metadata" in str(node.target):
            return None
        self.seen[node.name] = super().run_node(node)
        return self.seen[node.name]


def exact_rotations(module):
    """Replaces angles, which transformers rounds to single precision."""
    for part in module.modules():
        for name, buffer in list(part._buffers.items()):
            if name.endswith("inv_freq") and buffer is not None:
                theta = float(part.config.rope_parameters["rope_theta"])
                steps = torch.arange(len(buffer), dtype=torch.float64) / len(buffer)
                part._buffers[name] = theta ** -steps
            if name.endswith("embed_positions") and buffer is not None:
                width = buffer.shape[1]
                steps = torch.arange(0, width, 2, dtype=torch.float64) / width
                angles = torch.arange(len(buffer))[:, None] * 10000.0 ** -steps
                part._buffers[name] = torch.cat([angles.sin(), angles.cos()], 1)


def padded(tensor, value):
    """Returns a tensor with the rows of zeros that mtplan stores."""
    for dim, size in enumerate(value.dims):
        missing = size.size - tensor.shape[dim]
        if missing:
            shape = list(tensor.shape)
            shape[dim] = missing
            tensor = torch.cat([tensor, torch.zeros(shape, dtype=tensor.dtype)], dim)
    return tensor


def patches(image, height, width, extra):
    """Returns an image as rows of windows, after rows of zeros."""
    rows = F.unfold(image, (height, width), stride=(height, width)).transpose(1, 2)
    zeros = torch.zeros(rows.shape[0], extra, rows.shape[2], dtype=rows.dtype)
    return torch.cat([zeros, rows], 1)


def errors(module, example, targets=None):
    """Returns the errors of the loss and of the gradients of an imported module.

    The error of a gradient is relative to its largest element, or to a
    thousandth of the largest of all if that is larger, because the gradient of
    the bias of all keys is only rounding error. ``targets`` are for a module
    that returns logits.
    """
    module = module.double()
    exact_rotations(module)
    imported = from_torch(module, example, precision="fp32")
    program = in_double(imported.program)
    recorder = Recorder(program)
    output = recorder.run(*[one for one in example.values()])
    first = next(one for one in torch.utils._pytree.tree_leaves(output)
                 if isinstance(one, torch.Tensor))
    if targets is None:
        loss = first
    else:
        loss = F.cross_entropy(first.reshape(-1, first.shape[-1]), targets.reshape(-1))
    loss.backward()
    theirs = {name: parameter.grad for name, parameter
              in program.named_parameters(remove_duplicate=False)}
    values = dict(program.named_parameters(remove_duplicate=False))

    inputs, count = {}, None
    for op in imported.inputs:
        source, label = op.attributes["source"], op.label
        if label == "count":
            continue
        if isinstance(source, tuple):
            inputs[label] = patches(example["pixel_values"], *source[1:])
        elif isinstance(source, torch.Tensor):
            inputs[label] = source
        else:
            inputs[label] = targets if source == label else recorder.seen[source.name]
        shape = [size.size for size in op.results[0].dims]
        inputs[label] = inputs[label].reshape(shape)
    count = (inputs["targets"] >= 0).sum()
    parameters = {}
    for op in imported.parameters:
        tensor = op.source.of(values[op.source.name].detach())
        parameters[op.label] = padded(tensor, op.results[0]).clone().requires_grad_()
    ours = ir_in_torch.Model(imported.text).run(parameters, {**inputs, "count": count})
    ours.backward()

    largest = max(float(one.abs().max()) for one in theirs.values() if one is not None)
    worst = 0.0
    for op in imported.parameters:
        expected = padded(dataclasses.replace(op.source, added=0.0).of(
            theirs[op.source.name]), op.results[0])
        made = parameters[op.label].grad
        scale = max(float(expected.abs().max()), largest / 1000)
        worst = max(worst, float((made - expected).abs().max()) / scale)
    return abs(float(ours.detach()) - float(loss.detach())), worst, imported
