//===- plan_queries.cpp - Facts that follow from a plan -------------------===//

#include "runtime/plan/plan_queries.h"

#include <algorithm>
#include <array>

namespace mtplan::runtime {

std::string shapeWords(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return text += ']';
}

std::int64_t endOf(const Buffer &buffer) {
  return buffer.offset + (buffer.entries - 1) * buffer.entryStride +
         (buffer.slots - 1) * buffer.slotStride + buffer.size;
}

std::map<MemoryClass, std::int64_t> bytesInBuffers(const Stage &stage) {
  using Range = std::pair<std::int64_t, std::int64_t>; // begin, end
  std::map<int, std::vector<Range>> ranges;
  for (const Buffer &buffer : stage.buffers)
    for (int entry = 0; entry < buffer.entries; ++entry)
      for (int slot = 0; slot < buffer.slots; ++slot) {
        std::int64_t begin = buffer.offset + entry * buffer.entryStride +
                             slot * buffer.slotStride;
        ranges[buffer.arena].emplace_back(begin, begin + buffer.size);
      }
  std::map<MemoryClass, std::int64_t> bytes;
  for (auto &[arena, taken] : ranges) {
    std::ranges::sort(taken);
    std::int64_t end = 0, all = 0;
    for (const auto &[from, to] : taken) {
      all += std::max<std::int64_t>(0, to - std::max(from, end));
      end = std::max(end, to);
    }
    bytes[stage.arenas[indexed(arena)].memoryClass] += all;
  }
  return bytes;
}

bool isWithin(const Group &group, const Stage &stage) {
  const auto isHere = [&](int rank) {
    return std::ranges::binary_search(stage.ranks, rank);
  };
  return std::ranges::all_of(group.communicators,
                             [&](const std::vector<int> &ranks) {
                               return std::ranges::all_of(ranks, isHere) ||
                                      std::ranges::none_of(ranks, isHere);
                             });
}

bool isOnHost(const Stage &stage, const Tensor &tensor) {
  const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
  return stage.arenas[indexed(buffer.arena)].memoryClass == MemoryClass::host;
}

Side sideOf(const Stage &stage, const Instruction &instruction) {
  auto onHost = [&](const std::vector<Tensor> &tensors) {
    return std::ranges::count_if(
        tensors, [&](const Tensor &tensor) { return isOnHost(stage, tensor); });
  };
  const auto read = onHost(instruction.inputs),
             made = onHost(instruction.outputs);
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

std::string_view classOfKernel(std::string_view kernel) {
  constexpr std::array<std::string_view, 7> kMoves = {
      "accumulate", "piece", "slice", "mask", "cast", "copy", "zeros"};
  if (kernel == "einsum")
    return kProducts;
  if (kernel == "attention" || kernel == "attention_grad")
    return kAttention;
  if (kernel == "adamw")
    return kOptimizer;
  return std::ranges::find(kMoves, kernel) != kMoves.end() ? kCopies
                                                           : kPointwise;
}

std::string classOfGroup(std::string_view group) {
  return "collectives " + std::string(group.substr(0, group.find(' ')));
}

std::string classOf(const Plan &plan, const Instruction &instruction) {
  if (const auto *call = std::get_if<KernelCall>(&instruction.what))
    return std::string(classOfKernel(call->kernel));
  if (const auto *call = std::get_if<Collective>(&instruction.what))
    return classOfGroup(
        plan.groups[static_cast<std::size_t>(call->group)].name);
  return std::holds_alternative<Transfer>(instruction.what) ? kMessages : kRest;
}

std::vector<std::string> classesOf(const Plan &plan) {
  std::vector<std::string> all{kProducts, kAttention,    kPointwise,
                               kCopies,   kGradientNorm, kOptimizer};
  for (const Group &group : plan.groups)
    if (std::string name = classOfGroup(group.name);
        std::ranges::find(all, name) == all.end())
      all.push_back(std::move(name));
  all.emplace_back(kMessages);
  all.emplace_back(kRest);
  return all;
}

} // namespace mtplan::runtime
