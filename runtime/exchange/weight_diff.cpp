//===- weight_diff.cpp - Compares two models ------------------------------===//

#include "runtime/exchange/weight_diff.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "runtime/backend/element.h"

namespace mtplan::runtime {

namespace {

bool hasMoments(const WeightSource &source) {
  return std::ranges::any_of(source.tensors(), [](const auto &tensor) {
    return tensor.second.kind != StateKind::weight;
  });
}

// Compares two tensors of one shape.
void compare(const WeightSource &first, const WeightSource &second,
             WeightDifference &difference) {
  const std::vector<std::byte> a = first.read(difference.name);
  const std::vector<std::byte> b = second.read(difference.name);
  const ElementType typeA = difference.first->type,
                    typeB = difference.second->type;
  if (typeA == typeB && a == b)
    return;
  for (std::int64_t i = 0; i < difference.first->elements(); ++i) {
    const double x = readElement(typeA, a.data(), i);
    const double y = readElement(typeB, b.data(), i);
    difference.size = std::max(difference.size, std::abs(x));
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    const double distance = std::isfinite(x) && std::isfinite(y)
                                ? std::abs(x - y)
                                : std::numeric_limits<double>::infinity();
    if (difference.elements++ == 0 || distance > difference.largest) {
      difference.largest = distance;
      difference.at = i;
    }
  }
}

} // namespace

WeightComparison compareWeights(const WeightSource &first,
                                const WeightSource &second) {
  WeightComparison comparison;
  comparison.withoutMoments = hasMoments(first) != hasMoments(second);
  std::set<std::string> names;
  for (const WeightSource *source : {&first, &second})
    for (const auto &[name, tensor] : source->tensors())
      if (tensor.kind == StateKind::weight || !comparison.withoutMoments)
        names.insert(name);
  auto find = [](const WeightSource &source, const std::string &name) {
    const auto found = source.tensors().find(name);
    return found == source.tensors().end() ? std::nullopt
                                           : std::optional(found->second);
  };
  for (const std::string &name : names) {
    WeightDifference difference;
    difference.name = name;
    difference.first = find(first, name);
    difference.second = find(second, name);
    const bool both = difference.first && difference.second;
    comparison.tensors += both ? 1 : 0;
    const bool alike =
        both && difference.first->shape == difference.second->shape;
    if (alike)
      compare(first, second, difference);
    if (!alike || difference.elements > 0)
      comparison.differences.push_back(std::move(difference));
  }
  return comparison;
}

} // namespace mtplan::runtime
