//===- plan_check.cpp - Whether an executable plan fits together ----------===//

#include "runtime/plan/plan_check.h"

#include "runtime/plan/plan_checks.h"

namespace mtplan::runtime {

std::string written(const std::vector<std::int64_t> &shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text += ']';
}

std::int64_t elementsOf(const Tensor &tensor) {
  std::int64_t product = 1;
  for (std::int64_t size : tensor.shape)
    product *= size;
  return product;
}

std::vector<int> stagesOfRanks(const Plan &plan) {
  std::vector<int> stages(indexed(plan.ranks), -1);
  for (std::size_t s = 0; s < plan.stages.size(); ++s)
    for (int rank : plan.stages[s].ranks)
      stages[indexed(rank)] = static_cast<int>(s);
  return stages;
}

std::vector<Phase> phasesOf(const Stage &stage) {
  return {{"schedule", &stage.schedule},
          {"reduce", &stage.reduce},
          {"apply", &stage.apply}};
}

std::vector<std::string> checkPlan(const Plan &plan) {
  Faults faults;
  checkRanges(plan, faults);
  if (faults.any())
    return faults.take();
  checkRanks(plan, faults);
  if (faults.any())
    return faults.take();
  checkSchedule(plan, faults);
  checkCalls(plan, faults);
  checkSides(plan, faults);
  checkParameters(plan, faults);
  checkMemory(plan, faults);
  checkStreams(plan, faults);
  checkOverlap(plan, faults);
  // Which ranks a call joins, and who a message goes to, has to be right.
  if (!faults.any())
    checkMessages(plan, faults);
  return faults.take();
}

} // namespace mtplan::runtime
