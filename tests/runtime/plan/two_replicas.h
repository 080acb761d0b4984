//===- two_replicas.h - A small plan, and faults of batches -----*- C++ -*-===//
//
// The plan trains a weight w so that y = x w becomes small. The gradient of w
// is the outer product of x and y. Each of two replicas has two samples.
// docs/executable-plan.md describes this plan.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_PLAN_TWO_REPLICAS_H
#define MTPLAN_TESTS_RUNTIME_PLAN_TWO_REPLICAS_H

#include <string>
#include <utility>
#include <vector>

#include "runtime/plan/plan.h"
#include "runtime/plan/plan_checks.h"

namespace mtplan::runtime {

/// Returns a tensor that is stored in entry 0 of a buffer.
inline Tensor tensorAt(int buffer, std::vector<std::int64_t> shape,
                       ElementType type = ElementType::f32,
                       std::vector<std::vector<int>> split = {}) {
  return {.buffer = buffer,
          .entry = 0,
          .entryStep = 0,
          .type = type,
          .shape = std::move(shape),
          .split = std::move(split)};
}

inline Instruction kernelCall(std::string label, std::string kernel,
                              std::vector<Setting> settings,
                              std::vector<Tensor> inputs,
                              std::vector<Tensor> outputs) {
  return {.label = std::move(label),
          .what = KernelCall{std::move(kernel), std::move(settings)},
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .stream = 0,
          .waits = {}};
}

inline Plan twoReplicas() {
  enum { w, dwSum, first, second, x, y, dw };
  const std::vector<std::int64_t> weight = {6, 4};
  const Tensor value = tensorAt(w, weight), gradient = tensorAt(dwSum, weight),
               moment1 = tensorAt(first, weight),
               moment2 = tensorAt(second, weight), term = tensorAt(dw, weight);
  const Tensor source = tensorAt(x, {1, 6}, ElementType::f32, {{0}, {}}),
               product = tensorAt(y, {1, 4}, ElementType::f32, {{0}, {}});

  Stage stage;
  stage.ranks = {0, 1};
  stage.arenas = {{MemoryClass::parameters, 256},
                  {MemoryClass::optimizer, 512},
                  {MemoryClass::gradients, 256},
                  {MemoryClass::activations, 1024},
                  {MemoryClass::workspace, 256}};
  auto buffer = [&](std::string name, int arena, std::int64_t offset,
                    std::int64_t size) {
    stage.buffers.emplace_back();
    stage.buffers.back().name = std::move(name);
    stage.buffers.back().arena = arena;
    stage.buffers.back().offset = offset;
    stage.buffers.back().size = size;
  };
  buffer("fc.weight", 0, 0, 96);
  buffer("fc.weight.gradient", 2, 0, 96);
  buffer("fc.weight.first", 1, 0, 96);
  buffer("fc.weight.second", 1, 256, 96);
  buffer("x", 3, 0, 24);
  buffer("y", 3, 512, 16);
  for (int saved : {x, y}) { // saved for both micro-batches
    stage.buffers[saved].slots = 2;
    stage.buffers[saved].slotStride = 256;
  }
  buffer("fc.dw", 4, 0, 96);
  stage.parameters = {{.label = "fc.weight",
                       .init = "normal",
                       .firstCopy = 0,
                       .copies = 1,
                       .value = value,
                       .gradient = gradient,
                       .master = {},
                       .firstMoment = moment1,
                       .secondMoment = moment2,
                       .alike = {0},
                       .countedElsewhere = false,
                       .unpadded = {}}};

  Program forward{"fc.forward", {}}, backward{"fc.backward", {}},
      reduce{"reduce", {}}, apply{"apply", {}};
  forward.instructions = {{.label = "x",
                           .what = Input{"x", {"batch", "other"}, 0},
                           .inputs = {},
                           .outputs = {source},
                           .stream = 0,
                           .waits = {}},
                          kernelCall("fc", "einsum",
                                     {{"equation", "bi,io->bo"}},
                                     {source, value}, {product})};
  backward.instructions = {
      kernelCall("fc.dw", "einsum", {{"equation", "bi,bo->io"}},
                 {source, product}, {term}),
      kernelCall("fc.weight", "accumulate", {{"first_term", std::int64_t{0}}},
                 {term}, {gradient})};
  reduce.instructions = {{.label = "fc.weight",
                          .what = Collective{CollectiveKind::allReduce, 0},
                          .inputs = {gradient},
                          .outputs = {gradient},
                          .stream = 1,
                          .waits = {}}};
  apply.instructions = {kernelCall("fc.weight", "adamw",
                                   {{"decay", std::int64_t{1}}}, {gradient},
                                   {value, value, moment1, moment2})};
  stage.programs = {forward, backward, reduce, apply};
  for (auto [program, microBatch] : {std::pair(0, 0), {0, 1}, {1, 0}, {1, 1}})
    stage.schedule.push_back({.program = program, .microBatch = microBatch});
  stage.reduce = {{.program = 2}};
  stage.apply = {{.program = 3}};

  Plan plan;
  plan.model = "two replicas";
  plan.ranks = 2;
  plan.mesh = {{"dp", 2}};
  plan.groups = {{"dp", {{0, 1}}}};
  plan.streams = {"compute", "data"};
  plan.microBatches = 2;
  plan.globalBatch = 4;
  plan.stages = {stage};
  return plan;
}

/// Returns the faults that checkBatches() finds.
///
/// \param plan  its indices must be valid, except those in batches
inline std::vector<std::string> batchFaultsOf(const Plan &plan) {
  Faults faults;
  checkBatches(plan, faults);
  return faults.take();
}

/// Puts `batches` into the first program of `stage`, makes `stage` the only
/// stage of `plan`, with two streams, and returns the faults of the batches.
inline std::vector<std::string> faultsOfBatches(Plan plan, Stage stage,
                                                std::vector<Batch> batches) {
  plan.streams = {"compute", "beside"};
  stage.programs[0].batches = std::move(batches);
  plan.stages = {std::move(stage)};
  return batchFaultsOf(plan);
}

} // namespace mtplan::runtime

#endif // MTPLAN_TESTS_RUNTIME_PLAN_TWO_REPLICAS_H
