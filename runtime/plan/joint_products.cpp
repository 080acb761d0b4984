//===- joint_products.cpp - Products that may be one ----------------------===//

#include "runtime/plan/joint_products.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "runtime/plan/arena_bytes.h"
#include "runtime/plan/instruction_side.h"
#include "runtime/plan/program_order.h"
#include "runtime/plan/program_runs.h"
#include "runtime/plan/then_setting.h"

namespace mtplan::runtime {

namespace {

const Setting *settingOf(const Instruction &instruction, const char *name) {
  const auto &all = std::get<KernelCall>(instruction.what).settings;
  const auto found = std::ranges::find(all, name, &Setting::name);
  return found == all.end() ? nullptr : &*found;
}

/// An einsum by itself, or whose result is added to something.
bool isProduct(const Stage &stage, const Instruction &instruction) {
  const auto *call = std::get_if<KernelCall>(&instruction.what);
  if (!call || call->kernel != "einsum" ||
      sideOf(stage, instruction) != Side::device)
    return false;
  const Setting *then = settingOf(instruction, kThen);
  const auto *word = then ? std::get_if<std::string>(&then->value) : nullptr;
  return !then || (word && (*word == "accumulate" || *word == "add"));
}

/// Whether a product that is done at once with what follows it writes it: that
/// has every second.
bool isWritten(const Instruction &product, std::size_t output) {
  return !settingOf(product, kThen) || output % 2 == 1;
}

bool areAlike(const std::vector<Tensor> &some,
              const std::vector<Tensor> &others) {
  return std::ranges::equal(
      some, others, [](const Tensor &one, const Tensor &other) {
        return one.type == other.type && one.shape == other.shape &&
               one.split == other.split;
      });
}

bool areAlike(const Instruction &one, const Instruction &other) {
  return one.stream == other.stream && areAlike(one.inputs, other.inputs) &&
         areAlike(one.outputs, other.outputs) &&
         std::ranges::equal(std::get<KernelCall>(one.what).settings,
                            std::get<KernelCall>(other.what).settings,
                            [](const Setting &a, const Setting &b) {
                              return a.name == b.name && a.value == b.value;
                            });
}

std::size_t streamsOf(const Program &program) {
  int last = 0;
  for (const Instruction &instruction : program.instructions)
    last = std::max(last, instruction.stream);
  return indexed(last) + 1;
}

/// One program's.
class Products {
public:
  Products(const Stage &theStage, int theProgram)
      : stage(theStage), program(theProgram),
        all(stage.programs[indexed(program)].instructions),
        order(stage.programs[indexed(program)],
              streamsOf(stage.programs[indexed(program)])),
        runs(runsOf(stage, program)) {}

  std::vector<JointProducts> joints() const {
    std::vector<JointProducts> found;
    std::vector<bool> taken(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (taken[i] || !isProduct(stage, all[i]))
        continue;
      std::vector<std::size_t> alike{i};
      for (std::size_t j = i + 1; j < all.size(); ++j)
        if (!taken[j] && isProduct(stage, all[j]) && areAlike(all[i], all[j]) &&
            mayRunAt(i, j))
          alike.push_back(j);
      for (JointProducts &joint : evenOf(std::move(alike))) {
        for (const std::size_t one : joint.instructions)
          taken[one] = true;
        found.push_back(std::move(joint));
      }
    }
    return found;
  }

private:
  ArenaBytes at(const Tensor &tensor, const ProgramRun &run) const {
    return arenaBytesOf(stage, tensor, run.copy, run.microBatch);
  }

  /// Whether the later product may run with the earlier one: nothing that it
  /// follows and the other does not has to do with what it touches.
  bool mayRunAt(std::size_t early, std::size_t late) const {
    for (std::size_t i = 0; i < late; ++i)
      if (order.follows(late, i) && !(i < early && order.follows(early, i)) &&
          meets(all[late], all[i]))
        return false;
    return true;
  }

  /// Whether the product, done at once, has to come after the other.
  bool meets(const Instruction &product, const Instruction &other) const {
    const auto meet = [&](const Tensor &own, const Tensor &its) {
      return std::ranges::any_of(runs, [&](const ProgramRun &run) {
        return at(own, run).meets(at(its, run));
      });
    };
    for (const Tensor &its : other.outputs)
      for (const Tensor &own : product.inputs)
        if (meet(own, its))
          return true;
    for (const auto *some : {&other.inputs, &other.outputs})
      for (const Tensor &its : *some)
        for (std::size_t o = 0; o < product.outputs.size(); ++o)
          if (isWritten(product, o) && meet(product.outputs[o], its))
            return true;
    return false;
  }

  /// Bytes from one product's tensors to another's. None: it differs from run
  /// to run, or they are not to be joined.
  std::optional<JointProducts> between(std::size_t from, std::size_t to) const {
    JointProducts pair{program, {from, to}, {}, {}};
    const auto step = [&](const Tensor &here, const Tensor &there,
                          std::vector<std::int64_t> &steps) {
      const std::int64_t first =
          at(there, runs[0]).begin - at(here, runs[0]).begin;
      steps.push_back(first);
      return std::ranges::all_of(runs, [&](const ProgramRun &run) {
        const ArenaBytes a = at(here, run), b = at(there, run);
        return a.arena == b.arena && b.begin - a.begin == first && first >= 0;
      });
    };
    for (std::size_t i = 0; i < all[from].inputs.size(); ++i)
      if (!step(all[from].inputs[i], all[to].inputs[i], pair.inputs))
        return std::nullopt;
    for (std::size_t o = 0; o < all[from].outputs.size(); ++o)
      if (!isWritten(all[from], o))
        pair.outputs.push_back(0);
      else if (!step(all[from].outputs[o], all[to].outputs[o], pair.outputs))
        return std::nullopt;
    if ((pair.inputs[0] == 0) == (pair.inputs[1] == 0))
      return std::nullopt;
    return pair;
  }

  std::vector<JointProducts> evenOf(std::vector<std::size_t> alike) const {
    std::ranges::stable_sort(alike, {}, [&](std::size_t i) {
      return at(all[i].outputs.back(), runs[0]).begin;
    });
    std::vector<JointProducts> found;
    bool goesOn = false;
    for (std::size_t i = 0; i + 1 < alike.size(); ++i) {
      std::optional<JointProducts> next = between(alike[i], alike[i + 1]);
      // A pair that steps otherwise shares its first with those before.
      const bool starts = next && !goesOn;
      goesOn = next && (starts || (found.back().inputs == next->inputs &&
                                   found.back().outputs == next->outputs));
      if (starts)
        found.push_back(std::move(*next));
      else if (goesOn)
        found.back().instructions.push_back(alike[i + 1]);
    }
    return found;
  }

  const Stage &stage;
  const int program;
  const std::vector<Instruction> &all;
  const ProgramOrder order;
  const std::vector<ProgramRun> runs;
};

} // namespace

std::size_t JointProducts::earliest() const {
  return std::ranges::min(instructions);
}

std::vector<JointProducts> jointProducts(const Stage &stage) {
  std::set<int> updates, seen;
  for (const auto *entries : {&stage.reduce, &stage.apply})
    for (const ScheduleEntry &entry : *entries)
      updates.insert(entry.program);
  std::vector<JointProducts> joints;
  for (const ScheduleEntry &entry : stage.schedule)
    if (!updates.contains(entry.program) && seen.insert(entry.program).second)
      for (JointProducts &joint : Products(stage, entry.program).joints())
        joints.push_back(std::move(joint));
  return joints;
}

} // namespace mtplan::runtime
