#!/usr/bin/env python3
"""Writes goldens/transformers-*.json. For every family whose weights are exchanged
each file has the tensors that a tiny model of `transformers` with random weights
saves, and its loss and gradient norm on the samples of one step. README.md says
more. The script needs transformers and safetensors beside PyTorch.
"""

import json
import pathlib
import random
import tempfile

import safetensors.torch
import torch
import transformers
from torch.nn import functional as F

from make_goldens import BATCH, HERE, draw_samples, draw_weights, text_of

CLASSES = {
    "gpt2": transformers.GPT2LMHeadModel,
    "gptj": transformers.GPTJForCausalLM,
    "llama": transformers.LlamaForCausalLM,
    "mistral": transformers.MistralForCausalLM,
    "qwen2": transformers.Qwen2ForCausalLM,
    "bert": transformers.BertForMaskedLM,
}


def golden_of(name):
    config = json.loads((HERE / f"{name}.json").read_text())
    length = config.get("n_positions") or config["max_position_embeddings"]
    dice = random.Random(f"transformers {name}")
    of_class = {key: value for key, value in config.items() if key != "model_type"}
    of_class["pad_token_id"] = None  # A padding row gets no gradient.
    model = CLASSES[name](CLASSES[name].config_class(**of_class, attn_implementation="eager"))
    model.double().eval()
    draw_weights(model, dice)
    samples = draw_samples(name, config, length, dice)
    ids, targets = (torch.tensor(samples[what]).view(BATCH, length)
                    for what in ("ids", "targets"))
    more = {}
    if "types" in samples:
        more["token_type_ids"] = torch.tensor(samples["types"]).view(BATCH, length)
    logits = model(input_ids=ids, **more).logits
    loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)
    loss.backward()
    norm = torch.nn.utils.get_total_norm(
        [w.grad for w in model.parameters() if w.grad is not None]).item()
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        state = safetensors.torch.load_file(pathlib.Path(folder) / "model.safetensors")
    tensors = {key: {"shape": list(value.shape), "elements": value.flatten().tolist()}
               for key, value in sorted(state.items())}
    return {"made_by": f"transformers {transformers.__version__}, PyTorch {torch.__version__}",
            "sequence": length, "global_batch": BATCH,
            "steps": [{**samples, "loss": loss.item(), "norm": norm}], "tensors": tensors}


def main():
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    for name in CLASSES:
        file = HERE / "goldens" / f"transformers-{name}.json"
        file.write_text(text_of(golden_of(name)) + "\n")
        print(file)


if __name__ == "__main__":
    main()
