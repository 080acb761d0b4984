"""Tests modules of PyTorch as models. Most tests are skipped without torch."""

import importlib.util
import re
import subprocess
import sys
import unittest

import mtplan
from helpers import ROOT

HAS_TORCH = importlib.util.find_spec("torch") is not None
HAS_TRANSFORMERS = HAS_TORCH and importlib.util.find_spec("transformers") is not None
LENGTH, CLASSES = 32, 500
# Transformers may warn about the defaults of other fields.
DECODER = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 3,
           "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": CLASSES,
           "max_position_embeddings": LENGTH}
ENCODER = {"hidden_size": 64, "intermediate_size": 256, "num_hidden_layers": 3,
           "num_attention_heads": 8}
# No token is dropped with this capacity, experts / chosen experts, and Transformers
# leaves the balance loss out by default.
EXPERTS = {"capacity_factor": 2.0, "router_aux_loss_coef": 0.0}
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", "GPT2Config", {
        "n_layer": 3, "n_embd": 64, "n_head": 8, "n_positions": LENGTH,
        "vocab_size": CLASSES}),
    "gptj": ("GPTJForCausalLM", "GPTJConfig", {
        "n_layer": 3, "n_embd": 64, "n_head": 8, "n_positions": LENGTH,
        "vocab_size": CLASSES, "rotary_dim": 4}),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", {
        **ENCODER, "vocab_size": CLASSES, "max_position_embeddings": LENGTH,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0,
                            "partial_rotary_factor": 0.5}}),
    "llama": ("LlamaForCausalLM", "LlamaConfig", DECODER),
    "mistral": ("MistralForCausalLM", "MistralConfig", {
        **DECODER, "sliding_window": None}),
    "qwen2": ("Qwen2ForCausalLM", "Qwen2Config", DECODER),
    "bert": ("BertForMaskedLM", "BertConfig", {
        **ENCODER, "vocab_size": CLASSES, "max_position_embeddings": LENGTH}),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {
        **DECODER, "head_dim": 8, "query_pre_attn_scalar": 8,
        "sliding_window": LENGTH, "attn_implementation": "eager"}),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", {**DECODER, "pad_token_id": 0}),
    "vit": ("ViTForImageClassification", "ViTConfig", {
        **ENCODER, "image_size": 32, "patch_size": 8}),
    "t5": ("T5ForConditionalGeneration", "T5Config", {
        "vocab_size": CLASSES, "d_model": 64, "d_kv": 8, "d_ff": 256,
        "num_layers": 3, "num_decoder_layers": 3, "num_heads": 8,
        "n_positions": LENGTH, "decoder_start_token_id": 0, "pad_token_id": 0}),
    "qwen3": ("Qwen3ForCausalLM", "Qwen3Config", {**DECODER, "head_dim": 8}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {
        **DECODER, **EXPERTS, "num_local_experts": 4}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", "Qwen2MoeConfig", {
        **DECODER, **EXPERTS, "num_experts": 4, "num_experts_per_tok": 2,
        "moe_intermediate_size": 48, "shared_expert_intermediate_size": 96}),
}
# phi3 and qwen3 have no family of their own in mtplan.
PLANNED = [name for name in FAMILIES if name not in ("phi3", "qwen3")]


