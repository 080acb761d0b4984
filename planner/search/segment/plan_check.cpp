//===- plan_check.cpp - Whether a plan's layouts are consistent -----------===//

#include "planner/search/segment/plan_check.h"

#include <algorithm>

#include "planner/index.h"

namespace mtplan::planner {

namespace {

class RunCheck {
public:
  RunCheck(const ModelGraph &graph, const SegmentPlan &run, const Setting &s,
           std::vector<std::string> &findings)
      : segment(graph.segments[at(run.segment)]), plan(run), setting(s),
        errors(findings) {}

  void run() {
    for (Phase phase : {Phase::forward, Phase::backward}) {
      begin(phase);
      for (const PlannedConversion &change : plan.conversions)
        if (change.phase == phase) {
          expect(change.tensor, change.from, "is changed from");
          there[at(change.tensor)].push_back(change.to);
        }
      for (std::size_t o = 0; o < segment.ops.size(); ++o)
        for (std::size_t i = 0; i < segment.ops[o].operands.size(); ++i)
          if (segment.ops[o].phase == phase)
            expect(
                segment.ops[o].operands[i].tensor,
                wanted(segment, plan, static_cast<int>(o), static_cast<int>(i)),
                "is read as");
      end(phase);
    }
  }

private:
  void begin(Phase phase) {
    there.assign(segment.tensors.size(), {});
    for (std::size_t t = 0; t < there.size(); ++t) {
      const Tensor &tensor = segment.tensors[t];
      bool kept = phase == Phase::backward &&
                  tensor.kind == TensorKind::activation &&
                  tensor.phase == Phase::forward;
      if (const auto &layout = kept ? plan.saved[t] : plan.made[t])
        there[t].push_back(*layout);
    }
  }

  void end(Phase phase) {
    if (phase == Phase::forward) {
      for (std::size_t t = 0; t < there.size(); ++t)
        if (plan.saved[t])
          expect(static_cast<int>(t), *plan.saved[t], "is kept as");
      leave(segment.carriedOut, plan.carriedOut);
      return;
    }
    leave(segment.gradientOut, plan.gradientOut);
    for (const Accumulation &sum : segment.accumulations)
      expect(
          sum.tensor,
          accumulatorLayout(*plan.parameters[at(sum.parameter)], setting.mesh),
          "is added up as");
  }

  void leave(const std::vector<int> &tensors,
             const std::vector<Layout> &layouts) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      expect(tensors[i], layouts[i], "is handed on as");
  }

  // The loader gives every rank the shard of an input that it asks for.
  void expect(int tensor, const Layout &layout, const char *what) {
    if (segment.tensors[at(tensor)].kind == TensorKind::input ||
        std::ranges::find(there[at(tensor)], layout) != there[at(tensor)].end())
      return;
    std::string has;
    for (const Layout &one : there[at(tensor)])
      has += (has.empty() ? "" : " and ") + toString(one, setting.mesh);
    errors.push_back(segment.name + ": " + segment.tensors[at(tensor)].name +
                     ' ' + what + ' ' + toString(layout, setting.mesh) +
                     ", but is there " +
                     (has.empty() ? "in no layout" : "as " + has));
  }

  const SegmentGraph &segment;
  const SegmentPlan &plan;
  const Setting &setting;
  std::vector<std::string> &errors;
  std::vector<std::vector<Layout>> there; ///< by tensor
};

// Compares what `from` passes forward and takes back with what `to` expects.
void checkBorder(const ModelGraph &model, const SegmentPlan &from,
                 const SegmentPlan &to, const Setting &setting,
                 std::vector<std::string> &errors) {
  const SegmentGraph &segment = model.segments[at(from.segment)];
  auto compare = [&](const std::vector<int> &tensors,
                     const std::vector<Layout> &here,
                     const std::vector<Layout> &there, const char *what) {
    for (std::size_t i = 0; i < std::min(here.size(), there.size()); ++i)
      if (here[i] != there[i])
        errors.push_back(segment.name + ": " +
                         segment.tensors[at(tensors[i])].name + " is " + what +
                         ' ' + toString(here[i], setting.mesh) + ", in " +
                         model.segments[at(to.segment)].name + " it is " +
                         toString(there[i], setting.mesh));
  };
  compare(segment.carriedOut, from.carriedOut, to.carriedIn, "handed on as");
  compare(segment.gradientIn, from.gradientIn, to.gradientOut, "taken as");
}

} // namespace

std::vector<std::string> check(const ModelGraph &graph,
                               const std::vector<SegmentPlan> &plans,
                               const Setting &setting) {
  std::vector<std::string> errors;
  std::vector<const ParameterState *> tied(graph.parameters.size(), nullptr);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const SegmentPlan &plan = plans[i];
    RunCheck(graph, plan, setting, errors).run();
    if (plan.count > 1)
      checkBorder(graph, plan, plan, setting, errors);
    if (i + 1 < plans.size())
      checkBorder(graph, plan, plans[i + 1], setting, errors);
    for (std::size_t p = 0; p < plan.parameters.size(); ++p) {
      if (!plan.parameters[p] || !graph.parameters[p].shared)
        continue;
      if (tied[p] && *tied[p] != *plan.parameters[p])
        errors.push_back(graph.segments[at(plan.segment)].name + ": " +
                         graph.parameters[p].name +
                         " is kept otherwise than where it is used first");
      tied[p] = &*plan.parameters[p];
    }
  }
  return errors;
}

} // namespace mtplan::planner
