#!/usr/bin/env python3
"""Writes files/: tiny models with random weights in current and older file formats
of other software, with the logits that Transformers computes from each. README.md
lists the folders. The script needs transformers and safetensors beside PyTorch,
and equal versions write equal bytes.
"""

import json
import random
import shutil
import struct

import safetensors.torch
import torch
import transformers

from make_goldens import HERE, draw_weights, text_of
from make_transformers_goldens import CLASSES

FILES = HERE / "files"
ROWS, LENGTH = 4, 8
BOUND = 1e-6  # single against double precision, relative to the largest logit

GPT = {"n_layer": 2, "n_positions": 10, "vocab_size": 13, "attn_pdrop": 0.0,
       "embd_pdrop": 0.0, "resid_pdrop": 0.0}
LLAMA = {"num_hidden_layers": 2, "hidden_size": 16, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 12, "vocab_size": 13,
         "max_position_embeddings": 10}

# Each model has a family, a configuration and a type of weights. Sizes that
# could be confused with each other differ.
MODELS = {
    "gpt2": ("gpt2", {**GPT, "n_embd": 8, "n_head": 2}, torch.float32),
    "gpt2-f16": ("gpt2", {**GPT, "n_embd": 8, "n_head": 2}, torch.float16),
    "gpt2-bf16": ("gpt2", {**GPT, "n_embd": 8, "n_head": 2}, torch.bfloat16),
    "gptj": ("gptj", {**GPT, "n_embd": 16, "n_head": 2, "n_inner": 12, "rotary_dim": 4},
             torch.float32),
    "llama": ("llama", {**LLAMA, "rope_theta": 500.0}, torch.float32),
    "llama-bf16": ("llama", {**LLAMA, "rope_theta": 500.0}, torch.bfloat16),
    "llama-biased": ("llama", {**LLAMA, "attention_bias": True, "mlp_bias": True},
                     torch.float32),
    # There are twelve layers, so that layer 10 sorts before layer 2 by name.
    "llama-deep": ("llama", {**LLAMA, "num_hidden_layers": 12, "hidden_size": 4,
                             "num_attention_heads": 2, "head_dim": 4,
                             "intermediate_size": 6}, torch.float32),
    "llama-older": ("llama", {**LLAMA, "num_attention_heads": 2, "num_key_value_heads": 2},
                    torch.float32),
    "mistral": ("mistral", {**LLAMA, "hidden_size": 12, "head_dim": 4, "sliding_window": 10},
                torch.float32),
    "qwen2": ("qwen2", {**LLAMA, "tie_word_embeddings": False}, torch.float32),
    "qwen2-tied": ("qwen2", {**LLAMA, "tie_word_embeddings": True}, torch.float32),
    "bert": ("bert", {"num_hidden_layers": 2, "hidden_size": 8, "num_attention_heads": 2,
                      "intermediate_size": 12, "max_position_embeddings": 10,
                      "type_vocab_size": 2, "vocab_size": 13, "hidden_dropout_prob": 0.0,
                      "attention_probs_dropout_prob": 0.0}, torch.float32),
}

# Holds the configurations that came with the older files.
OLDER_CONFIGS = {
    "gpt2": {"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
             "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "gpt2",
             "n_ctx": 10, "n_embd": 8, "n_head": 2, **GPT},
    "gptj": {"activation_function": "gelu_new", "architectures": ["GPTJForCausalLM"],
             "layer_norm_epsilon": 1e-05, "model_type": "gptj", "n_embd": 16, "n_head": 2,
             "n_inner": 12, "rotary": True, "rotary_dim": 4, "scale_attn_weights": True,
             "tie_word_embeddings": False, "transformers_version": "4.10.0.dev0", **GPT},
    "llama": {"architectures": ["LlamaForCausalLM"], "hidden_act": "silu", "hidden_size": 16,
              "intermediate_size": 12, "max_position_embeddings": 10, "model_type": "llama",
              "num_attention_heads": 2, "num_hidden_layers": 2, "pretraining_tp": 1,
              "rms_norm_eps": 1e-06, "rope_scaling": None, "tie_word_embeddings": False,
              "torch_dtype": "float32", "transformers_version": "4.31.0", "vocab_size": 13},
    "bert": {"architectures": ["BertForMaskedLM"], "attention_probs_dropout_prob": 0.0,
             "gradient_checkpointing": False, "hidden_act": "gelu",
             "hidden_dropout_prob": 0.0, "hidden_size": 8, "intermediate_size": 12,
             "layer_norm_eps": 1e-12, "max_position_embeddings": 10, "model_type": "bert",
             "num_attention_heads": 2, "num_hidden_layers": 2, "pad_token_id": 0,
             "position_embedding_type": "absolute", "type_vocab_size": 2, "vocab_size": 13},
}


