//===- segment_plan.cpp - The choices for a run of repeats ----------------===//

#include "planner/search/segment/segment_plan.h"

#include <algorithm>

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

// Returns the layout of the port, as an index into the tensor's domain.
int layoutOf(const Port &port, const Assignment &assignment) {
  return port.layouts[at(assignment[at(port.variable)])];
}

void readConversions(const Conversions &conversions,
                     const SegmentProblem &problem,
                     const Assignment &assignment, SegmentPlan &plan) {
  const LayoutDomain &domain = problem.domains[at(conversions.tensor)];
  LayoutSet wanted = 0;
  if (conversions.setVariable >= 0)
    wanted = conversions.sets[at(assignment[at(conversions.setVariable)])];
  else
    for (const Port &reader : conversions.readers)
      wanted |= setOf(layoutOf(reader, assignment));
  ConversionTrees trees(domain, conversions.phase);
  for (auto [from, to] :
       trees.conversions(layoutOf(conversions.maker, assignment), wanted))
    plan.conversions.push_back({conversions.tensor, conversions.phase,
                                domain.layouts[at(from)],
                                domain.layouts[at(to)]});
}

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
          expect(change.tensor, change.from, "is converted from");
          existing[at(change.tensor)].push_back(change.to);
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
    existing.assign(segment.tensors.size(), {});
    for (std::size_t t = 0; t < existing.size(); ++t) {
      const Tensor &tensor = segment.tensors[t];
      bool kept = phase == Phase::backward &&
                  tensor.kind == TensorKind::activation &&
                  tensor.phase == Phase::forward;
      if (const auto &layout = kept ? plan.saved[t] : plan.made[t])
        existing[t].push_back(*layout);
    }
  }

  void end(Phase phase) {
    if (phase == Phase::forward) {
      for (std::size_t t = 0; t < existing.size(); ++t)
        if (plan.saved[t])
          expect(static_cast<int>(t), *plan.saved[t], "is saved as");
      leave(segment.carriedOut, plan.carriedOut);
      return;
    }
    leave(segment.gradientOut, plan.gradientOut);
    for (const Accumulation &sum : segment.accumulations)
      expect(
          sum.tensor,
          accumulatorLayout(*plan.parameters[at(sum.parameter)], setting.mesh),
          "is accumulated as");
  }

  void leave(const std::vector<int> &tensors,
             const std::vector<Layout> &layouts) {
    for (std::size_t i = 0; i < tensors.size(); ++i)
      expect(tensors[i], layouts[i], "is passed on as");
  }

  // Inputs are not checked, because the data loader provides any shard.
  void expect(int tensor, const Layout &layout, const char *what) {
    if (segment.tensors[at(tensor)].kind == TensorKind::input ||
        contains(existing[at(tensor)], layout))
      return;
    std::string has;
    for (const Layout &one : existing[at(tensor)])
      has += (has.empty() ? "" : " and ") + toString(one, setting.mesh);
    errors.push_back(segment.name + ": " + segment.tensors[at(tensor)].name +
                     ' ' + what + ' ' + toString(layout, setting.mesh) +
                     ", but exists " +
                     (has.empty() ? "in no layout" : "as " + has));
  }

  const SegmentGraph &segment;
  const SegmentPlan &plan;
  const Setting &setting;
  std::vector<std::string> &errors;
  std::vector<std::vector<Layout>> existing; ///< by tensor
};

// Compares the boundary layouts of `from` and of the next run, `to`.
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
  compare(segment.carriedOut, from.carriedOut, to.carriedIn, "passed on as");
  compare(segment.gradientIn, from.gradientIn, to.gradientOut, "received as");
}

} // namespace

SegmentPlan readAssignment(const ModelGraph &model, int segment,
                           const SegmentProblem &problem,
                           const Assignment &assignment) {
  const SegmentGraph &graph = model.segments[at(segment)];
  SegmentPlan plan;
  plan.segment = segment;
  plan.first = graph.first;
  plan.made.resize(graph.tensors.size());
  plan.saved.resize(graph.tensors.size());
  plan.parameters.resize(model.parameters.size());

  for (std::size_t o = 0; o < graph.ops.size(); ++o) {
    const Op &op = graph.ops[o];
    plan.strategies.push_back(problem.strategies[o][at(assignment[o])]);
    for (std::size_t i = 0; i < op.results.size(); ++i)
      plan.made[at(op.results[i].tensor)] =
          resultLayout(op, plan.strategies.back(), static_cast<int>(i));
  }
  for (std::size_t p = 0; p < model.parameters.size(); ++p)
    if (int variable = problem.parameterVariables[p]; variable >= 0)
      plan.parameters[p] =
          problem.parameterStates[p][at(assignment[at(variable)])];
  for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
    if (graph.tensors[t].kind == TensorKind::parameter)
      plan.made[t] = plan.parameters[at(graph.tensors[t].parameter)]->stored;
    if (int variable = problem.savedVariables[t]; variable >= 0)
      for (const Conversions &conversions : problem.conversions)
        if (conversions.tensor == static_cast<int>(t) &&
            conversions.maker.variable == variable)
          plan.saved[t] =
              problem.domains[t]
                  .layouts[at(layoutOf(conversions.maker, assignment))];
  }

  std::vector<int> boundary = problem.link.in;
  boundary.insert(boundary.end(), problem.link.out.begin(),
                  problem.link.out.end());
  std::size_t next = 0;
  auto read = [&](const std::vector<int> &tensors, std::vector<Layout> &layouts,
                  bool makes) {
    for (int tensor : tensors) {
      layouts.push_back(
          problem.boundary[next][at(assignment[at(boundary[next])])]);
      if (makes)
        plan.made[at(tensor)] = layouts.back();
      ++next;
    }
  };
  read(graph.carriedIn, plan.carriedIn, true);
  read(graph.gradientOut, plan.gradientOut, false);
  read(graph.carriedOut, plan.carriedOut, false);
  read(graph.gradientIn, plan.gradientIn, true);

  for (const Conversions &conversions : problem.conversions)
    readConversions(conversions, problem, assignment, plan);
  return plan;
}

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
                         " has another state than in its first segment");
      tied[p] = &*plan.parameters[p];
    }
  }
  return errors;
}

} // namespace mtplan::planner
