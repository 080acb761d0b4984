//===- strategy.cpp - An assignment of mesh axes to factors ---------------===//

#include "planner/graph/strategy.h"

#include <algorithm>
#include <cassert>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

const Factor &factorOf(const Op &op, int index) {
  return op.factors[at(index)];
}

// Returns whether `result` is partial over an axis with this choice; if so,
// sets `reduction`.
bool isPartialOver(const Op &op, int choice, const Use &result,
                   Reduction &reduction) {
  if (choice == kReplicated)
    return false;
  if (choice <= kLinear) {
    reduction = Reduction::sum;
    return true;
  }
  if (contains(result.factors, choice))
    return false;
  reduction = factorOf(op, choice).reduction;
  return true;
}

// Returns whether some result would be a partial sum over one axis and a
// partial maximum over another.
bool mixesReductions(const Op &op, const Strategy &strategy) {
  for (const Use &result : op.results) {
    bool sum = false, max = false;
    Reduction reduction{};
    for (int choice : strategy.axes)
      if (isPartialOver(op, choice, result, reduction))
        (reduction == Reduction::sum ? sum : max) = true;
    if (sum && max)
      return true;
  }
  return false;
}

Layout layoutOf(const Use &use, const Strategy &strategy) {
  Layout layout = Layout::replicated(use.factors.size());
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis) {
    int choice = strategy.axes[axis];
    if (choice < 0)
      continue;
    for (std::size_t d = 0; d < use.factors.size(); ++d)
      if (use.factors[d] == choice) {
        layout.dims[d].push_back(static_cast<int>(axis));
        break;
      }
  }
  return layout;
}

// Returns whether some result is a partial sum over an axis with this choice.
bool leavesSumPartial(const Op &op, int choice) {
  if (choice < 0 || factorOf(op, choice).reduction != Reduction::sum)
    return false;
  return std::ranges::any_of(op.results, [&](const Use &result) {
    return !contains(result.factors, choice);
  });
}

} // namespace

bool AxisRule::has(Split split) const { return contains(splits, split); }

std::vector<Strategy> strategiesOf(const Op &op, const Mesh &mesh,
                                   const std::vector<AxisRule> &rules) {
  assert(rules.size() == mesh.axes.size());
  std::size_t axes = mesh.axes.size();
  std::vector<std::vector<int>> choices(axes);
  for (std::size_t a = 0; a < axes; ++a) {
    int size = mesh.axes[a].size;
    bool taken = false;
    if (size > 1)
      for (std::size_t f = 0; f < op.factors.size(); ++f) {
        const Factor &factor = op.factors[f];
        if (factor.divisible && factor.size % size == 0 &&
            rules[a].has(factor.split)) {
          choices[a].push_back(static_cast<int>(f));
          taken = true;
        }
      }
    // A linear group repeats the work on every rank, like replication.
    if (!taken || rules[a].allowReplicated) {
      choices[a].insert(choices[a].begin(), kReplicated);
      if (size > 1)
        for (std::size_t g = 0; g < op.linearGroups.size(); ++g)
          choices[a].push_back(kLinear - static_cast<int>(g));
    }
  }

  std::vector<Strategy> strategies;
  std::vector<std::size_t> digits(axes, 0);
  Strategy strategy;
  strategy.axes.resize(axes);
  std::vector<std::int64_t> shards(op.factors.size());
  while (true) {
    std::ranges::fill(shards, 1);
    bool legal = true;
    for (std::size_t a = 0; a < axes; ++a) {
      int choice = strategy.axes[a] = choices[a][digits[a]];
      if (choice < 0)
        continue;
      std::int64_t &product = shards[at(choice)];
      product *= mesh.axes[a].size;
      legal = legal && factorOf(op, choice).size % product == 0;
    }
    if (legal && !mixesReductions(op, strategy))
      strategies.push_back(strategy);
    std::size_t a = axes;
    while (a > 0 && ++digits[a - 1] == choices[a - 1].size())
      digits[--a] = 0;
    if (a == 0)
      return strategies;
  }
}

Layout operandLayout(const Op &op, const Strategy &strategy, int index) {
  const Use &use = op.operands[at(index)];
  Layout layout = layoutOf(use, strategy);
  bool isAddend = contains(op.addends, index);
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis) {
    int choice = strategy.axes[axis];
    bool partial = choice <= kLinear
                       ? contains(op.linearGroups[at(kLinear - choice)], index)
                       : isAddend && !contains(use.factors, choice) &&
                             leavesSumPartial(op, choice);
    if (partial)
      layout.partial.push_back(static_cast<int>(axis));
  }
  return layout;
}

Layout resultLayout(const Op &op, const Strategy &strategy, int index) {
  const Use &use = op.results[at(index)];
  Layout layout = layoutOf(use, strategy);
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis)
    if (isPartialOver(op, strategy.axes[axis], use, layout.reduction))
      layout.partial.push_back(static_cast<int>(axis));
  return layout;
}

std::string describe(const Op &op, const Strategy &strategy, const Mesh &mesh) {
  std::vector<std::string> words, ofTensorAxes;
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis) {
    const int choice = strategy.axes[axis];
    const bool isTensor = roleOf(mesh.axes[axis]) == AxisRole::tensor;
    if (mesh.axes[axis].size == 1 || (choice == kReplicated && !isTensor))
      continue;
    (isTensor ? ofTensorAxes : words)
        .emplace_back(choice == kReplicated ? "replicated"
                      : choice <= kLinear   ? "partial"
                                          : nameOf(factorOf(op, choice).split));
  }
  ofTensorAxes.erase(std::unique(ofTensorAxes.begin(), ofTensorAxes.end()),
                     ofTensorAxes.end());
  if (ofTensorAxes != std::vector<std::string>{"replicated"})
    words.insert(words.end(), ofTensorAxes.begin(), ofTensorAxes.end());
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " + ") + word;
  return text.empty() ? "replicated" : text;
}

} // namespace mtplan::planner
