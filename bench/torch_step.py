#!/usr/bin/env python3
"""Times one rank's training step in PyTorch, for comparison with mtrun.

The script reads the Hugging Face configuration (gpt2, llama or qwen2) that mtplan
reads. It builds the model as is usual in PyTorch: one product for q, k and v,
F.linear, F.scaled_dot_product_attention, F.cross_entropy, fused AdamW and a clip of
the gradients' norm. The model is trained on random tokens, eagerly or with
--compile, on CPU cores or, with --device cuda, on a GPU. The script prints one JSON
object: the seconds of every step, tokens/s by the median step, and peak memory,
which on a GPU is the memory that PyTorch reserved.

--bf16 selects one of three ways of --precision bf16: `autocast` (f32 weights
under autocast, the usual way), `plain` (everything in bf16, even the moments,
so that it needs less memory than mtrun) and `master` (bf16 weights, AdamW on an
f32 copy, as in mtrun).
"""

import argparse
import contextlib
import json
import resource
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, hidden, heads, key_heads, biases, drop, rope):
        super().__init__()
        self.heads, self.key_heads, self.width = heads, key_heads, hidden // heads
        wide = (heads + 2 * key_heads) * self.width
        self.qkv = nn.Linear(hidden, wide, bias=biases[0])
        self.proj = nn.Linear(hidden, hidden, bias=biases[1])
        self.drop, self.rope = drop, rope

    def forward(self, x):
        b, s, h = x.shape
        parts = self.qkv(x).view(b, s, -1, self.width).transpose(1, 2)
        q, k, v = parts.split([self.heads, self.key_heads, self.key_heads], dim=1)
        if self.rope is not None:
            q, k = self.rotate(q), self.rotate(k)
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.drop, is_causal=True,
                                           enable_gqa=self.key_heads != self.heads)
        return self.proj(y.transpose(1, 2).reshape(b, s, h))

    def rotate(self, x):
        cos, sin = (t.to(x.dtype) for t in self.rope)
        left, right = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-right, left), dim=-1) * sin


class Gelu(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(hidden, inner), nn.Linear(inner, hidden)

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate="tanh"))


class Swiglu(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, norm, attention, mlp, drop):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = norm(), attention, norm(), mlp
        self.drop = drop

    def forward(self, x):
        x = x + F.dropout(self.attn(self.ln_1(x)), self.drop)
        return x + F.dropout(self.mlp(self.ln_2(x)), self.drop)


class Model(nn.Module):
    def __init__(self, config, sequence):
        super().__init__()
        gpt = config["model_type"] == "gpt2"
        biased = config["model_type"] in ("gpt2", "qwen2")  # whether q, k and v have biases
        hidden = config["n_embd" if gpt else "hidden_size"]
        heads = config["n_head" if gpt else "num_attention_heads"]
        inner = (config["n_inner"] or 4 * hidden) if gpt else config["intermediate_size"]
        layers = config["n_layer" if gpt else "num_hidden_layers"]
        self.vocabulary = config.get("padded_vocab_size") or config["vocab_size"]
        self.wte = nn.Embedding(self.vocabulary, hidden)
        self.wpe = nn.Embedding(config["n_positions"], hidden) if gpt else None
        self.drop = config["embd_pdrop"] if gpt else 0.0
        rope = None
        if gpt:
            norm = lambda: nn.LayerNorm(hidden, eps=config["layer_norm_epsilon"])
        else:
            norm = lambda: nn.RMSNorm(hidden, eps=config["rms_norm_eps"])
            width = hidden // heads
            turns = config["rope_theta"] ** (-torch.arange(0, width, 2) / width)
            angles = torch.outer(torch.arange(sequence).float(), turns).repeat(1, 2)
            rope = (angles.cos(), angles.sin())
        self.blocks = nn.ModuleList(
            Block(norm,
                  Attention(hidden, heads, heads if gpt else config["num_key_value_heads"],
                            (biased, gpt),
                            config["attn_pdrop" if gpt else "attention_dropout"],
                            rope),
                  Gelu(hidden, inner) if gpt else Swiglu(hidden, inner),
                  config["resid_pdrop"] if gpt else 0.0)
            for _ in range(layers))
        self.ln_f = norm()
        self.head = nn.Linear(hidden, self.vocabulary, bias=False)
        if gpt or config.get("tie_word_embeddings"):
            self.head.weight = self.wte.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.wte(ids)
        if self.wpe is not None:
            x = F.dropout(x + self.wpe.weight[:ids.shape[1]], self.drop)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        return F.cross_entropy(logits.view(-1, self.vocabulary), targets.view(-1))


def step_of(model, weights, masters, update, context):
    """Returns a function that trains on one batch and returns its loss."""
    def step(ids, targets):
        with context:
            loss = model(ids, targets)
        loss.backward()
        if masters is not weights:
            gradients = [weight.grad for weight in weights]
            for master in masters:
                if master.grad is None:
                    master.grad = torch.empty_like(master)
            torch._foreach_copy_([master.grad for master in masters], gradients)
            for weight in weights:
                weight.grad = None
        nn.utils.clip_grad_norm_(masters, 1.0)
        update.step()
        if masters is not weights:
            with torch.no_grad():
                torch._foreach_copy_(weights, masters)
        else:
            update.zero_grad(set_to_none=True)
        return loss
    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("config")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--bf16", choices=["autocast", "plain", "master"], default="autocast")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=256)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--warmup", type=int, default=1, help="steps that do not count")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--no-dropout", action="store_true")
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    torch.manual_seed(1)
    with open(flags.config, encoding="utf-8") as file:
        config = json.load(file)
    if flags.no_dropout:
        config.update({name: 0.0 for name in config if name.endswith(("pdrop", "dropout"))})
    cuda = flags.device == "cuda"
    with torch.device(flags.device):
        model = Model(config, flags.sequence)
    halves = flags.precision == "bf16" and flags.bf16 != "autocast"
    if halves:
        model = model.to(torch.bfloat16)
    weights = list(model.parameters())
    masters = weights
    if halves and flags.bf16 == "master":
        masters = [nn.Parameter(w.detach().float()) for w in weights]
    update = torch.optim.AdamW(
        [{"params": [w for w in masters if w.dim() > 1], "weight_decay": 0.1},
         {"params": [w for w in masters if w.dim() == 1], "weight_decay": 0.0}],
        lr=1e-4, betas=(0.9, 0.95), fused=True)
    context = contextlib.nullcontext()
    if flags.precision == "bf16" and flags.bf16 == "autocast":
        context = torch.autocast(flags.device, dtype=torch.bfloat16)
    step = step_of(torch.compile(model) if flags.compile else model, weights, masters, update,
                   context)
    finish = torch.cuda.synchronize if cuda else lambda: None
    seconds = []
    for _ in range(flags.warmup + flags.steps):
        tokens = torch.randint(config["vocab_size"], (flags.batch, flags.sequence + 1),
                               device=flags.device)
        ids, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
        finish()
        start = time.perf_counter()
        loss = step(ids, targets)
        finish()
        seconds.append(time.perf_counter() - start)
    seconds = seconds[flags.warmup:]  # warm-up steps allocate and compile
    peak = (torch.cuda.max_memory_reserved() if cuda
            else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
    print(json.dumps({
        "torch": torch.__version__,
        "loss": loss.item(),
        "parameters": sum(w.numel() for w in weights),
        "seconds": seconds,
        "tokens_per_second": flags.batch * flags.sequence / statistics.median(seconds),
        "peak_bytes": peak,
    }))


if __name__ == "__main__":
    main()
