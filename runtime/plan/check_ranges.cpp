//===- check_ranges.cpp - Checks numbers and indices ----------------------===//

#include <algorithm>
#include <cmath>

#include "runtime/plan/kernel_settings.h"
#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

// Limits the number of instructions that a stage runs in a step, because
// checking more instructions would take too long.
constexpr std::int64_t kMostRuns = std::int64_t{1} << 26;
constexpr std::size_t kMostStreams = 64;

// Checks the numbers of one JSON object. The JSON pointer of the object is
// built only for faults.
template <typename Pointer> class Numbers {
public:
  Numbers(Pointer where, Faults &list) : pointer(where), faults(list) {}

  bool range(std::string_view member, std::int64_t value, std::int64_t least,
             std::int64_t most) {
    if (value >= least && value <= most)
      return true;
    faults.add(pointer() + pointerPart(member),
               "must be a whole number from " + std::to_string(least) + " to " +
                   std::to_string(most) + ", got " + std::to_string(value));
    return false;
  }

  // Checks an index into `size` elements. `of` is the name of the elements in
  // the message.
  bool index(std::string_view member, std::int64_t value, std::size_t size,
             const char *of) {
    if (value >= 0 && value < static_cast<std::int64_t>(size))
      return true;
    faults.add(pointer() + pointerPart(member),
               "refers to number " + std::to_string(value) + " of " +
                   std::to_string(size) + " " + of);
    return false;
  }

  void indices(std::string_view member, const std::vector<int> &values,
               std::size_t size, const char *of) {
    for (std::size_t i = 0; i < values.size(); ++i)
      index(std::string(member) + pointerPart(i), values[i], size, of);
  }

  void fail(std::string_view member, const std::string &what) {
    faults.add(pointer() + pointerPart(member), what);
  }

  void aligned(std::string_view member, std::int64_t bytes) {
    if (range(member, bytes, 0, kMostBytes) && bytes % kAlignment != 0)
      fail(member, "must be a multiple of " + std::to_string(kAlignment) +
                       " bytes, got " + std::to_string(bytes) +
                       "; the next is " +
                       std::to_string((bytes / kAlignment + 1) * kAlignment));
  }

private:
  Pointer pointer;
  Faults &faults;
};

class StageRanges {
public:
  StageRanges(const Plan &whole, std::size_t number, Faults &list)
      : plan(whole), stage(whole.stages[number]), s(number), faults(list) {}

  void check() {
    for (std::size_t i = 0; i < stage.ranks.size(); ++i)
      numbers([&] { return at("stages", s); })
          .index("ranks" + pointerPart(i), stage.ranks[i],
                 static_cast<std::size_t>(plan.ranks), "ranks");
    for (std::size_t i = 0; i < stage.arenas.size(); ++i)
      numbers([&] {
        return at("stages", s, "arenas", i);
      }).range("size", stage.arenas[i].size, 0, kMostBytes);
    for (std::size_t i = 0; i < stage.buffers.size(); ++i)
      checkBuffer(i);
    for (std::size_t i = 0; i < stage.parameters.size(); ++i)
      checkParameter(i);
    for (std::size_t p = 0; p < stage.programs.size(); ++p)
      for (std::size_t i = 0; i < stage.programs[p].instructions.size(); ++i)
        checkInstruction(p, i);
    std::int64_t runs = 0;
    for (const Phase &phase : phasesOf(stage))
      for (std::size_t i = 0; i < phase.entries->size(); ++i)
        runs += checkEntry(phase, i);
    if (runs > kMostRuns)
      faults.add(at("stages", s, "schedule"),
                 "a step runs " + std::to_string(runs) +
                     " instructions; at most " + std::to_string(kMostRuns) +
                     " can be checked");
  }

private:
  template <typename Pointer> Numbers<Pointer> numbers(Pointer pointer) {
    return {pointer, faults};
  }

  void checkBuffer(std::size_t i) {
    const Buffer &buffer = stage.buffers[i];
    auto fields = numbers([&, i] { return at("stages", s, "buffers", i); });
    fields.index("arena", buffer.arena, stage.arenas.size(), "arenas");
    fields.aligned("offset", buffer.offset);
    fields.range("size", buffer.size, 1, kMostBytes);
    bool counted = fields.range("entries", buffer.entries, 1, kMostPieces) &&
                   fields.range("slots", buffer.slots, 1, kMostPieces);
    fields.aligned("entry_stride", buffer.entryStride);
    fields.aligned("slot_stride", buffer.slotStride);
    std::int64_t pieces = std::int64_t{buffer.entries} * buffer.slots;
    if (counted && pieces > kMostPieces)
      fields.fail("entries", std::to_string(buffer.entries) + " times " +
                                 std::to_string(buffer.slots) +
                                 " slots must be at most " +
                                 std::to_string(kMostPieces));
    auto stride = [&](const char *member, int count, std::int64_t bytes) {
      if (counted && count > 1 && bytes > kMostBytes / count)
        fields.fail(member, std::to_string(count) + " strides of " +
                                std::to_string(bytes) +
                                " bytes must be at most " +
                                std::to_string(kMostBytes) + " bytes");
    };
    stride("entry_stride", buffer.entries, buffer.entryStride);
    stride("slot_stride", buffer.slots, buffer.slotStride);
  }