def model_of(name):
    """Returns a model whose random weights depend on family and shape, not on type."""
    family, settings, kind = MODELS[name]
    model = CLASSES[family](CLASSES[family].config_class(**settings,
                                                         attn_implementation="eager"))
    draw_weights(model, random.Random(f"{family} {sorted(settings.items())}"), 0.4)
    return model.to(kind).eval()


def emptied(name):
    folder = FILES / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def save(name, model, **how):
    """Writes a folder as Transformers does."""
    folder = emptied(name)
    model.save_pretrained(folder, **how)
    (folder / "generation_config.json").unlink(missing_ok=True)
    return folder


def save_older(name, family, state):
    """Writes a folder as older versions or the model's authors did."""
    folder = emptied(name)
    (folder / "config.json").write_text(json.dumps(OLDER_CONFIGS[family], indent=2) + "\n")
    state = {key: value.clone().contiguous() for key, value in state.items()}
    safetensors.torch.save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def save_by_hand(name, model, metadata, order, padding):
    """Writes a valid file that the library safetensors would not write."""
    folder = emptied(name)
    model.config.save_pretrained(folder)
    state = {key: value for key, value in model.state_dict().items() if key != "lm_head.weight"}
    header, data = {}, b""
    if metadata is not None:
        header["__metadata__"] = metadata
    for key in order(state):
        body = struct.pack(f"<{state[key].numel()}f", *state[key].flatten().tolist())
        header[key] = {"dtype": "F32", "shape": list(state[key].shape),
                       "data_offsets": [len(data), len(data) + len(body)]}
        data += body
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % padding)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder


