//===- operands.cpp - Operands of measured kernels ------------------------===//

#include "runtime/calibration/operands.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "base/index.h"
#include "runtime/backend/pattern.h"

namespace mtplan::runtime {

using base::sized;

namespace {

constexpr std::int64_t kMostCopies = 64;

std::int64_t bytesIn(const TensorView &view) {
  return view.elements() * bytesOf(view.type);
}

std::int64_t rounded(std::int64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::int64_t bytesOfCopy(const KernelSpec &spec) {
  std::int64_t bytes = 0;
  for (const std::vector<TensorView> *side : {&spec.inputs, &spec.outputs})
    for (const TensorView &view : *side)
      bytes += rounded(bytesIn(view));
  return bytes;
}

std::int64_t copiesOf(const KernelSpec &spec, std::int64_t spread) {
  const std::int64_t one = std::max<std::int64_t>(1, bytesOfCopy(spec));
  return std::clamp<std::int64_t>((spread + one - 1) / one, 1, kMostCopies);
}

// Makes one pattern per type, as long as the longest input needs.
std::map<ElementType, Pattern> patternsOf(Memory &memory,
                                          const KernelSpec &spec) {
  std::map<ElementType, std::int64_t> longest;
  for (const TensorView &view : spec.inputs)
    longest[view.type] = std::max(longest[view.type], bytesIn(view));
  std::map<ElementType, Pattern> patterns;
  for (const auto &[type, bytes] : longest)
    patterns.try_emplace(type, memory, type, bytes);
  return patterns;
}

} // namespace

Operands::Operands(Memory &memory, const KernelSpec &spec, std::int64_t spread)
    : space(memory, sized(bytesOfCopy(spec) * copiesOf(spec, spread))),
      step(memory, sizeof(StepNumbers)) {
  const std::int64_t number = copiesOf(spec, spread);
  std::map<ElementType, Pattern> patterns = patternsOf(memory, spec);
  std::byte *at = space.get();
  for (std::int64_t c = 0; c < number; ++c) {
    Copy &copy = copies.emplace_back();
    for (const TensorView &view : spec.inputs) {
      patterns.at(view.type).fill(at, bytesIn(view));
      copy.inputs.push_back(at);
      at += rounded(bytesIn(view));
    }
    // Results start as zeros. Memory of the host is touched here and not while
    // it is timed.
    for (const TensorView &view : spec.outputs) {
      if (memory.isHosts())
        std::memset(at, 0, sized(bytesIn(view)));
      copy.outputs.push_back(at);
      at += rounded(bytesIn(view));
    }
    // A weight that is its own master is passed as both.
    if (spec.kernel == "adamw" && spec.outputs[0].type == spec.outputs[1].type)
      copy.outputs[1] = copy.outputs[0];
  }
  StepNumbers numbers;
  numbers.update.learningRate = 1e-4;
  numbers.update.weightDecay = 0.1;
  memory.upload(step.get(), &numbers, sizeof numbers);
}

void Operands::run(Kernel &kernel, std::int64_t number) {
  const Copy &copy = copies[sized(number) % copies.size()];
  kernel.run({copy.inputs.data(), copy.outputs.data(),
              reinterpret_cast<const StepNumbers *>(step.get())});
}

} // namespace mtplan::runtime