  template <typename Pointer>
  void checkTensor(const Tensor &tensor, Pointer pointer) {
    auto fields = numbers(pointer);
    fields.index("buffer", tensor.buffer, stage.buffers.size(), "buffers");
    fields.range("entry", tensor.entry, 0, kMostIndex);
    fields.range("entry_step", tensor.entryStep, -kMostCopies, kMostCopies);
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < tensor.shape.size(); ++d) {
      if (!fields.range("shape" + pointerPart(d), tensor.shape[d], 1,
                        kMostElements))
        continue;
      if (elements > kMostElements / tensor.shape[d]) {
        fields.fail("shape", "has more than " + std::to_string(kMostElements) +
                                 " elements: " + shapeWords(tensor.shape));
        break;
      }
      elements *= tensor.shape[d];
    }
    if (!tensor.split.empty() && tensor.split.size() != tensor.shape.size())
      fields.fail("split", "has " + std::to_string(tensor.split.size()) +
                               " dimensions, but the shape has " +
                               std::to_string(tensor.shape.size()));
    std::vector<int> seen;
    for (std::size_t d = 0; d < tensor.split.size(); ++d) {
      fields.indices("split" + pointerPart(d), tensor.split[d],
                     plan.mesh.size(), "axes of the mesh");
      for (int axis : tensor.split[d]) {
        if (std::ranges::find(seen, axis) != seen.end())
          fields.fail("split" + pointerPart(d), "splits by axis " +
                                                    std::to_string(axis) +
                                                    " a second time");
        seen.push_back(axis);
      }
    }
  }

  void checkParameter(std::size_t i) {
    const Parameter &parameter = stage.parameters[i];
    auto where = [&, i] { return at("stages", s, "parameters", i); };
    auto fields = numbers(where);
    if (std::ranges::find(kInits, parameter.init) == kInits.end())
      fields.fail("init", "must be normal, residual, ones or zeros, got \"" +
                              parameter.init + '"');
    fields.range("first_copy", parameter.firstCopy, 0, kMostIndex);
    fields.range("copies", parameter.copies, 1, kMostCopies);
    auto tensor = [&](const Tensor &one, const char *member) {
      checkTensor(one, [&] { return where() + pointerPart(member); });
    };
    tensor(parameter.value, "value");
    tensor(parameter.gradient, "gradient");
    if (parameter.master)
      tensor(*parameter.master, "master");
    tensor(parameter.firstMoment, "first_moment");
    tensor(parameter.secondMoment, "second_moment");
    fields.indices("alike", parameter.alike, plan.mesh.size(),
                   "axes of the mesh");
  }

  void checkInstruction(std::size_t p, std::size_t i) {
    const Instruction &instruction = stage.programs[p].instructions[i];
    auto where = [&, p, i] {
      return at("stages", s, "programs", p, "instructions", i);
    };
    auto fields = numbers(where);
    for (std::size_t t = 0; t < instruction.inputs.size(); ++t)
      checkTensor(instruction.inputs[t],
                  [&] { return where() + at("inputs", t); });
    for (std::size_t t = 0; t < instruction.outputs.size(); ++t)
      checkTensor(instruction.outputs[t],
                  [&] { return where() + at("outputs", t); });
    fields.index("stream", instruction.stream, plan.streams.size(), "streams");
    fields.indices("waits", instruction.waits, i, "instructions before it");
    if (const auto *call = std::get_if<KernelCall>(&instruction.what))
      checkSettings(instruction, *call, fields);
    if (const auto *call = std::get_if<Collective>(&instruction.what)) {
      fields.index("group", call->group, plan.groups.size(), "groups");
      std::size_t dims =
          instruction.inputs.empty() ? 0 : instruction.inputs[0].shape.size();
      if (gathers(call->kind))
        fields.index("gathered", call->gathered, dims, "dimensions");
      if (scatters(call->kind))
        fields.index("scattered", call->scattered, dims, "dimensions");
    }
    if (const auto *transfer = std::get_if<Transfer>(&instruction.what)) {
      fields.index(transfer->sends ? "send_to" : "receive_from",
                   transfer->stage, plan.stages.size(), "stages");
      fields.range("channel", transfer->channel, 0, kMostIndex);
    }
    if (const auto *input = std::get_if<Input>(&instruction.what))
      fields.range("limit", input->limit, 0, kMostElements);
  }

  template <typename Fields>
  void checkSettings(const Instruction &instruction, const KernelCall &call,
                     Fields &fields) {
    for (std::size_t i = 0; i < call.settings.size(); ++i) {
      const Setting &setting = call.settings[i];
      const std::string member = "settings/" + setting.name;
      for (std::size_t j = 0; j < i; ++j)
        if (call.settings[j].name == setting.name)
          fields.fail(member, "is given twice");
      if (const auto *number = std::get_if<double>(&setting.value);
          number && !std::isfinite(*number))
        fields.fail(member, "must be a finite number");
      if (setting.name == kFirstTerm || setting.name == kFirstTermCopy)
        checkFirstTerm(instruction, setting, member, fields);
      if (setting.name != "axis")
        continue;
      if (const auto *axis = std::get_if<std::int64_t>(&setting.value))
        fields.index(member, *axis, plan.mesh.size(), "axes of the mesh");
      else
        fields.fail(member, "must be the number of an axis of the mesh");
    }
  }

  template <typename Fields>
  void checkFirstTerm(const Instruction &instruction, const Setting &setting,
                      const std::string &member, Fields &fields) {
    const auto *number = std::get_if<std::int64_t>(&setting.value);
    const auto &all = std::get<KernelCall>(instruction.what).settings;
    if (!accumulates(instruction))
      fields.fail(member, "is set, but the instruction does not accumulate");
    else if (!number)
      fields.fail(member, "must be an integer");
    else if (setting.name == kFirstTerm)
      fields.index(member, *number, indexed(plan.microBatches),
                   "micro-batches");
    else if (fields.range(member, *number, 0, kMostCopies - 1) &&
             firstTermOf(all).microBatch == FirstTerm::kNone)
      fields.fail(member, std::string("needs ") + kFirstTerm);
  }

  // Returns how many instructions the entry runs.
  std::int64_t checkEntry(const Phase &phase, std::size_t i) {
    const ScheduleEntry &entry = (*phase.entries)[i];
    auto fields = numbers([&, i] { return at("stages", s, phase.name, i); });
    bool known =
        fields.index("0", entry.program, stage.programs.size(), "programs");
    fields.index("1", entry.microBatch, indexed(plan.microBatches),
                 "micro-batches");
    fields.range("2", entry.first, 0, kMostCopies - 1);
    if (!fields.range("3", entry.count, 1, kMostCopies))
      return 0;
    if (entry.step != 1 && entry.step != -1) {
      fields.fail("4", "must be 1, or -1 in backward, got " +
                           std::to_string(entry.step));
    } else if (std::int64_t last =
                   entry.first + std::int64_t{entry.count - 1} * entry.step;
               last < 0 || last >= kMostCopies) {
      fields.fail("3", "goes from copy " + std::to_string(entry.first) +
                           " to copy " + std::to_string(last) +
                           ", which must be at least 0 and below " +
                           std::to_string(kMostCopies));
    }
    if (!known)
      return 0;
    std::size_t instructions =
        stage.programs[indexed(entry.program)].instructions.size();
    return entry.count *
           std::max<std::int64_t>(1, static_cast<std::int64_t>(instructions));
  }

  const Plan &plan;
  const Stage &stage;
  std::size_t s;
  Faults &faults;
};

} // namespace

