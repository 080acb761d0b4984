//===- memory_overlaps.cpp - Which instructions share bytes ---------------===//

#include "codegen/memory_overlaps.h"

#include <algorithm>

#include "runtime/plan/buffer_end.h"

namespace mtplan::codegen {

using runtime::Buffer, runtime::Instruction, runtime::ScheduleEntry,
    runtime::Stage, runtime::Tensor;

namespace {

bool isOnePiece(const Buffer &buffer) {
  return buffer.entries == 1 && buffer.slots == 1;
}

} // namespace

bool isSame(const Tensor &a, const Tensor &b) {
  return a.buffer == b.buffer && a.entry == b.entry &&
         a.entryStep == b.entryStep && a.type == b.type && a.shape == b.shape;
}

MemoryOverlaps::MemoryOverlaps(const Stage &theStage, int program)
    : stage(theStage) {
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      if (entry.program == program)
        runs.push_back(&entry);
}

bool MemoryOverlaps::overlap(const Instruction &a, const Instruction &b) const {
  return overlap(a.outputs, b.outputs) || overlap(a.outputs, b.inputs) ||
         overlap(a.inputs, b.outputs);
}

bool MemoryOverlaps::overlap(const std::vector<Tensor> &some,
                             const std::vector<Tensor> &others) const {
  return std::ranges::any_of(some, [&](const Tensor &a) {
    return std::ranges::any_of(others,
                               [&](const Tensor &b) { return overlap(a, b); });
  });
}

bool MemoryOverlaps::overlap(const Tensor &a, const Tensor &b) const {
  const Buffer &first = stage.buffers[indexed(a.buffer)],
               &second = stage.buffers[indexed(b.buffer)];
  if (first.arena != second.arena || first.offset >= endOf(second) ||
      second.offset >= endOf(first))
    return false;
  if (isOnePiece(first) && isOnePiece(second))
    return true;
  for (const ScheduleEntry *run : runs)
    for (int i = 0; i < run->count; ++i) {
      const int copy = run->first + i * run->step;
      const std::int64_t one = startOf(a, copy, run->microBatch),
                         other = startOf(b, copy, run->microBatch);
      if (one < other + second.size && other < one + first.size)
        return true;
    }
  return false;
}

std::int64_t MemoryOverlaps::startOf(const Tensor &tensor, int copy,
                                     int microBatch) const {
  const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
  const std::int64_t entry =
      tensor.entry + std::int64_t{copy} * tensor.entryStep;
  return buffer.offset + entry % buffer.entries * buffer.entryStride +
         microBatch % buffer.slots * buffer.slotStride;
}

} // namespace mtplan::codegen
