//===- kind_times.cpp - Compute of a run, by kind of operator -------------===//

#include "planner/search/kind_times.h"

#include "planner/search/phase_times.h"
#include "planner/search/recompute.h"
#include "planner/search/tiling.h"

namespace mtplan::planner {

std::map<std::string, Seconds> kindTimesOf(const ModelGraph &model,
                                           const SegmentPlan &plan,
                                           const Setting &setting) {
  const SegmentGraph &segment =
      model.segments[static_cast<std::size_t>(plan.segment)];
  const std::vector<OpRun> runs = opRunsOf(model, segment, setting);
  const std::vector<bool> again =
      operatorsAgain(segment, setting.recompute, *setting.software);
  std::map<std::string, Seconds> times;
  for (std::size_t o = 0; o < segment.ops.size(); ++o) {
    const Op *maker = joinedTo(segment, plan, static_cast<int>(o));
    times[maker ? maker->kind : segment.ops[o].kind] +=
        operatorTime(segment, plan, o, runs[o], setting) *
        (1.0 + (again[o] ? setting.recomputeShare : 0.0));
  }
  for (const Accumulation &sum : segment.accumulations) {
    const auto parameter = static_cast<std::size_t>(sum.parameter);
    times["accumulate"] +=
        accumulationTime(model.parameters[parameter],
                         *plan.parameters[parameter], setting) /
        static_cast<double>(setting.microBatches);
  }
  return times;
}

} // namespace mtplan::planner
