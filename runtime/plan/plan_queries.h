//===- plan_queries.h - Facts that follow from a plan -----------*- C++ -*-===//
//
// These functions require valid indices: the plan must have passed checkRanges.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_QUERIES_H
#define MTPLAN_RUNTIME_PLAN_PLAN_QUERIES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::runtime {

/// Requires index >= 0.
inline std::size_t indexed(int index) {
  return static_cast<std::size_t>(index);
}

/// Returns null if there is no such setting.
inline const Setting *findSetting(const std::vector<Setting> &settings,
                                  std::string_view name) {
  for (const Setting &setting : settings)
    if (setting.name == name)
      return &setting;
  return nullptr;
}

/// Returns null if there is no such setting or its value has another type.
template <typename Value>
const Value *settingValue(const std::vector<Setting> &settings,
                          std::string_view name) {
  const Setting *setting = findSetting(settings, name);
  return setting ? std::get_if<Value>(&setting->value) : nullptr;
}

/// Returns a shape as text: "[2, 6]".
std::string shapeWords(std::span<const std::int64_t> shape);

/// Returns one past the buffer's last byte in the arena, over all entries and
/// slots.
std::int64_t endOf(const Buffer &buffer);

/// Returns, for each memory class, the number of bytes that buffers cover,
/// without alignment gaps. Takes O(n log n) time in the entries and slots of
/// all buffers.
std::map<MemoryClass, std::int64_t> bytesInBuffers(const Stage &stage);

/// Returns whether every communicator of the group is either inside the stage
/// or disjoint from it.
/// \param stage  must list its ranks in ascending order
bool isWithin(const Group &group, const Stage &stage);

/// Names the side, host or device, that executes an instruction. An instruction
/// runs on the side whose memory has its operands. Arenas of class `host` are
/// in host memory, all other arenas in device memory. Only a copy has operands
/// on both sides. On CPU ranks both sides are the same.
enum class Side : std::uint8_t {
  device,
  host,
  down,  ///< copies from the device to the host
  up,    ///< copies from the host to the device
  mixed, ///< none of these, and therefore invalid
};

bool isOnHost(const Stage &stage, const Tensor &tensor);

Side sideOf(const Stage &stage, const Instruction &instruction);

//===----------------------------------------------------------------------===//
// Classes of instructions in reports
//===----------------------------------------------------------------------===//

// These classes are the rows of the table that compares predicted with measured
// times. Prediction and measurement share these classes.
inline constexpr char kProducts[] = "products", kAttention[] = "attention",
                      kPointwise[] = "norms, pointwise",
                      kCopies[] = "sums, copies",
                      kGradientNorm[] = "gradient norm",
                      kOptimizer[] = "optimizer",
                      kMessages[] = "messages, waits", kRest[] = "rest";

/// \param kernel  the name in KernelCall::kernel
std::string_view classOfKernel(std::string_view kernel);

/// Returns "collectives tp" for group "tp" and "collectives pp" for "pp 0 3".
std::string classOfGroup(std::string_view group);

std::string classOf(const Plan &plan, const Instruction &instruction);

/// Returns the classes of a plan's instructions in the order of the table's
/// rows. The classes include the gradient norm, which no program contains.
std::vector<std::string> classesOf(const Plan &plan);

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_QUERIES_H