def save_llmc(name, model):
    """Writes the file of train_gpt2.py in karpathy/llm.c: 256 numbers, then each
    kind of weight for all layers, as [out, in]. Zeros pad the table of tokens."""
    folder = emptied(name)
    config = model.config
    config.save_pretrained(folder)
    state = {key.removeprefix("transformer."): value for key, value in
             model.state_dict().items()}
    whole = state["wte.weight"].dtype == torch.float32
    padded = -(-config.vocab_size // 128) * 128
    table = torch.zeros(padded, config.n_embd, dtype=state["wte.weight"].dtype)
    table[:config.vocab_size] = state["wte.weight"]
    header = [20240326, 3 if whole else 5, config.n_positions, config.vocab_size,
              config.n_layer, config.n_head, config.n_embd, padded]
    tensors = [table, state["wpe.weight"]]
    for kind in ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj"):
        for part in ("weight", "bias"):
            for layer in range(config.n_layer):
                tensor = state[f"h.{layer}.{kind}.{part}"]
                tensors.append(tensor.t() if tensor.dim() == 2 else tensor)
    tensors += [state["ln_f.weight"], state["ln_f.bias"]]
    bits = torch.int32 if whole else torch.int16
    with open(folder / "model.bin", "wb") as file:
        file.write(struct.pack("<256i", *header, *([0] * (256 - len(header)))))
        for tensor in tensors:
            flat = tensor.contiguous().view(bits).flatten().tolist()
            file.write(struct.pack(f"<{len(flat)}{'i' if whole else 'h'}", *flat))
    return folder


def with_masks(model, state, prefix, kind, score=None):
    """Adds the mask constants that older GPT-2 and GPT-J files contain."""
    length = model.config.n_positions
    for layer in range(model.config.n_layer):
        at = f"{prefix}h.{layer}.attn."
        state[at + "bias"] = torch.ones(length, length).tril().view(
            1, 1, length, length).to(kind)
        if score is not None:
            state[at + "masked_bias"] = torch.tensor(score)
    return state


def with_frequencies(model, state):
    """Adds the rotary frequencies that older Llama files contain in every layer."""
    heads = model.config.num_attention_heads
    size = model.config.hidden_size // heads
    turns = 1.0 / (10000.0 ** (torch.arange(0, size, 2).float() / size))
    for layer in range(model.config.num_hidden_layers):
        state[f"model.layers.{layer}.self_attn.rotary_emb.inv_freq"] = turns
    return state


def published_bert(model):
    """Renames norms as TensorFlow does and adds both heads of pretraining."""
    dice = random.Random("the other half")

    def drawn(*shape):
        values = [round(dice.uniform(-0.6, 0.6), 3) for _ in range(torch.Size(shape).numel())]
        return torch.tensor(values).view(shape)

    hidden = model.config.hidden_size
    state = {key.replace("LayerNorm.weight", "LayerNorm.gamma")
                .replace("LayerNorm.bias", "LayerNorm.beta"): value
             for key, value in model.state_dict().items()}
    state["bert.embeddings.position_ids"] = torch.arange(
        model.config.max_position_embeddings).view(1, -1)
    for module, rows in (("bert.pooler.dense", hidden), ("cls.seq_relationship", 2)):
        state[f"{module}.weight"], state[f"{module}.bias"] = drawn(rows, hidden), drawn(rows)
    return state


def folders():
    """Writes all folders and yields each with the name of its model."""
    models = {name: model_of(name) for name in MODELS}
    gpt2, llama, gptj = models["gpt2"], models["llama"], models["gptj"]
    for name, model in models.items():
        if name not in ("llama-older", "gpt2-bf16"):
            yield save(name, model), name
    yield save("gpt2-sharded", gpt2, max_shard_size="3KB"), "gpt2"
    yield save("llama-sharded", llama, max_shard_size="4KB"), "llama"

    state = dict(gpt2.state_dict())
    yield save_older("gpt2-head", "gpt2", state), "gpt2"
    del state["lm_head.weight"]
    yield save_older("gpt2-older", "gpt2",
                     with_masks(gpt2, dict(state), "transformer.", torch.uint8, -1e4)), "gpt2"
    bare = {key.removeprefix("transformer."): value for key, value in state.items()}
    yield save_older("gpt2-published", "gpt2",
                     with_masks(gpt2, bare, "", torch.float32)), "gpt2"
    yield save_older("gptj-older", "gptj",
                     with_masks(gptj, gptj.state_dict(), "transformer.", torch.bool, -1e9)), "gptj"
    older = models["llama-older"]
    yield save_older("llama-older", "llama",
                     with_frequencies(older, older.state_dict())), "llama-older"
    yield save_older("bert-published", "bert", published_bert(models["bert"])), "bert"

    yield save_by_hand("gpt2-order", gpt2, {"format": "pt"}, list, 8), "gpt2"
    yield save_by_hand("gpt2-metadata", gpt2, {"source": "drawn \u2713", "format": "pt",
                                               "license": "none"}, sorted, 8), "gpt2"
    yield save_by_hand("gpt2-bare", gpt2, None, sorted, 1), "gpt2"
    yield save_llmc("gpt2-llmc", gpt2), "gpt2"
    yield save_llmc("gpt2-llmc-bf16", models["gpt2-bf16"]), "gpt2-bf16"


def shortest(number):
    """Returns the shortest decimals that read back to this float."""
    for digits in range(5, 10):
        short = float(f"{number:.{digits}g}")
        if struct.pack("<f", short) == struct.pack("<f", number):
            return short
    raise ValueError(number)


def rows_of(name, model):
    dice = random.Random(f"rows of {name}")
    rows = {"ids": [dice.randrange(model.config.vocab_size) for _ in range(ROWS * LENGTH)]}
    if MODELS[name][0] == "bert":
        rows["types"] = [int(i % LENGTH >= 5) for i in range(ROWS * LENGTH)]
    return rows


def logits_of(model, rows):
    shaped = {"types": "token_type_ids", "ids": "input_ids"}
    with torch.no_grad():
        return model(**{shaped[what]: torch.tensor(numbers).view(ROWS, LENGTH)
                        for what, numbers in rows.items()}).logits


def loaded(folder, name):
    """Returns the model that Transformers reads and the tensors it ignores."""
    if (folder / "model.bin").exists():  # Transformers cannot read llm.c's files.
        return model_of(name).float(), []
    model, told = CLASSES[MODELS[name][0]].from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    if told["missing_keys"] or told["mismatched_keys"]:
        raise RuntimeError(f"{folder}: {told}")
    return model.eval(), sorted(told["unexpected_keys"])


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    shutil.rmtree(FILES, ignore_errors=True)
    made = {}
    for folder, name in folders():
        model, unused = loaded(folder, name)
        rows = rows_of(name, model)
        logits = logits_of(model, rows)
        apart = (logits_of(model.double(), rows) - logits).abs().max() / logits.abs().max()
        if apart > BOUND:
            raise RuntimeError(f"{folder}: float32 and float64 are {apart} apart")
        if name in made and not torch.equal(logits, made[name]):
            raise RuntimeError(f"{folder}: other logits than {name}")
        print(f"{folder.name}: {apart:.1e} from float64; not used: {unused}")
        if name not in made:
            made[name] = logits
            numbers = [shortest(x) for x in logits.flatten().tolist()]
            (folder / "logits.json").write_text(text_of(
                {"made_by": f"transformers {transformers.__version__}, PyTorch "
                            f"{torch.__version__}",
                 "sequence": LENGTH, "global_batch": ROWS, **rows, "logits": numbers}) + "\n")


if __name__ == "__main__":
    main()
