//===- check_sides.cpp - Who can work where operands lie ------------------===//

#include "runtime/plan/instruction_side.h"
#include "runtime/plan/plan_checks.h"
#include "runtime/plan/plan_words.h"

namespace mtplan::runtime {

namespace {

class StageSides {
public:
  StageSides(const Plan &plan, std::size_t number, Faults &list)
      : stage(plan.stages[number]), s(number), faults(list),
        early(stage.programs.size()) {
    for (const auto *entries : {&stage.schedule, &stage.reduce})
      for (const ScheduleEntry &entry : *entries)
        early[indexed(entry.program)] = true;
  }

  void check() {
    for (p = 0; p < stage.programs.size(); ++p) {
      const std::vector<Instruction> &all = stage.programs[p].instructions;
      for (i = 0; i < all.size(); ++i)
        checkOne(all[i]);
    }
  }

private:
  void checkOne(const Instruction &one) {
    switch (sideOf(stage, one)) {
    case Side::device:
      return;
    case Side::mixed:
      return fail("", "has operands in the host's memory and in the device's; "
                      "only a copy of one tensor leads from one to the other");
    case Side::down:
    case Side::up:
      if (one.inputs[0].type != one.outputs[0].type ||
          one.inputs[0].shape != one.outputs[0].shape)
        fail("/outputs/0", "is " + textOf(one.outputs[0]) + ", but " +
                               textOf(one.inputs[0]) +
                               " is what is copied between the host's memory "
                               "and the device's");
      return;
    case Side::host:
      if (!std::holds_alternative<KernelCall>(one.what))
        fail("", "has operands in the host's memory; there kernels work alone");
      else if (early[p])
        fail("", "works in the host's memory, but \"" + stage.programs[p].name +
                     "\" does not run in /apply alone; before it the host "
                     "only queues");
      return;
    }
  }

  static std::string textOf(const Tensor &tensor) {
    return written(tensor.shape) + " of " + std::string(wordOf(tensor.type));
  }

  void fail(const std::string &member, const std::string &what) {
    faults.add(at("stages", s, "programs", p, "instructions", i) + member,
               what);
  }

  const Stage &stage;
  std::size_t s, p = 0, i = 0;
  Faults &faults;
  std::vector<bool> early; ///< by program: whether it runs before the norm
};

} // namespace

void checkSides(const Plan &plan, Faults &faults) {
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    StageSides(plan, s, faults).check();
}

} // namespace mtplan::runtime