void checkRanges(const Plan &plan, Faults &faults) {
  Numbers fields([] { return std::string(); }, faults);
  if (plan.version != kPlanVersion)
    fields.fail("version", "is " + std::to_string(plan.version) +
                               ", but this program runs version " +
                               std::to_string(kPlanVersion));
  if (plan.streams.size() > kMostStreams)
    fields.fail("streams", "are " + std::to_string(plan.streams.size()) +
                               ", at most " + std::to_string(kMostStreams) +
                               " are possible");
  fields.range("micro_batches", plan.microBatches, 1, kMostMicroBatches);
  fields.range("global_batch", plan.globalBatch, 1, kMostSamples);
  fields.range("sequence", plan.sequence, 1, kMostSamples);
  fields.range("layers", plan.layers, 1, kMostCopies);
  for (std::size_t i = 0; i < plan.mesh.size(); ++i)
    fields.range("mesh" + at(i, "size"), plan.mesh[i].size, 1, kMostRanks);
  if (!fields.range("ranks", plan.ranks, 1, kMostRanks))
    return;
  for (std::size_t g = 0; g < plan.groups.size(); ++g)
    for (std::size_t c = 0; c < plan.groups[g].communicators.size(); ++c)
      Numbers([&] { return at("groups", g, "communicators"); }, faults)
          .indices(std::to_string(c), plan.groups[g].communicators[c],
                   indexed(plan.ranks), "ranks");
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StageRanges(plan, s, faults).check();
}

} // namespace mtplan::runtime
