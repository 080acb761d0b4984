//===- drawn_data.cpp - Data that is drawn, not read ----------------------===//

#include <algorithm>
#include <stdexcept>

#include "runtime/backend/element.h"
#include "runtime/executor/index_walk.h"
#include "runtime/executor/step_data.h"

namespace mtplan::runtime {

double DrawnData::count() {
  if (counted)
    return *counted;
  double number = 0.0;
  for (int batch = 0; batch < microBatches; ++batch) {
    Stream stream = Stream::ofData({seed, step, batch, 0}, kTargetsLabel);
    for (std::int64_t i = 0; i < targets; ++i)
      number += targetValue(stream, i, limit) >= 0 ? 1.0 : 0.0;
  }
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
  Stream stream = Stream::ofData({seed, step, microBatch, 0}, input.label);
  forEachElement(view, [&](std::int64_t local, std::int64_t global) {
    double value =
        input.limit == 0 ? stream.normalAt(global)
        : input.label == kTargetsLabel
            ? targetValue(stream, global, input.limit)
            : static_cast<double>(stream.integerAt(global, input.limit));
    writeElement(view.type, out, local, value);
  });
}

DrawnData drawnDataOf(const Plan &plan, std::uint64_t seed, std::int64_t step) {
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
  return {seed, step, plan.microBatches, whole, limit};
}

} // namespace mtplan::runtime
