//===- segment_runs.cpp - Programs of a segment's runs --------------------===//

#include "codegen/segment_runs.h"

#include <algorithm>

namespace mtplan::codegen {

namespace {

template <typename Change> void forEachTensor(Written &one, Change change) {
  for (auto *tensors : {&one.instruction.inputs, &one.instruction.outputs})
    for (runtime::Tensor &tensor : *tensors)
      change(tensor);
}

std::vector<Written> ofNextLayer(std::vector<Written> instructions) {
  for (Written &one : instructions)
    forEachTensor(
        one, [](runtime::Tensor &tensor) { tensor.entry += tensor.entryStep; });
  return instructions;
}

// Returns the instructions with each tensor in its entry of layer `layer`,
// independent of the layer that a run processes.
std::vector<Written> ofLayer(std::vector<Written> instructions, int layer) {
  for (Written &one : instructions)
    forEachTensor(one, [&](runtime::Tensor &tensor) {
      tensor.entry += layer * tensor.entryStep;
      tensor.entryStep = 0;
    });
  return instructions;
}

int firstOf(const SegmentRuns &runs) {
  return runs.ascends() ? 0 : runs.count - 1;
}

// Returns `gathers`, which gather weights for another run, followed by `own`.
// Renumbers the launches of `gathers`, so that no launch belongs to both lists.
std::vector<Written> joined(std::vector<Written> gathers,
                            const std::vector<Written> &own) {
  std::int64_t unused = 0; // first launch number that `own` does not use
  for (const Written &one : own)
    unused = std::max(unused, one.batch + 1);
  for (Written &one : gathers)
    if (one.batch >= 0)
      one.batch += unused;
  gathers.insert(gathers.end(), own.begin(), own.end());
  return gathers;
}

} // namespace

std::vector<ScheduledProgram> programsOf(const SegmentRuns &runs) {
  std::vector<ScheduledProgram> programs;
  const auto add = [&](const std::string &kind, std::vector<Written> written,
                       int firstLayer, int first, int count) {
    if (written.empty())
      return;
    ScheduledProgram &one = programs.emplace_back();
    one.program =
        programOf(runs.name + kind + runs.direction, std::move(written));
    one.program.firstCopy = firstLayer;
    one.entry.first = first;
    one.entry.step = runs.ascends() ? 1 : -1;
    one.entry.count = count;
  };
  const auto &[ahead, own] = *runs.program;
  if (runs.isFirst)
    add(".weights", ofLayer(ahead, firstOf(runs)), runs.firstLayer,
        firstOf(runs), 1);
  std::vector<Written> following;
  if (runs.next)
    following = ofLayer(runs.next->program->ahead, firstOf(*runs.next));
  if (runs.count == 1 || (ahead.empty() && following.empty())) {
    add("", joined(std::move(following), own), runs.firstLayer, firstOf(runs),
        runs.count);
    return programs;
  }
  // The entry numbers of tensors must not be negative. A backward program
  // gathers the weights of the preceding layer, so the program counts layers
  // from the second layer of the segment.
  if (runs.ascends())
    add("", joined(ofNextLayer(ahead), own), runs.firstLayer, 0,
        runs.count - 1);
  else
    add("", joined(ahead, ofNextLayer(own)), runs.firstLayer + 1,
        runs.count - 2, runs.count - 1);
  add(".last", joined(std::move(following), own), runs.firstLayer,
      runs.ascends() ? runs.count - 1 : 0, 1);
  return programs;
}

} // namespace mtplan::codegen
