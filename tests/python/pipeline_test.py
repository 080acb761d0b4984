"""Tests that PyTorch runs the stages and schedules of a plan.

parallelize_ranks.py runs the cases on four gloo ranks.
"""

import re
import types
import unittest

import mtplan
import parallelize_test
from mtplan._pipeline import SCHEDULES
from mtplan._parallelize import checked
from mtplan._plan_names import FAMILIES
from mtplan._stages import keep_stages, stage_of


class Stages(parallelize_test.Ranks):
    """Checks that pipeline stages compute the losses and gradients of a single
    process, and communicate as planned."""

    def test_the_order_is_the_plans(self):
        for name, one in self.found.items():
            with self.subTest(name):
                self.assertEqual(one["order"], one["planned_order"])

    @staticmethod
    def cases():
        from parallelize_ranks import stages
        return list(stages())

    def test_messages_are_the_ledgers(self):
        for name, one in self.found.items():
            with self.subTest(name):
                rows = [line.split() for line in one["table"].splitlines()]
                messages = [row for row in rows if row[1:3] == ["send", "pp"]]
                self.assertTrue(messages)
                for row in messages:
                    self.assertEqual(row[4], row[5], row)


@unittest.skipUnless(parallelize_test.TORCH, "no torch or no transformers")
class Parts(unittest.TestCase):
    """Checks that the forward of the whole model runs a stage."""

    def test_layers_that_return_tuples_are_refused(self):
        import torch
        from parallelize_ranks import new_model, plan_of
        for name in ("llama", "gpt2", "bert"):
            with self.subTest(name):
                module = new_model(name, 4)
                plan = plan_of(module, {"pp": 2, "dp": 2, "micro_batch": 2,
                                        "schedule": "1f1b"})
                family = FAMILIES[name]
                keep_stages(plan, module, family, 1, torch.float32)
                stage = stage_of(plan, module, family, 1, torch.float32)
                ids = torch.zeros(2, 32, dtype=torch.int64)
                received = torch.randn(2, 32, 64)
                self.assertGreater(stage(received, input_ids=ids, labels=ids), 0)
                # Older versions of transformers return tuples, of which the
                # model takes the first element.
                stage.entrance.forward = lambda *_, **__: received[0]
                with self.assertRaisesRegex(
                        mtplan.Error, r"given \[32, 64\], .* \[2, 32, 64\]"):
                    stage(received, input_ids=ids, labels=ids)


@unittest.skipUnless(parallelize_test.TORCH, "no torch or no transformers")
class Schedules(unittest.TestCase):
    """Checks that PyTorch's schedules are the plan's, or are refused."""

    def plan(self, **keywords):
        from parallelize_ranks import new_model, plan_of
        self.module = new_model("llama", 8)
        return plan_of(self.module, {"micro_batch": 1, **keywords})

    def planned(self, plan):
        """Returns the tasks of every stage in order: letter, virtual stage
        and micro-batch."""
        from parallelize_ranks import tasks
        letters = {"forward": "F", "backward": "B", "weight gradient": "W"}
        order = [[] for _ in range(plan.parallelism.pp)]
        for one in tasks(plan):
            virtual = one["args"]["chunk"] * len(order) + one["pid"]
            order[one["pid"]].append((letters[one["cat"]], virtual,
                                      one["args"]["micro_batch"]))
        return order

    def issued(self, plan):
        """Returns the same for PyTorch's schedule."""
        from torch import nn
        from torch.distributed import pipelining
        degrees = plan.parallelism
        made = getattr(pipelining, SCHEDULES[degrees.schedule])
        count = degrees.pp * degrees.virtual_stages
        stages = [types.SimpleNamespace(
            num_stages=count, group_size=degrees.pp, group_rank=0,
            submod=nn.Module(), stage_index=number)
            for number in range(0, count, degrees.pp)]
        single = issubclass(made, pipelining.schedules.PipelineScheduleSingle)
        order = made(stages[0] if single else stages,
                     degrees.micro_batches).pipeline_order
        found = [[re.fullmatch(r"(\d+)([FBIW])(\d+)", str(one))
                  for one in order[rank] if one]
                 for rank in range(degrees.pp)]
        return [[(one[2].replace("I", "B"), int(one[1]), int(one[3]))
                 for one in rank if one] for rank in found]

    def test_the_order_is_the_plans(self):
        for keywords in ({"schedule": "zero-bubble"},
                         {"schedule": "interleaved", "vp": 2},
                         {"schedule": "interleaved", "vp": 4, "pp": 2, "dp": 2}):
            for samples in (4, 12):
                with self.subTest(keywords, samples=samples):
                    plan = self.plan(**{"pp": 4, **keywords},
                                     global_batch=samples)
                    self.assertEqual(self.issued(plan), self.planned(plan))

    def test_gpipe_begins_backward_with_the_first_micro_batch(self):
        plan = self.plan(pp=4, schedule="gpipe")
        for mine, theirs in zip(self.planned(plan), self.issued(plan)):
            half = len(mine) // 2
            self.assertEqual(theirs, mine[:half] + mine[:half - 1:-1])

    def refused(self, words, nearest, **keywords):
        plan = self.plan(**keywords)
        with self.assertRaisesRegex(mtplan.Error, words) as caught:
            checked(plan, self.module)
        self.assertEqual(caught.exception.errors[-1],
                         f"nearest: mtplan.plan(..., {nearest})")

    def test_schedules_that_are_not_supported(self):
        self.refused("1f1b with 2 micro-batches: .* stages, 4",
                     "schedule='gpipe'", pp=4, schedule="1f1b", micro_batch=4)
        self.refused("zero-bubble: fully_shard cannot scatter",
                     "schedule='1f1b'", pp=2, dp=2, schedule="zero-bubble",
                     zero=2)


if __name__ == "__main__":
    unittest.main()
