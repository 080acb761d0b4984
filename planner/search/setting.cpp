//===- setting.cpp - Words and constants of a candidate -------------------===//

#include "planner/search/setting.h"

namespace mtplan::planner {

Mesh meshOf(int dp, int tp) {
  Mesh mesh;
  mesh.axes = {{"dp", dp}, {"tp", tp}};
  return mesh;
}

const char *wordOf(const Op &op, const Strategy &strategy, int axis) {
  int choice = strategy.axes[static_cast<std::size_t>(axis)];
  if (choice == kWhole)
    return "replicated";
  if (choice <= kLinear)
    return "partial";
  return nameOf(op.factors[static_cast<std::size_t>(choice)].split);
}

StateBytes stateBytesOf(Precision precision) {
  // fp32 needs no master copy: gradient 4, two moments 8. The update reads
  // gradient, master and moments and writes master, moments and weight.
  if (precision == Precision::fp32)
    return {4, 8, 28};
  return {2, 12, 28};
}

} // namespace mtplan::planner
