#!/usr/bin/env python3
"""Imports modules of transformers, and writes docs/torch-models.md.

    bench/torch_modules.py [--write PAGE] [NAME ...]

For each module that mtplan imports, the loss and every gradient of the imported
graph are compared with PyTorch in double precision. The modules are tiny, have
random weights and need no network. The packages mtplan, torch and transformers must
be importable. Exits with 1 if an imported module fails or differs from PyTorch.
"""

import argparse
import importlib.metadata
import math
import pathlib
import re
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "python"))

import torch  # noqa: E402
import transformers  # noqa: E402

import mtplan  # noqa: E402
from mtplan._torch import example_of  # noqa: E402
from torch_parity import errors  # noqa: E402

LENGTH, WORDS = 16, 96
BOUND = 1e-10
OLD = {"n_layer": 2, "n_embd": 32, "n_head": 4, "n_positions": LENGTH,
       "vocab_size": WORDS}
WIDE = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**WIDE, "intermediate_size": 64, "vocab_size": WORDS,
        "max_position_embeddings": LENGTH, "pad_token_id": 0}
NEW = {**TEXT, "num_key_value_heads": 2}
HEADS = {**NEW, "head_dim": 8}
MOE = {**NEW, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
IMAGE = {**WIDE, "intermediate_size": 64, "image_size": 16, "patch_size": 4}
PAIR = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64, "decoder_ffn_dim": 64, "vocab_size": WORDS,
        "max_position_embeddings": LENGTH, "pad_token_id": 0,
        "decoder_start_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
FIVE = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2,
        "num_heads": 4, "vocab_size": WORDS, "n_positions": LENGTH,
        "decoder_start_token_id": 0, "pad_token_id": 0}
