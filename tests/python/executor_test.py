"""Tests that a search for PyTorch finds plans that PyTorch can run."""

import unittest

import mtplan
from mtplan._expressible import judged

LLAMA = {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 8,
         "num_key_value_heads": 4, "num_hidden_layers": 4,
         "intermediate_size": 192, "vocab_size": 512,
         "max_position_embeddings": 32}
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 8, "n_layer": 4,
        "vocab_size": 512, "n_positions": 32}
BERT = {**LLAMA, "model_type": "bert"}


def search(model=LLAMA, **keywords):
    return mtplan.plan(model, gpus=4, hardware="cpu", seq=32, **{
        "executor": "pytorch", "global_batch": 8, **keywords})


class Executor(unittest.TestCase):
    """Checks that executor="pytorch" gives plans that parallelize accepts."""

    def test_plans_can_be_run(self):
        for model in (LLAMA, GPT2, BERT):
            for keywords in ({}, {"tp": 2}, {"tp": 4}, {"tp": 2, "pp": 2}):
                with self.subTest(model["model_type"], **keywords):
                    self.assertEqual(judged(search(model, **keywords)).faults,
                                     [])

    def test_without_it_some_cannot(self):
        plan = mtplan.plan(LLAMA, gpus=4, hardware="cpu", seq=32, tp=4,
                           global_batch=8)
        self.assertTrue(judged(plan).faults)

    def test_the_faster_residual_stream_is_taken(self):
        times = [search(tp=4, sequence_parallel=divided).step_time
                 for divided in (False, True)]
        self.assertEqual(search(tp=4).step_time, min(times))

    def test_notes_name_the_keywords(self):
        self.assertEqual(search(dp=4, cp=[1, 2], tiles=1).notes[-1],
                         'executor "pytorch" set cp=1, ep=1, '
                         "offload='none', zero_ranks='all'")
        self.assertRegex(str(search(tp=4)), "note: executor .*pins=")

    def refused(self, words, **keywords):
        with self.assertRaisesRegex(mtplan.Error, words):
            search(**keywords)

    def test_contradictions(self):
        self.refused('cp=2 contradicts executor="pytorch", which takes cp=1',
                     cp=2)
        self.refused("pins: wte=column contradicts .* takes wte=vocab", tp=4,
                     pins=["wte=column"])
        self.refused("schedule='zero-bubble' contradicts .*'1f1b'", pp=2, dp=2,
                     schedule="zero-bubble", zero=2)
        self.refused('must be "pytorch"', executor="jax")

    def test_schedules_with_few_micro_batches(self):
        plan = search(pp=4, micro_batch=4, schedule=["1f1b", "gpipe"])
        self.assertEqual(plan.parallelism.schedule, "gpipe")

    def test_zero_bubble_with_little_zero(self):
        plan = search(pp=2, dp=2, zero=[1, 2], schedule="zero-bubble")
        self.assertEqual(plan.parallelism.zero, 1)

    def test_price(self):
        keywords = {"gpus": 4, "hardware": "dgx-h100", "executor": "pytorch"}
        plan = mtplan.price(
            LLAMA, megatron_flags="--tensor-model-parallel-size 4 --bf16 "
            "--micro-batch-size 1 --global-batch-size 8", **keywords)
        self.assertEqual(judged(plan).faults, [])
        with self.assertRaisesRegex(mtplan.Error, "^cp 2: "):
            mtplan.price(
                LLAMA, megatron_flags="--context-parallel-size 2 --bf16 "
                "--micro-batch-size 1 --global-batch-size 8", **keywords)

    def test_sweep(self):
        rows = mtplan.sweep(LLAMA, over=["tp"], gpus=4, hardware="cpu", seq=32,
                            global_batch=8, executor="pytorch")
        for row in rows:
            with self.subTest(tp=row.tp):
                self.assertEqual(row.step_time_s, search(tp=row.tp).step_time)
                self.assertEqual(row.plan, search(tp=row.tp).summary())


if __name__ == "__main__":
    unittest.main()
