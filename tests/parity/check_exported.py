#!/usr/bin/env python3
"""check_exported.py FOLDER: checks that Transformers reads the weights that
`mtrun ckpt convert` writes, and computes the same logits and losses from them
as mtrun. FOLDER has mtplan and mtrun. README.md says what is compared.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

import torch
import transformers
from torch.nn import functional as F

from make_goldens import HERE
from make_transformers_goldens import CLASSES

FILES = HERE / "files"
# Bounds the difference of logits: builds of PyTorch add in different orders.
BOUND = 1e-5
MODELS = ["gpt2", "gpt2-llmc", "gptj", "llama", "llama-biased", "llama-deep", "mistral",
          "qwen2", "qwen2-tied", "bert"]
LENGTH, PLAN = 8, ["--hardware", "cpu", "--seq", "8", "--global-batch", "4", "--gpus", "2"]
SENTENCE = [3, 1, 4, 1, 5, 9, 2, 6]  # repeated, so that all samples are equal


class Check:
    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.worst, self.good = 0.0, True

    def run(self, program, *arguments):
        done = subprocess.run([self.programs / program, *map(str, arguments)], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.folder)
        if done.returncode != 0:
            raise RuntimeError(f"{program} {arguments}: {done.stdout}")

    def near(self, what, made, expected):
        apart = (made - expected).abs().max().item() / expected.abs().max().item()
        self.worst = max(self.worst, apart)
        if not apart <= BOUND:
            self.good = False
            print(f"  {what}: {apart:.1e} of the largest apart, {BOUND:.0e} allowed")

    def loaded(self, what, folder):
        """Returns the model that Transformers reads, which must use every tensor."""
        family = json.loads((folder / "config.json").read_text())["model_type"]
        model, told = CLASSES[family].from_pretrained(
            folder, attn_implementation="eager", output_loading_info=True)
        for key, names in told.items():
            if names:
                self.good = False
                print(f"  {what}: {key}: {sorted(names)}")
        return model.eval()

    def exported(self, name, kept, more):
        """Exports a checkpoint with the configuration that Transformers needs."""
        out = self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        self.run("mtrun", "ckpt", "convert", kept, out, "--to", "huggingface", *more)
        if not (out / "config.json").exists():
            shutil.copy(FILES / name / "config.json", out)
        return out

    def trained(self, name, kept, *settings):
        """Trains three steps from imported weights and returns the log."""
        shutil.rmtree(self.folder / kept, ignore_errors=True)
        log = self.folder / "log"
        log.unlink(missing_ok=True)
        self.run("mtrun", "plan", "--data", "tokens", "--valid", "sentence",
                 "--format", "uint16", "--weights", "given", "--checkpoint", kept,
                 "--steps", 3, "--metrics", log, *settings)
        return [json.loads(line) for line in log.read_text().splitlines()]

    def model(self, name):
        for one in ("plan", "given"):
            shutil.rmtree(self.folder / one, ignore_errors=True)
        given = FILES / name
        file = given / "model.bin"  # llm.c's format
        self.run("mtplan", given / "config.json", *PLAN, "--tp", 2, "-o", "plan")
        self.run("mtrun", "ckpt", "convert", file if file.exists() else given, "given")
        golden = FILES / (name if (FILES / name / "logits.json").exists() else name.split("-")[0])
        golden = json.loads((golden / "logits.json").read_text())
        inputs = {"input_ids": torch.tensor(golden["ids"]).view(-1, LENGTH)}
        if "types" in golden:
            inputs["token_type_ids"] = torch.tensor(golden["types"]).view(-1, LENGTH)
        expected = torch.tensor(golden["logits"]).view(len(inputs["input_ids"]), LENGTH, -1)

        # Weights are exported as imported, and after steps that change nothing,
        # in the default layout, in shards and in the layout of the files.
        self.trained(name, "kept", "--lr", 1e-30)
        ways = {"as it came": ("given", []), "usual": ("kept", []),
                "shards": ("kept", ["--shard-bytes", 3000])}
        if not file.exists():
            ways["like the files"] = ("kept", ["--like", given])
        for way, (kept, more) in ways.items():
            what = f"{name}, {way}"
            model = self.loaded(what, self.exported(name, kept, more))
            with torch.no_grad():
                self.near(what, model(**inputs).logits, expected)
        if name == "bert":  # BERT's hidden tokens are random.
            return
        said = self.trained(name, "kept", "--lr", 0.02)[-1]["validation_loss"]
        model = self.loaded(name, self.exported(name, "kept", []))
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([SENTENCE])).logits[0]
        loss = F.cross_entropy(logits, torch.tensor(SENTENCE[1:] + SENTENCE[:1]))
        self.near(f"{name}, loss after training", loss, torch.tensor(said))


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for file, tokens in ("tokens", [i * i % 11 for i in range(4000)]), (
                "sentence", SENTENCE * 200):
            (folder / file).write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        for name in MODELS:
            check = Check(pathlib.Path(sys.argv[1]).resolve(), folder)
            check.model(name)
            print(f"{name}: {check.worst:.1e} of {BOUND:.0e} allowed")
            good &= check.good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