# Lists modules of transformers by kind, each with the fields of its config. The
# field "config" names the config's class, if the module's name does not.
MODULES = {
    "Decoders": {
        "GPT2LMHeadModel": OLD,
        "GPTJForCausalLM": {**OLD, "rotary_dim": 4},
        "GPTNeoForCausalLM": {
            "hidden_size": 32, "num_layers": 2, "num_heads": 4, "vocab_size": WORDS,
            "max_position_embeddings": LENGTH, "window_size": LENGTH,
            "attention_types": [[["global", "local"], 1]]},
        "GPTNeoXForCausalLM": TEXT,
        "GPTBigCodeForCausalLM": OLD,
        "OPTForCausalLM": {**TEXT, "ffn_dim": 64, "word_embed_proj_dim": 32},
        "BloomForCausalLM": {"hidden_size": 32, "n_layer": 2, "n_head": 4,
                             "vocab_size": WORDS},
        "FalconForCausalLM": {**TEXT, "multi_query": True},
        "MptForCausalLM": {"d_model": 32, "n_layers": 2, "n_heads": 4,
                           "max_seq_len": LENGTH, "vocab_size": WORDS},
        "CodeGenForCausalLM": {**OLD, "rotary_dim": 4},
        "LlamaForCausalLM": NEW,
        "MistralForCausalLM": {**NEW, "sliding_window": None},
        "MixtralForCausalLM": {**NEW, "num_local_experts": 4},
        "Qwen2ForCausalLM": NEW,
        "Qwen2MoeForCausalLM": {**MOE, "shared_expert_intermediate_size": 32},
        "Qwen3ForCausalLM": HEADS,
        "Qwen3MoeForCausalLM": {**MOE, "head_dim": 8, "norm_topk_prob": True},
        "GemmaForCausalLM": HEADS,
        "Gemma2ForCausalLM": {**HEADS, "query_pre_attn_scalar": 8,
                              "sliding_window": LENGTH,
                              "attn_implementation": "eager"},
        "Gemma3ForCausalLM": {**HEADS, "query_pre_attn_scalar": 8,
                              "sliding_window": LENGTH, "config": "Gemma3TextConfig"},
        "PhiForCausalLM": NEW,
        "Phi3ForCausalLM": NEW,
        "StableLmForCausalLM": NEW,
        "OlmoForCausalLM": NEW,
        "Olmo2ForCausalLM": NEW,
        "OlmoeForCausalLM": {**NEW, "num_experts": 4, "num_experts_per_tok": 2},
        "Starcoder2ForCausalLM": {**NEW, "sliding_window": None},
        "CohereForCausalLM": NEW,
        "GraniteForCausalLM": NEW,
        "SmolLM3ForCausalLM": NEW,
        "MambaForCausalLM": {"hidden_size": 32, "num_hidden_layers": 2,
                             "vocab_size": WORDS},
    },
    "Encoders": {
        "BertForMaskedLM": TEXT,
        "RobertaForMaskedLM": {**TEXT, "max_position_embeddings": LENGTH + 2,
                               "pad_token_id": 1},
        "DistilBertForMaskedLM": {"dim": 32, "n_layers": 2, "n_heads": 4,
                                  "hidden_dim": 64, "vocab_size": WORDS,
                                  "max_position_embeddings": LENGTH},
        "AlbertForMaskedLM": {**TEXT, "embedding_size": 16},
        "ElectraForMaskedLM": {**TEXT, "embedding_size": 16},
        "MPNetForMaskedLM": {**TEXT, "max_position_embeddings": LENGTH + 2},
        "ModernBertForMaskedLM": TEXT,
        "DebertaV2ForMaskedLM": TEXT,
    },
    "Encoder-decoders": {
        "T5ForConditionalGeneration": FIVE,
        "MT5ForConditionalGeneration": FIVE,
        "BartForConditionalGeneration": PAIR,
        "PegasusForConditionalGeneration": PAIR,
        "MarianMTModel": PAIR,
    },
    "Vision": {
        "ViTForImageClassification": IMAGE,
        "DeiTForImageClassification": IMAGE,
        "BeitForImageClassification": IMAGE,
        "Dinov2ForImageClassification": IMAGE,
        "SwinForImageClassification": {
            "image_size": 16, "patch_size": 2, "embed_dim": 16, "depths": [1, 1],
            "num_heads": [2, 2], "window_size": 4},
        "CLIPModel": {"text_config": TEXT, "vision_config": IMAGE},
    },
    "Audio": {
        "Wav2Vec2ForSequenceClassification": {
            **TEXT, "conv_dim": [16], "conv_stride": [4], "conv_kernel": [8],
            "num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2},
        "WhisperForConditionalGeneration": {
            **PAIR, "max_source_positions": LENGTH, "num_mel_bins": 8},
        "ASTForAudioClassification": {**WIDE, "intermediate_size": 64,
                                      "max_length": 16, "num_mel_bins": 16,
                                      "patch_size": 4, "time_stride": 4,
                                      "frequency_stride": 4},
    },
}
HEADS_OF_MODELS = ("ForConditionalGeneration", "ForImageClassification", "ForMaskedLM",
                   "ForCausalLM", "LMHeadModel", "MTModel",
                   "ForSequenceClassification", "ForAudioClassification", "Model")
# Products that are not linear layers are imported as einsums.
EINSUM = re.compile(r'mtp\.einsum "([^"]*)" "([^"]*)".* loc\("([^"]*)":(\d+):0\)')
LINEAR = re.compile(r"(b?s?i,(io|oi|iv|vi|ie)->b?s?[ove]|ebci,eio->ebco)$")


def module_of(name, fields):
    """Returns a tiny module with random weights."""
    family = next(name.removesuffix(end) for end in HEADS_OF_MODELS
                  if name.endswith(end))
    fields = dict(fields)
    config = getattr(transformers, fields.pop("config", family + "Config"))(**fields)
    torch.manual_seed(0)
    module = getattr(transformers, name)(config).eval()
    for parameter in module.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    return module


def example_for(module):
    """Returns example inputs with random values."""
    name = type(module).__name__
    ids = torch.randint(3, WORDS, (2, LENGTH))
    image = torch.randn(2, 3, 16, 16, dtype=torch.float64)
    if name == "CLIPModel":
        return {"input_ids": ids, "pixel_values": image, "return_loss": True}
    if name.startswith("Wav2Vec2"):
        return {"input_values": torch.randn(2, 128, dtype=torch.float64),
                "labels": torch.tensor([0, 1])}
    if name.startswith("Whisper"):
        return {"input_features": torch.randn(2, 8, 2 * LENGTH, dtype=torch.float64),
                "labels": ids}
    if name.startswith("AST"):
        return {"input_values": torch.randn(2, 16, 16, dtype=torch.float64),
                "labels": torch.tensor([0, 1])}
    made = example_of(module, LENGTH)
    return {key: image if one.dtype.is_floating_point else
            torch.randint(0 if one.dim() == 1 or key == "token_type_ids" else 3,
                          2 if one.dim() == 1 or key == "token_type_ids" else WORDS,
                          one.shape) for key, one in made.items()}


def short(text):
    """Returns the first clause of a message, for a table. The path of a file that
    the message names is reduced to the file's name."""
    text = re.sub(r"\S*/([\w.]+:\d+)", r"\1", text.splitlines()[0])
    place, _, reason = text.rpartition(".py:")
    line, colon, reason = reason.partition(": ")
    text = f"{place}.py:{line}: " if place and colon else ""
    return text + re.split(r"; supported: |; the nearest|: the nearest", reason or line)[0]


def fallbacks(imported):
    """Lists the places of a module that are imported as general operators."""
    found = {}
    for label, equation, file, line in EINSUM.findall(imported.text):
        if not LINEAR.match(equation):
            place = f"{pathlib.Path(file).name}:{line}"
            found.setdefault(f"einsum `{equation}`", set()).add(place)
    for op in imported.inputs:
        if op.label.startswith(("positions", "computed_ids")):
            place = f"{pathlib.Path(op.origin.file).name}:{op.origin.line}"
            found.setdefault(f"input `{op.label}`", set()).add(place)
    parts = [f"{what} ({', '.join(sorted(places))})" for what, places in found.items()]
    return "; ".join(parts + [note.partition(":")[0] + ": padding_idx"
                              for note in imported.notes])


def row(name, fields):
    """Returns the outcome, the fallbacks or the reason of a failure, and the error."""
    try:
        module = module_of(name, fields)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss, gradient, imported = errors(module, example_for(module))
    except mtplan.Error as refusal:
        return "refuses", short(str(refusal)), 0.0
    except (RuntimeError, KeyError, AttributeError, TypeError, ValueError) as fault:
        # The comparison computes values, and may fail after an import.
        return "fails", short(f"{type(fault).__name__}: {fault}"), math.inf
    return "imports", fallbacks(imported), max(loss, gradient)


HEAD = """\
# Modules of transformers

The table lists which modules of transformers {version} `mtplan.plan` imports, with PyTorch {torch}. The modules are those of
tiny configs. `bench/torch_modules.py`, which writes this page, and the tests compare the loss and every gradient of an
imported graph with PyTorch's, to {bound:g} in double precision. *Falls back* names what is imported by general operators, which are
sharded only where every operator that reads them allows it: products that are not linear layers become einsums, and indices
that PyTorch computes become inputs. [python.md](python.md#plan-a-module) lists what is supported.

{imports} of {all} modules import, and {refuses} are refused.

| module | | falls back, or why it is refused |
| --- | --- | --- |
"""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", metavar="PAGE")
    parser.add_argument("name", nargs="*")
    given = parser.parse_args()
    transformers.logging.set_verbosity_error()
    lines, counts, wrong = [], {"imports": 0, "refuses": 0, "fails": 0}, 0
    for kind, modules in MODULES.items():
        lines.append(f"| **{kind}** | | |")
        for name, fields in modules.items():
            if given.name and name not in given.name:
                continue
            outcome, reason, error = row(name, fields)
            wrong += not error < BOUND
            counts[outcome] += 1
            lines.append(f"| {name} | {outcome} | {reason} |")
            print(lines[-1], f"{error:.0e}" if error else "", flush=True)
    if given.write:
        page = HEAD.format(version=importlib.metadata.version("transformers"),
                           torch=torch.__version__.partition("+")[0], bound=BOUND,
                           all=sum(counts.values()), **counts)
        pathlib.Path(given.write).write_text(page + "\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
