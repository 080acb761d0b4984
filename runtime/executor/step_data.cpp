//===- step_data.cpp - Random training data -------------------------------===//

#include "runtime/executor/step_data.h"

#include <algorithm>
#include <stdexcept>

#include "runtime/backend/element.h"
#include "runtime/executor/index_walk.h"

namespace mtplan::runtime {

double DrawnData::count() {
  if (counted)
    return *counted;
  double number = 0.0;
  const Stream stream = Stream::ofData({seed, 0, 0, 0}, kTargetsLabel);
  const std::int64_t begin = indexOf(0, targets),
                     end = indexOf(microBatches, targets);
  for (std::int64_t i = begin; i < end; ++i)
    number += targetValue(stream, i, limit) >= 0 ? 1.0 : 0.0;
  counted = std::max(number, 1.0);
  return *counted;
}

void DrawnData::fill(const Input &input, int microBatch, const TensorView &view,
                     void *out) {
  if (input.label == kCountLabel) {
    if (targets == 0)
      throw std::runtime_error("the plan asks for the number of targets, but "
                               "has no input of that name");
    for (std::int64_t i = 0; i < view.elements(); ++i)
      writeElement(view.type, out, i, count());
    return;
  }
  const Stream stream = Stream::ofData({seed, 0, 0, 0}, input.label);
  std::int64_t elements = 1;
  for (const Span &piece : view.pieces)
    elements *= piece.global;
  const std::int64_t begin = indexOf(microBatch, elements);
  forEachElement(view, [&](std::int64_t local, std::int64_t global) {
    const std::int64_t index = begin + global;
    const double value =
        input.limit == 0 ? stream.normalAt(index)
        : input.label == kTargetsLabel
            ? targetValue(stream, index, input.limit)
            : static_cast<double>(stream.integerAt(index, input.limit));
    writeElement(view.type, out, local, value);
  });
}

DrawnData drawnDataOf(const Plan &plan, std::uint64_t seed, std::int64_t step) {
  return drawnDataFrom(plan, seed, (step - 1) * plan.globalBatch);
}

DrawnData drawnDataFrom(const Plan &plan, std::uint64_t seed,
                        std::int64_t firstSample) {
  std::int64_t whole = 0, limit = 0;
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions) {
        const auto *input = std::get_if<Input>(&instruction.what);
        if (!input || input->label != kTargetsLabel)
          continue;
        limit = input->limit;
        whole = 1;
        const Tensor &tensor = instruction.outputs.front();
        for (std::int64_t size : tensor.shape)
          whole *= size;
        for (const std::vector<int> &axes : tensor.split)
          for (int axis : axes)
            whole *= plan.mesh[static_cast<std::size_t>(axis)].size;
      }
  const std::int64_t samples =
      std::max<std::int64_t>(plan.globalBatch / plan.microBatches, 1);
  return {seed, firstSample, samples, plan.microBatches, whole, limit};
}

} // namespace mtplan::runtime
