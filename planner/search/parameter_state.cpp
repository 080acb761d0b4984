//===- parameter_state.cpp - How a parameter may be kept, and its price ---===//

#include "planner/search/segment_problem.h"

namespace mtplan::planner {

Layout accumulatorLayout(const ParameterState &state, const Mesh &mesh) {
  Layout layout = state.stored;
  if (mesh.axes[kDataAxis].size > 1)
    layout = withPlacement(layout, kDataAxis, kPartial);
  if (state.reduceOncePerStep)
    layout = withPlacement(layout, kTensorAxis, kPartial);
  return layout;
}

// The layouts a pin or the allowed splits leave to store a parameter in.
static std::vector<Layout> storedLayouts(const Parameter &parameter,
                                         const std::vector<std::string> *pin,
                                         const Setting &setting) {
  std::size_t rank = parameter.shape.size();
  Layout whole = Layout::whole(rank);
  int size = setting.mesh.axes[kTensorAxis].size;
  std::vector<Layout> layouts;
  auto wanted = [&](int split) {
    for (std::size_t d = 0; pin && d < rank; ++d)
      if (((*pin)[d] == "tp") != (static_cast<int>(d) == split))
        return false;
    return true;
  };
  // One rank along the axis: a split is no split, so a pin is kept either way.
  if (size == 1 || wanted(-1))
    layouts.push_back(whole);
  for (std::size_t d = 0; d < rank && size > 1; ++d)
    if (parameter.divisible && parameter.shape[d] % size == 0 &&
        (pin || setting.rules[kTensorAxis].has(parameter.splits[d])) &&
        wanted(static_cast<int>(d)))
      layouts.push_back(withPlacement(whole, kTensorAxis, static_cast<int>(d)));
  return layouts;
}

std::vector<ParameterState> parameterStates(const ModelGraph &model,
                                            int parameter,
                                            const Setting &setting) {
  auto index = static_cast<std::size_t>(parameter);
  const std::vector<std::string> *pin = nullptr;
  if (setting.pins && index < setting.pins->parameters.size() &&
      setting.pins->parameters[index])
    pin = &*setting.pins->parameters[index];
  std::vector<ParameterState> states;
  for (const Layout &layout :
       storedLayouts(model.parameters[index], pin, setting)) {
    states.push_back({layout, false});
    if (setting.mesh.axes[kTensorAxis].size > 1)
      states.push_back({layout, true});
  }
  return states;
}

Seconds accumulationTime(const Parameter &parameter,
                         const ParameterState &state, const Setting &setting) {
  const Device &device = setting.machine->device;
  Bytes accumulator{
      localBytes(parameter.shape, accumulatorLayout(state, setting.mesh),
                 stateBytesOf(setting.precision).gradient, setting.mesh)};
  return accumulator / (device.bandwidth * device.bandwidthEfficiency) *
         static_cast<double>(setting.microBatches - 1);
}

Cost parameterCost(const Parameter &parameter, const ParameterState &state,
                   const Setting &setting) {
  StateBytes perElement = stateBytesOf(setting.precision);
  const Mesh &mesh = setting.mesh;
  Layout accumulator = accumulatorLayout(state, mesh);
  double stored = localBytes(parameter.shape, state.stored, 1, mesh);
  double accumulated = localBytes(parameter.shape, accumulator, 1, mesh);
  Cost cost;
  cost.time = reshardTime(accumulator, state.stored, parameter.shape,
                          perElement.gradient, mesh, *setting.machine)
                  .value;
  const Device &device = setting.machine->device;
  cost.time += (Bytes{stored * perElement.traffic} /
                (device.bandwidth * device.bandwidthEfficiency))
                   .value;
  cost.memory = stored * (parameter.elementBytes + perElement.optimizer) +
                accumulated * perElement.gradient;
  return cost;
}

} // namespace mtplan::planner
