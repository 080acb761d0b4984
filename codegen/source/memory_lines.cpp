//===- memory_lines.cpp - A stage's memory, as lines ----------------------===//

#include "codegen/source/memory_lines.h"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <utility>

#include "codegen/source/tensor_buffers.h"
#include "runtime/plan/plan_queries.h"

namespace mtplan::codegen {

using namespace runtime;

namespace {

const char *arenaWord(MemoryClass memoryClass) {
  switch (memoryClass) {
  case MemoryClass::parameters:
    return "kParameters";
  case MemoryClass::optimizer:
    return "kOptimizer";
  case MemoryClass::gradients:
    return "kGradients";
  case MemoryClass::activations:
    return "kActivations";
  case MemoryClass::workspace:
    return "kWorkspace";
  case MemoryClass::host:
    break;
  }
  throw std::logic_error("ProgramSource rejects plans with a host arena");
}

const char *useOf(MemoryClass memoryClass) {
  switch (memoryClass) {
  case MemoryClass::parameters:
    return "Weights, in the type that kernels read.";
  case MemoryClass::gradients:
    return "Gradients, from the first micro-batch to the update.";
  case MemoryClass::activations:
    return "Values that are kept from forward to backward. After backward the "
           "same bytes may hold reduced gradients.";
  case MemoryClass::workspace:
    return "Other values of a micro-batch, in bytes that they share; and sums "
           "of the step.";
  default:
    return "State of the optimizer: master weights and moments.";
  }
}

/// Returns a Buffer as an expression: type, arena, offset and size. If the
/// buffer has several entries or slots, their number and stride follow.
std::string placeText(const Stage &stage, const Buffer &one, ElementType type) {
  std::string text = "Buffer{" + typeText(type) + ", " +
                     arenaWord(stage.arenas[indexed(one.arena)].memoryClass) +
                     ", " + std::to_string(one.offset) + ", " +
                     std::to_string(one.size) + "}";
  const auto append = [&](const char *function, int count, std::int64_t step) {
    if (count > 1)
      text += "." + std::string(function) + "(" + std::to_string(count) + ", " +
              std::to_string(step) + ")";
  };
  append("perLayer", one.entries, one.entryStride);
  append("perMicroBatch", one.slots, one.slotStride);
  return text;
}

std::string entryText(const BufferView &view) {
  const std::string first = std::to_string(view.first);
  switch (view.step) {
  case 0:
    return ".only(" + first + ")";
  case 1:
    return ".from(" + first + ")";
  case -1:
    return ".down(" + first + ")";
  default:
    return ".at(" + first + ", " + std::to_string(view.step) + ")";
  }
}

std::int64_t bytesOfInputs(const Stage &stage) {
  std::int64_t bytes = 0;
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      for (const Instruction &instruction :
           stage.programs[indexed(entry.program)].instructions)
        if (std::holds_alternative<Input>(instruction.what))
          bytes += entry.count * roomFor(instruction.outputs[0]);
  return bytes;
}

} // namespace

std::set<std::string> buffersIn(const Text &text) {
  const std::vector<std::string> names = piecesOf(text.text()).names;
  return {names.begin(), names.end()};
}

void writeBuffers(const Stage &stage, const StageNames &names,
                  const std::vector<const Text *> &readers, const Text &tables,
                  Text &to) {
  std::set<std::string> used = buffersIn(tables);
  for (const Text *reader : readers)
    used.merge(buffersIn(*reader));
  for (const BufferView &view : names.bufferViews())
    if (used.contains(view.name))
      used.insert(names.buffer(indexed(view.buffer)));
  to.comment("Each buffer has its type, its arena, its offset and its size in "
             "bytes. A buffer of a repeated layer has an entry for each layer; "
             "a buffer of which several micro-batches are in flight has a slot "
             "for each. A buffer that `=` another one uses the same bytes by "
             "turns. Shapes are those of one rank.");
  to.open("struct buf {");
  for (const StageConstant &one : names.constants())
    if (used.contains(one.name))
      to.line("static constexpr int " + one.name + " = " + one.value + ";" +
              (one.meaning.empty() ? "" : " // " + one.meaning));
  constexpr MemoryClass kOrder[] = {
      MemoryClass::parameters, MemoryClass::gradients, MemoryClass::activations,
      MemoryClass::workspace, MemoryClass::optimizer};
  for (const MemoryClass memoryClass : kOrder) {
    bool isFirst = true;
    std::optional<std::size_t> first;
    for (std::size_t b = 0; b < stage.buffers.size(); ++b) {
      const Tensor *tensor = names.firstUse(b);
      const Buffer &one = stage.buffers[b];
      if (stage.arenas[indexed(one.arena)].memoryClass != memoryClass ||
          !used.contains(names.buffer(b)) || !tensor)
        continue;
      if (std::exchange(isFirst, false)) {
        to.line();
        to.comment(useOf(memoryClass));
      }
      std::string line = "static constexpr Buffer " + names.buffer(b) + " = ";
      if (first && areSameBytes(stage.buffers[*first], one) &&
          names.firstUse(*first)->type == tensor->type) {
        line += names.buffer(*first) + ";";
      } else {
        line += placeText(stage, one, tensor->type) + ";";
        first = b;
      }
      to.line(line + " // " + names.shape(*tensor));
    }
  }
  bool isFirst = true;
  for (const BufferView &view : names.bufferViews()) {
    if (!used.contains(view.name))
      continue;
    if (std::exchange(isFirst, false)) {
      to.line();
      to.comment("Entries of these buffers for layer now.layer, modulo the "
                 "number of entries: from(n) is entry n + now.layer, down(n) "
                 "is entry n - now.layer, and only(n) is entry n.");
    }
    to.line("static constexpr Buffer " + view.name + " = " +
            names.buffer(indexed(view.buffer)) + entryText(view) + ";");
  }
  to.add(tables, 1);
  to.close("};");
}

void writeOpen(const Stage &stage, const Needs &needs, Text &to) {
  to.line();
  to.comment("Allocates the rank's arenas, and has cuBLASLt choose an "
             "algorithm for each product of the step: it cannot be asked "
             "while the step is captured.");
  to.open("inline void open(Rank &rank) {");
  for (const Arena &arena : stage.arenas)
    if (arena.size > 0)
      to.line(std::string("reserve(rank, ") + arenaWord(arena.memoryClass) +
              ", " + std::to_string(arena.size) + ");");
  if (const std::int64_t bytes = bytesOfInputs(stage); bytes > 0)
    to.line("rank.inputs.open(" + std::to_string(bytes) + ");");
  writeChoices(needs, to);
  to.close();
}

} // namespace mtplan::codegen
