//===- instruction_side.cpp - Where an instruction works ------------------===//

#include "runtime/plan/instruction_side.h"

#include <algorithm>

#include "runtime/plan/index.h"

namespace mtplan::runtime {

bool isOnHost(const Stage &stage, const Tensor &tensor) {
  const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
  return stage.arenas[indexed(buffer.arena)].memoryClass == MemoryClass::host;
}

Side sideOf(const Stage &stage, const Instruction &instruction) {
  auto ofHost = [&](const std::vector<Tensor> &tensors) {
    return std::ranges::count_if(
        tensors, [&](const Tensor &tensor) { return isOnHost(stage, tensor); });
  };
  const auto read = ofHost(instruction.inputs),
             made = ofHost(instruction.outputs);
  const auto inputs = std::ssize(instruction.inputs),
             outputs = std::ssize(instruction.outputs);
  if (read + made == 0)
    return Side::device;
  if (read + made == inputs + outputs)
    return Side::host;
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  const bool copies =
      call && call->kernel == "copy" && inputs == 1 && outputs == 1;
  if (!copies)
    return Side::mixed;
  return made == 1 ? Side::down : Side::up;
}

} // namespace mtplan::runtime
