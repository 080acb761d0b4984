//===- first_terms.cpp - What gradients' sums begin with ------------------===//

#include "codegen/first_terms.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/plan/first_term.h"
#include "runtime/plan/index.h"
#include "runtime/plan/plan_checks.h"

namespace mtplan::codegen {

using runtime::Buffer, runtime::indexed, runtime::Instruction,
    runtime::KernelCall, runtime::ScheduleEntry, runtime::Stage,
    runtime::Tensor;

namespace {

/// Program and place in it.
using Place = std::pair<int, std::size_t>;

/// An instruction that adds to a sum, over a step.
struct Adder {
  /// Micro-batches and copies, in the model, when nobody was before it.
  std::set<std::pair<int, int>> first;
  std::set<int> later; ///< micro-batches in which somebody was

  bool isFirstOnce() const { return first.size() == 1; }
  /// Or not at all.
  bool isFirstInAll() const {
    return std::ranges::all_of(first, [&](const auto &one) {
      return one.first == first.begin()->first && !later.contains(one.first);
    });
  }
};

/// A buffer of sums, over a step.
struct Sums {
  std::vector<char> begun; ///< by entry and slot
  bool isReadBefore = false;
  std::map<Place, Adder> adders;

  bool hasNoFirstTerm() const {
    return isReadBefore || std::ranges::count(begun, 0) > 0 ||
           std::ranges::any_of(adders, [](const auto &one) {
             return !one.second.isFirstOnce() && !one.second.isFirstInAll();
           });
  }
};

class StepOfSums {
public:
  explicit StepOfSums(Stage &whole) : stage(whole) {
    for (const runtime::Program &program : stage.programs)
      for (const Instruction &one : program.instructions)
        for (std::size_t t = 0; t < one.outputs.size(); ++t)
          if (runtime::addsTo(one, t)) {
            const int sum = one.outputs[t].buffer;
            const Buffer &all = stage.buffers[indexed(sum)];
            sums[sum].begun.resize(indexed(all.entries) * indexed(all.slots));
          }
    for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
      for (const ScheduleEntry &entry : *entries)
        for (int i = 0; i < entry.count; ++i)
          run(entry, entry.first + i * entry.step);
  }

  std::vector<std::string> store() {
    std::vector<std::string> without;
    for (const auto &[buffer, all] : sums) {
      if (all.hasNoFirstTerm()) {
        without.push_back(stage.buffers[indexed(buffer)].name);
        continue;
      }
      for (const auto &[place, adder] : all.adders)
        if (!adder.first.empty())
          store(place, adder);
    }
    return without;
  }

private:
  void store(const Place &place, const Adder &adder) {
    auto &settings = std::get<KernelCall>(stage.programs[indexed(place.first)]
                                              .instructions[place.second]
                                              .what)
                         .settings;
    const auto [microBatch, copy] = *adder.first.begin();
    settings.push_back({runtime::kFirstTerm, std::int64_t{microBatch}});
    if (!adder.isFirstInAll())
      settings.push_back({runtime::kFirstTermCopy, std::int64_t{copy}});
  }

  void run(const ScheduleEntry &entry, int copy) {
    const runtime::Program &program = stage.programs[indexed(entry.program)];
    const auto &list = program.instructions;
    for (std::size_t i = 0; i < list.size(); ++i)
      for (const auto *tensors : {&list[i].inputs, &list[i].outputs})
        for (std::size_t t = 0; t < tensors->size(); ++t) {
          const Tensor &tensor = (*tensors)[t];
          const auto found = sums.find(tensor.buffer);
          if (found == sums.end())
            continue;
          const bool adds =
              tensors == &list[i].outputs && runtime::addsTo(list[i], t);
          touch(found->second, tensor, copy, program.firstCopy + copy,
                entry.microBatch,
                adds ? &found->second.adders[{entry.program, i}] : nullptr);
        }
  }

  /// \param number  of the copy, in the model
  /// \param adder   null: it is read, or written by something else
  void touch(Sums &all, const Tensor &tensor, int copy, int number,
             int microBatch, Adder *adder) {
    const Buffer &buffer = stage.buffers[indexed(tensor.buffer)];
    const auto entry = static_cast<int>(
        (tensor.entry + std::int64_t{copy} * tensor.entryStep) %
        buffer.entries);
    char &begun = all.begun[indexed(entry) * indexed(buffer.slots) +
                            indexed(microBatch % buffer.slots)];
    // What is stored has to be all that is there.
    const bool isWhole =
        runtime::elementsOf(tensor) * bytesOf(tensor.type) == buffer.size;
    if (begun == 0 && (!adder || !isWhole))
      all.isReadBefore = true;
    else if (adder && begun == 0)
      adder->first.emplace(microBatch, number);
    else if (adder)
      adder->later.insert(microBatch);
    begun = 1;
  }

  Stage &stage;
  std::map<int, Sums> sums; ///< by buffer
};

} // namespace

std::vector<std::string> storeFirstTerms(Stage &stage) {
  return StepOfSums(stage).store();
}

} // namespace mtplan::codegen