def family(name):
    """Returns a tiny module of transformers."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    module, config, fields = FAMILIES[name]
    torch.manual_seed(0)
    return getattr(transformers, module)(getattr(transformers, config)(**fields))


def example(module):
    """Returns random example inputs, with some tokens without a target."""
    import torch
    from mtplan._torch import example_of
    made = {}
    for key, one in example_of(module, LENGTH).items():
        below = 2 if key == "token_type_ids" or one.dim() == 1 else CLASSES
        # Some models pad with token 0, whose row then gets no gradient.
        least = 1 if key == "input_ids" else 0
        made[key] = (torch.randn(one.shape, dtype=torch.float64)
                     if one.dtype.is_floating_point
                     else torch.randint(least, below, one.shape))
    if made["labels"].dim() == 2:
        made["labels"][0, 3:6] = -100
    return made


def shaken(module):
    """Returns a module in eval mode, with noise in gains and biases, too."""
    import torch
    for parameter in module.parameters():
        parameter.data.add_(0.05 * torch.randn_like(parameter))
    return module.eval()


@unittest.skipUnless(HAS_TRANSFORMERS, "no transformers")
class Families(unittest.TestCase):
    """Checks that imported modules of transformers compute the same as in
    PyTorch, and cost the same as their configs."""

    def test_loss_and_gradients_are_pytorchs(self):
        from torch_parity import errors
        for name in FAMILIES:
            with self.subTest(name):
                module = shaken(family(name))
                loss, gradient, _ = errors(module, example(module))
                self.assertLess(loss, 1e-10)
                self.assertLess(gradient, 1e-10)

    def test_both_ways_of_attention_are_one_graph(self):
        for name in ("gpt2", "llama", "bert", "t5"):
            with self.subTest(name):
                texts = []
                for way in ("sdpa", "eager"):
                    module = family(name).eval()
                    module.set_attn_implementation(way)
                    text = mtplan.from_torch(module, seq=LENGTH).text
                    texts.append(sorted(re.findall(r'mtp\.\w+ "[^"]*"', text)))
                self.assertEqual(*texts)

    def test_the_plan_is_that_of_the_config(self):
        for name in PLANNED:
            with self.subTest(name):
                module, at = family(name), {"gpus": 4, "global_batch": 16}
                if name not in ("vit", "t5"):
                    at["seq"] = LENGTH
                one = mtplan.plan(module, **at)
                other = mtplan.plan(module.config, **at)
                ours, theirs = (plan._report.model for plan in (one, other))
                self.assertEqual(ours.family, "mlir")
                self.assertEqual(ours.parameters, theirs.parameters)
                self.assertEqual(ours.layers, theirs.layers)
                if name != "qwen2_moe":  # computes its shared expert last
                    self.assertEqual(one.memory.by_class, other.memory.by_class)
                self.assertEqual(one.prediction.mfu, other.prediction.mfu)
                self.assertEqual(one.step_time, other.step_time)

    def test_normalised_heads_are_split(self):
        plan = mtplan.plan(family("qwen3"), gpus=2, tp=2, global_batch=4, seq=LENGTH)
        shapes = {op.label: op.local_shape for run in plan.layers for op in run.ops}
        self.assertEqual(shapes["model.layers.*.self_attn.q_norm"][-1], 32)

    def test_a_row_of_padding_is_noted(self):
        with self.assertWarnsRegex(UserWarning, "row 0 .padding_idx. no gradient"):
            imported = mtplan.from_torch(family("gemma2"), seq=LENGTH)
        self.assertEqual(len(imported.notes), 1)

    def test_weights_may_be_on_meta(self):
        import torch
        with torch.device("meta"):
            module = family("llama")
        here = family("llama")
        self.assertEqual(mtplan.from_torch(module, seq=LENGTH).text,
                         mtplan.from_torch(here, seq=LENGTH).text)

    def test_a_scaled_rotation_is_refused(self):
        import transformers
        config = transformers.LlamaConfig(**DECODER, rope_parameters={
            "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0,
            "low_freq_factor": 1.0, "high_freq_factor": 4.0,
            "original_max_position_embeddings": 16})
        with self.assertRaisesRegex(mtplan.Error, "rotations that"):
            mtplan.from_torch(transformers.LlamaForCausalLM(config), seq=LENGTH)

    def test_a_sliding_window_is_refused_where_it_hides(self):
        import transformers
        config = transformers.MistralConfig(**DECODER, sliding_window=8)
        with self.assertRaisesRegex(mtplan.Error, "sliding window of 8"):
            mtplan.from_torch(transformers.MistralForCausalLM(config), seq=LENGTH)

    def test_mtrun_computes_what_the_module_does(self):
        import torch_engine
        for name in ("gpt2", "llama", "gemma2", "phi3", "qwen3", "gptj", "gpt_neox",
                     "mixtral"):
            with self.subTest(name):
                module = family(name).eval()
                loss, gradient = torch_engine.errors(
                    module, lambda ids, of=module: of(input_ids=ids).logits,
                    CLASSES - 1)
                self.assertLess(loss, 1e-5)
                self.assertLess(gradient, 2e-5)


@unittest.skipUnless(HAS_TORCH, "no torch")
class Own(unittest.TestCase):
    """Checks models that no family describes."""

    def check(self, module, inputs, targets):
        from torch_parity import errors
        loss, gradient, imported = errors(shaken(module), inputs, targets)
        self.assertLess(loss, 1e-10)
        self.assertLess(gradient, 1e-10)
        self.assertTrue(mtplan.plan(imported, gpus=4, global_batch=16).memory.fits)
        return imported.text

    def test_mixer(self):
        import torch
        import torch_models
        image = torch.randn(2, 3, 16, 16, dtype=torch.float64)
        text = self.check(torch_models.Mixer(), {"pixel_values": image},
                          torch.tensor([3, 9]))
        self.assertIn("mtp.segment @layers repeat 3", text)

    def test_parallel_decoder(self):
        import torch
        import torch_models
        ids = torch.randint(0, 50, (2, 16))
        text = self.check(torch_models.ParallelDecoder(), {"ids": ids},
                          ids.roll(-1, 1))
        self.assertIn("mtp.segment @blocks repeat 4", text)
        self.assertIn("gelu_tanh", text)

    def test_two_towers_with_one_encoder(self):
        import torch
        import torch_models
        one, other = (torch.randint(0, 40, (2, 16)) for _ in range(2))
        text = self.check(torch_models.TwoTowers(), {"first": one, "second": other},
                          torch.tensor([0, 2]))
        self.assertEqual(text.count("repeat 3"), 2)
        self.assertIn("mtp.swiglu", text)

    def test_a_wrong_graph_is_noticed(self):
        import torch
        import torch_models
        import ir_in_torch
        import torch_parity
        ids = torch.randint(0, 50, (2, 16))
        wrong = {"gelu_tanh": "gelu", "causal = true": "causal = false",
                 "repeat 4": "repeat 3"}
        for old, new in wrong.items():
            class Changed(ir_in_torch.Model):
                def __init__(self, text, old=old, new=new):
                    super().__init__(text.replace(old, new))
            right, torch_parity.ir_in_torch.Model = ir_in_torch.Model, Changed
            try:
                with self.subTest(old), self.assertRaises((AssertionError, TypeError)):
                    self.check(torch_models.ParallelDecoder(), {"ids": ids},
                               ids.roll(-1, 1))
            finally:
                torch_parity.ir_in_torch.Model = right


@unittest.skipUnless(HAS_TORCH, "no torch")
class Refusals(unittest.TestCase):
    """Checks that models are refused if a part of them cannot be imported."""

    def refused(self, module, inputs, reason):
        with self.assertRaises(mtplan.Error) as raised:
            mtplan.from_torch(module, inputs)
        self.assertIn(reason, str(raised.exception))

    def of(self, function):
        import torch

        class Module(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(8, 8)

            def forward(self, x):
                return function(self.layer(x))
        return Module()

    def test_operators(self):
        import torch
        x = torch.randn(2, 4, 8)
        for function, reason in {
                lambda y: y.cumsum(1): "cumsum is not known",
                lambda y: y.mean(2): "a mean over positions",
                lambda y: y.detach(): "no gradient",
                lambda y: torch.exp(y): "no known activation",
                lambda y: y + torch.rand(8): "random numbers",
                lambda y: y.square().sum(): "sum is not known",
                lambda y: y * torch.arange(8.0): "times a constant tensor",
                lambda y: y[:, 1:3]: "no range of the columns",
                lambda y: y[:, [0, 2]]: "a lookup by indices",
                lambda y: torch.cat([y, y], 2): "that no linear layer reads",
                lambda y: y @ y.transpose(1, 2): "no attention",
                lambda y: torch.cat([y, y], 1): "a concatenation"}.items():
            with self.subTest(reason):
                self.refused(self.of(function), (x,), reason)

    def test_the_line_is_named(self):
        import torch
        with self.assertRaisesRegex(mtplan.Error, r"torch_test\.py:\d+: "):
            mtplan.from_torch(self.of(lambda y: y.cumsum(1)), (torch.randn(2, 4, 8),))

    def test_a_biased_mixer(self):
        import torch
        import torch_models
        self.refused(torch_models.Mixer(biased=True),
                     (torch.randn(2, 3, 16, 16),), "a bias along dimension 1")

    def test_a_frozen_parameter(self):
        import torch
        module = self.of(torch.relu)
        module.layer.bias.requires_grad = False
        self.refused(module, (torch.randn(2, 4, 8),), "layer.bias is frozen")

    def test_a_mask_of_the_data(self):
        import torch

        class Masked(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.q = torch.nn.Linear(8, 8)

            def forward(self, x, mask):
                y = self.q(x).view(2, 4, 2, 4).transpose(1, 2)
                return torch.nn.functional.scaled_dot_product_attention(
                    y, y, y, attn_mask=mask[:, None, None, :].bool())
        self.refused(Masked(), (torch.randn(2, 4, 8), torch.ones(2, 4).long()),
                     "follows from the data")

    def test_arguments(self):
        import torch
        module, x = self.of(torch.relu), (torch.randn(2, 4, 8),)
        with self.assertRaisesRegex(mtplan.Error, "example_inputs is missing"):
            mtplan.plan(module)
        with self.assertRaisesRegex(mtplan.Error, "has 4 positions, and not 5"):
            mtplan.plan(module, x, seq=5)
        with self.assertRaisesRegex(TypeError, "example_inputs is for"):
            mtplan.plan("examples/tiny-gpt2.json", x)
        rows = mtplan.sweep(module, "tp", example_inputs=x, gpus=2, global_batch=4)
        self.assertEqual([row.tp for row in rows], [1, 2])


class WithoutTorch(unittest.TestCase):
    """Checks that the package does not import torch by itself."""

    def test_import(self):
        ran = subprocess.run(
            [sys.executable, "-c", "import sys, mtplan; mtplan.plan("
             "'examples/tiny-gpt2.json', gpus=2); assert 'torch' not in sys.modules"],
            check=False, capture_output=True, text=True, cwd=ROOT)
        self.assertEqual(ran.returncode, 0, ran.stderr)


if __name__ == "__main__":
    unittest.main()
