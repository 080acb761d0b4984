//===- step_data.cpp - Training data of a step ----------------------------===//

#include "runtime/executor/step_data.h"

#include <algorithm>
#include <map>
#include <stdexcept>

#include "runtime/backend/element.h"

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

double SampleData::count() {
  return static_cast<double>(std::max<std::int64_t>(samples->count, 1));
}

void SampleData::fill(const Input &input, int microBatch,
                      const TensorView &view, void *out) {
  if (input.label == kCountLabel) {
    for (std::int64_t i = 0; i < view.elements(); ++i)
      writeElement(view.type, out, i, count());
    return;
  }
  const std::vector<std::int32_t> &all =
      input.label == "ids"           ? samples->ids
      : input.label == kTargetsLabel ? samples->targets
      : input.label == "types"       ? samples->types
                                     : samples->decoderIds;
  // Counts the elements of a micro-batch, over all replicas.
  std::int64_t whole = 1;
  for (const Span &piece : view.pieces)
    whole *= piece.global;
  const std::int64_t first = microBatch * whole;
  if (first + whole > static_cast<std::int64_t>(all.size()))
    throw std::runtime_error("input '" + input.label + "' of micro-batch " +
                             std::to_string(microBatch) + " ends at element " +
                             std::to_string(first + whole) +
                             ", but the step's samples have " +
                             std::to_string(all.size()));
  forEachElement(view, [&](std::int64_t local, std::int64_t global) {
    writeElement(view.type, out, local,
                 all[static_cast<std::size_t>(first + global)]);
  });
}

namespace {

struct PlanInput {
  Input input;
  std::int64_t positions = 1;
};

std::map<std::string, PlanInput> inputsOf(const Plan &plan) {
  std::map<std::string, PlanInput> inputs;
  auto add = [&](const Input &input, const Tensor &tensor) {
    PlanInput &one = inputs[input.label];
    one.input = input;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      if (d >= input.dims.size() || input.dims[d] != "sequence")
        continue;
      one.positions = tensor.shape[d];
      if (d < tensor.split.size())
        for (int axis : tensor.split[d])
          one.positions *= plan.mesh[static_cast<std::size_t>(axis)].size;
    }
  };
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *input = std::get_if<Input>(&instruction.what))
          add(*input, instruction.outputs.front());
  return inputs;
}

} // namespace

std::int64_t vocabularyOf(const Plan &plan) {
  auto inputs = inputsOf(plan);
  auto ids = inputs.find("ids");
  return ids == inputs.end() ? 0 : ids->second.input.limit;
}

Objective objectiveOf(const Plan &plan, std::uint64_t seed) {
  Objective objective;
  objective.seed = seed;
  auto inputs = inputsOf(plan);
  for (const auto &[label, one] : inputs)
    if (label != "ids" && label != kTargetsLabel && label != "types" &&
        label != "decoder_ids" && label != kCountLabel)
      throw std::invalid_argument("the plan's model is trained on '" + label +
                                  "', which cannot be read from a file of "
                                  "tokens; use --data synthetic");
  if (auto decoder = inputs.find("decoder_ids"); decoder != inputs.end()) {
    objective.kind = Objective::Kind::continuation;
    objective.decoderSequence = decoder->second.positions;
  } else if (auto types = inputs.find("types"); types != inputs.end()) {
    objective.kind = Objective::Kind::masked;
    objective.typeRows = types->second.input.limit;
    objective.vocabulary = vocabularyOf(plan);
    objective.maskToken = static_cast<std::int32_t>(objective.vocabulary - 1);
  }
  return objective;
}

} // namespace mtplan::runtime
