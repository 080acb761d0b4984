//===- once_tax.cpp - Compute lost beside traffic once a step -------------===//

#include "planner/search/segment/once_tax.h"

#include "planner/integers.h"

namespace mtplan::planner {

namespace {

/// Adds min(tax * traffic, limit) to a problem. The traffic is a sum of times
/// that each depend on one variable.
class LimitedTax {
public:
  LimitedTax(SegmentProblem &theProblem, double theTax, double limit)
      : problem(theProblem), tax(theTax) {
    if (tax == 0.0)
      return;
    std::vector<int> &domains = problem.link.problem.domains;
    choice = static_cast<int>(domains.size());
    domains.push_back(2);
    add({{choice}, {0.0, limit}, {}}, CostScale::perStep);
  }

  /// \param traffic  the seconds for each value of `variable`
  void addTraffic(int variable, const std::vector<double> &traffic,
                  CostScale scale) {
    if (tax == 0.0)
      return;
    CostTable table{{variable, choice}, {}, {}};
    for (double seconds : traffic) {
      table.time.push_back(tax * seconds);
      table.time.push_back(0.0);
    }
    add(std::move(table), scale);
  }

private:
  void add(CostTable table, CostScale scale) {
    problem.link.problem.tables.push_back(std::move(table));
    problem.scales.push_back({scale});
  }

  SegmentProblem &problem;
  const double tax;
  int choice = -1; ///< 0: the traffic counts, 1: the limit
};

} // namespace

void addOnceTax(SegmentProblem &problem, const ModelGraph &model, int segment,
                const Setting &setting, const std::vector<bool> &owner) {
  const SegmentGraph &graph = model.segments[at(segment)];
  const SumWeights weights = setting.weightsOf(segment);
  LimitedTax gather(problem, weights.gatherTax, weights.gatherLimit);
  LimitedTax reduce(problem, weights.reduceTax, weights.reduceLimit);
  for (std::size_t p = 0; p < model.parameters.size(); ++p) {
    const Parameter &parameter = model.parameters[p];
    const int variable = problem.parameterVariables[p];
    if (variable < 0 || (parameter.shared && !owner[p]))
      continue;
    std::vector<double> gathers, reductions;
    for (const ParameterState &state : problem.parameterStates[p]) {
      const OnceTraffic once = onceTraffic(parameter, state, setting);
      gathers.push_back(once.gather.value);
      reductions.push_back(once.reduce.value);
    }
    const CostScale scale =
        parameter.shared ? CostScale::sharedByRepeats : CostScale::perStep;
    gather.addTraffic(variable, gathers, scale);
    reduce.addTraffic(variable, reductions, scale);
  }
  for (std::size_t o = 0; o < graph.ops.size(); ++o)
    for (std::size_t r = 0; r < graph.ops[o].results.size(); ++r) {
      const int t = graph.ops[o].results[r].tensor;
      if (!contains(graph.reported, t))
        continue;
      std::vector<double> reductions;
      for (const Strategy &strategy : problem.strategies[o])
        reductions.push_back(
            reportedReduction(
                graph.tensors[at(t)],
                resultLayout(graph.ops[o], strategy, static_cast<int>(r)),
                setting)
                .value);
      reduce.addTraffic(static_cast<int>(o), reductions, CostScale::perStep);
    }
}

} // namespace mtplan::planner
