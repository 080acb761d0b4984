//===- segment_plan.cpp - Reading an assignment back ----------------------===//

#include "planner/search/segment/segment_plan.h"

#include "planner/index.h"

namespace mtplan::planner {

// Returns the layout's index in the tensor's domain.
static int layoutOf(const Port &port, const Assignment &assignment) {
  return port.layouts[at(assignment[at(port.variable)])];
}

static void readConversions(const Conversions &conversions,
                            const SegmentProblem &problem,
                            const Assignment &assignment, SegmentPlan &plan) {
  const LayoutDomain &domain = problem.domains[at(conversions.tensor)];
  unsigned wanted = 0;
  if (conversions.setVariable >= 0)
    wanted = conversions.sets[at(assignment[at(conversions.setVariable)])];
  else
    for (const Port &reader : conversions.readers)
      wanted |= 1U << layoutOf(reader, assignment);
  for (auto [from, to] :
       materialise(domain, layoutOf(conversions.maker, assignment), wanted,
                   conversions.phase))
    plan.conversions.push_back({conversions.tensor, conversions.phase,
                                domain.layouts[at(from)],
                                domain.layouts[at(to)]});
}

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

} // namespace mtplan::planner
