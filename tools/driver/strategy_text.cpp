//===- strategy_text.cpp - Strategies and layouts as text -----------------===//

#include "tools/driver/strategy_text.h"

#include <algorithm>

#include "planner/index.h"

namespace mtplan::tools {

using planner::at;
using planner::Layout;
using planner::Strategy;

namespace {

std::string choiceText(const planner::Op &op, int choice) {
  if (choice > planner::kLinear)
    return op.factors[at(choice)].name;
  int group = planner::kLinear - choice;
  return group == 0 ? "partial" : "partial." + std::to_string(group);
}

/// Splits a text from left to right.
class Cursor {
public:
  explicit Cursor(const std::string &whole) : text(whole) {}

  bool take(std::string_view word) {
    if (text.compare(next, word.size(), word) != 0)
      return false;
    next += word.size();
    return true;
  }
  /// Returns the text up to one of `stops`, or to the end.
  std::string upTo(std::string_view stops) {
    std::size_t end = std::min(text.find_first_of(stops, next), text.size());
    std::string word = text.substr(next, end - next);
    next = end;
    return word;
  }
  bool atEnd() const { return next == text.size(); }

private:
  const std::string &text;
  std::size_t next = 0;
};

} // namespace

std::string strategyText(const planner::Op &op, const Strategy &strategy,
                         const planner::Mesh &mesh) {
  std::string text;
  for (std::size_t axis = 0; axis < strategy.axes.size(); ++axis)
    if (strategy.axes[axis] != planner::kReplicated)
      text += (text.empty() ? "" : " ") + mesh.axes[axis].name + '=' +
              choiceText(op, strategy.axes[axis]);
  return text;
}

// An operator has few strategies, so each is printed and compared with the
// text.
std::optional<Strategy>
readStrategy(const std::string &text, const planner::Op &op,
             const planner::Mesh &mesh,
             const std::vector<planner::AxisRule> &rules, std::string &error) {
  constexpr std::size_t kMostListed = 8;
  std::string legal;
  std::size_t listed = 0;
  std::vector<planner::AxisRule> all = rules;
  all.back().allowReplicated = true;
  for (const Strategy &strategy : planner::strategiesOf(op, mesh, all)) {
    std::string one = strategyText(op, strategy, mesh);
    if (one == text)
      return strategy;
    if (listed++ < kMostListed)
      legal += (legal.empty() ? "\"" : ", \"") + one + '"';
  }
  if (listed > kMostListed)
    legal += " and " + std::to_string(listed - kMostListed) + " more";
  error = "is \"" + text + "\"; may be " + legal;
  return std::nullopt;
}

std::optional<Layout> readLayout(const std::string &text,
                                 const std::vector<std::int64_t> &shape,
                                 const planner::Mesh &mesh,
                                 std::string &error) {
  Layout layout;
  std::vector<bool> used(mesh.axes.size(), false);
  auto fail = [&](const std::string &what) {
    error = "is \"" + text + "\", " + what;
    return std::nullopt;
  };
  auto axisOf = [&](const std::string &name) {
    int axis = mesh.find(name);
    if (axis < 0 || used[at(axis)])
      return -1;
    used[at(axis)] = true;
    return axis;
  };
  Cursor cursor(text);
  if (!cursor.take("["))
    return fail("which is no layout such as [dp, -, tp]");
  while (!cursor.take("]")) {
    if (!layout.dims.empty() && !cursor.take(", "))
      return fail("which is no layout such as [dp, -, tp]");
    layout.dims.emplace_back();
    if (cursor.take("-"))
      continue;
    do {
      std::string name = cursor.upTo("+,]");
      int axis = axisOf(name);
      if (axis < 0)
        return fail("where \"" + name +
                    "\" is no axis of the mesh, or one that is there already");
      layout.dims.back().push_back(axis);
    } while (cursor.take("+"));
    if (!std::ranges::is_sorted(layout.dims.back()))
      return fail("where axes of one dimension are not in the mesh's order");
  }
  if (cursor.take(" partial={"))
    do {
      std::string name = cursor.upTo(":");
      int axis = axisOf(name);
      bool isMax = cursor.take(":max");
      if (axis < 0 || (!isMax && !cursor.take(":sum")))
        return fail("where \"" + name + "\" is no axis with :sum or :max");
      layout.partial.push_back(axis);
      layout.reduction =
          isMax ? planner::Reduction::max : planner::Reduction::sum;
    } while (cursor.take(", "));
  if (!layout.partial.empty() && !cursor.take("}"))
    return fail("which is no layout such as [dp, -, tp]");
  if (!cursor.atEnd())
    return fail("which goes on after the layout");
  if (layout.dims.size() != shape.size())
    return fail("which has " + std::to_string(layout.dims.size()) +
                " dimensions, not " + std::to_string(shape.size()));
  if (!planner::divides(shape, layout, mesh))
    return fail("which does not divide its shape");
  return layout;
}

} // namespace mtplan::tools
