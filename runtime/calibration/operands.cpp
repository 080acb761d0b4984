//===- operands.cpp - What a measured kernel reads and writes -------------===//

#include "runtime/calibration/operands.h"

#include <algorithm>
#include <cmath>

#include "runtime/backend/element.h"

namespace mtplan::runtime {

namespace {

constexpr std::int64_t kMostCopies = 64;

std::size_t sized(std::int64_t number) {
  return static_cast<std::size_t>(number);
}

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

// Of a length that no power of two divides, so that rows are not all the same.
std::vector<std::byte> patternOf(ElementType type) {
  constexpr std::int64_t kLength = 8191;
  std::vector<std::byte> bytes(sized(kLength * bytesOf(type)));
  for (std::int64_t i = 0; i < kLength; ++i) {
    const std::int64_t mixed = i * 2'654'435'761 % 65'536;
    writeElement(type, bytes.data(), i,
                 type == ElementType::i32
                     ? static_cast<double>(mixed % 512)
                     : static_cast<double>(mixed) / 65'536.0 - 0.499);
  }
  return bytes;
}

} // namespace

Operands::Operands(Memory &memory, const KernelSpec &spec, std::int64_t spread)
    : space(memory, sized(bytesOfCopy(spec) * copiesOf(spec, spread))),
      step(memory, sizeof(StepNumbers)) {
  const std::int64_t number = copiesOf(spec, spread);
  std::byte *at = space.get();
  for (std::int64_t c = 0; c < number; ++c) {
    Copy &copy = copies.emplace_back();
    for (const TensorView &view : spec.inputs) {
      const std::vector<std::byte> pattern = patternOf(view.type);
      const std::size_t all = sized(bytesIn(view));
      for (std::size_t done = 0; done < all; done += pattern.size())
        memory.upload(at + done, pattern.data(),
                      std::min(pattern.size(), all - done));
      copy.inputs.push_back(at);
      at += rounded(bytesIn(view));
    }
    // Zeros, as they were: memory is touched here, not when it is timed.
    const std::vector<std::byte> zeros(1 << 16);
    for (const TensorView &view : spec.outputs) {
      const std::size_t all = sized(bytesIn(view));
      for (std::size_t done = 0; done < all; done += zeros.size())
        memory.upload(at + done, zeros.data(),
                      std::min(zeros.size(), all - done));
      copy.outputs.push_back(at);
      at += rounded(bytesIn(view));
    }
    // Where the weight is its own master, both are the same tensor.
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
