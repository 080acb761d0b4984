//===- state_slices.cpp - What one rank has of the whole state ------------===//

#include "runtime/checkpoint/state_slices.h"

namespace mtplan::runtime {

namespace {

class Slices {
public:
  Slices(const ModelState &theState, const RankPlace &thePlace)
      : state(theState), place(thePlace) {}

  void add(const Parameter &parameter, StateKind kind, const Tensor &tensor) {
    for (int copy = 0; copy < parameter.copies; ++copy)
      slices.push_back({state.find(stateName(parameter, copy, kind)),
                        place.viewOf(tensor), &tensor, copy});
  }

  std::vector<StateSlice> slices;

private:
  const ModelState &state;
  const RankPlace &place;
};

const Stage &stageOf(const Plan &plan, const RankPlace &place) {
  return plan.stages[static_cast<std::size_t>(place.stage())];
}

} // namespace

std::vector<StateSlice> ownedSlices(const Plan &plan, const ModelState &state,
                                    const RankPlace &place) {
  Slices owned(state, place);
  for (const Parameter &parameter : stageOf(plan, place).parameters) {
    const bool first = std::ranges::all_of(
        parameter.alike, [&](int axis) { return place.placeOn(axis) == 0; });
    if (parameter.countedElsewhere || !first)
      continue;
    // Without a master, values are split as the rest.
    owned.add(parameter, StateKind::weight,
              parameter.master ? *parameter.master : parameter.value);
    owned.add(parameter, StateKind::firstMoment, parameter.firstMoment);
    owned.add(parameter, StateKind::secondMoment, parameter.secondMoment);
  }
  return std::move(owned.slices);
}

std::vector<StateSlice> neededSlices(const Plan &plan, const ModelState &state,
                                     const RankPlace &place) {
  Slices needed(state, place);
  for (const Parameter &parameter : stageOf(plan, place).parameters) {
    needed.add(parameter, StateKind::weight, parameter.value);
    if (parameter.master)
      needed.add(parameter, StateKind::weight, *parameter.master);
    needed.add(parameter, StateKind::firstMoment, parameter.firstMoment);
    needed.add(parameter, StateKind::secondMoment, parameter.secondMoment);
  }
  return std::move(needed.slices);
}

} // namespace mtplan::runtime
