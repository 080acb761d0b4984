//===- workspace_limit.cpp - Repeats with too large a workspace -----------===//

#include "planner/search/stage/workspace_limit.h"

#include <algorithm>
#include <deque>

#include "planner/integers.h"
#include "planner/search/space/segment_runs.h"
#include "planner/solve/chain_tables.h"
#include "planner/solve/elimination_plan.h"

namespace mtplan::planner {

namespace {

double shardBytes(const Use &use, const Strategy &strategy,
                  const std::vector<Tensor> &tensors, const Mesh &mesh) {
  const Tensor &tensor = tensors[at(use.tensor)];
  double bytes = tensorBytes(tensor.shape, tensor.elementBytes);
  for (int factor : use.factors)
    for (std::size_t a = 0; factor >= 0 && a < strategy.axes.size(); ++a)
      if (strategy.axes[a] == factor)
        bytes /= mesh.axes[a].size;
  return bytes;
}

// Returns the bytes of the operands and results of `op` on one rank, with the
// split that needs least. Inputs, parameters and saved values are not included,
// because they are counted elsewhere.
double leastWorkingSet(const Op &op, const std::vector<Strategy> &strategies,
                       const std::vector<Tensor> &tensors,
                       const std::vector<int> &savedVariables,
                       const std::vector<int> &tiles, const Mesh &mesh) {
  double least = kInfinity;
  for (const Strategy &strategy : strategies) {
    double bytes = 0.0;
    for (const std::vector<Use> *uses : {&op.operands, &op.results})
      for (const Use &use : *uses) {
        std::size_t index = at(use.tensor);
        if (tensors[index].kind == TensorKind::activation &&
            savedVariables[index] < 0)
          bytes += shardBytes(use, strategy, tensors, mesh) / tiles[index];
      }
    least = std::min(least, bytes);
  }
  return least;
}

// Returns a lower bound of the bytes of a segment's inputs: for each input, the
// maximum over its readers of the smallest shard that a strategy of the reader
// needs.
double leastInputs(const SegmentGraph &segment, const SegmentProblem &problem,
                   const Mesh &mesh) {
  std::vector<double> least(segment.tensors.size(), 0.0);
  for (std::size_t o = 0; o < segment.ops.size(); ++o)
    for (const Use &use : segment.ops[o].operands) {
      std::size_t index = at(use.tensor);
      if (segment.tensors[index].kind != TensorKind::input)
        continue;
      double smallest = kInfinity;
      for (const Strategy &strategy : problem.strategies[o])
        smallest = std::min(smallest,
                            shardBytes(use, strategy, segment.tensors, mesh));
      least[index] = std::max(least[index], smallest);
    }
  double bytes = 0.0;
  for (double one : least)
    bytes += one;
  return bytes;
}

} // namespace

double workspaceReserve(const ModelGraph &graph,
                        const std::vector<HeldSegment> &held,
                        const Setting &setting) {
  const Mesh &mesh = setting.mesh;
  double most = 0.0, inputs = 0.0;
  int before = -1;
  for (const HeldSegment &one : held) {
    if (one.segment == std::exchange(before, one.segment))
      continue;
    const SegmentGraph &segment = graph.segments[at(one.segment)];
    std::vector<int> tiles = tilesOfTensors(graph, segment, setting);
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      most = std::max(
          most, leastWorkingSet(segment.ops[o], one.problem->strategies[o],
                                segment.tensors, one.problem->savedVariables,
                                tiles, mesh));
    inputs += leastInputs(segment, *one.problem, mesh);
  }
  return 2.0 * most + inputs;
}

Forbidden forbiddenBy(const SegmentGraph &segment,
                      const SegmentProblem &problem, int link,
                      const Assignment &assignment,
                      const std::vector<int> &tensors) {
  std::vector<int> variables;
  auto add = [&](int variable) {
    if (variable >= 0 && !contains(variables, variable))
      variables.push_back(variable);
  };
  for (int tensor : tensors) {
    for (std::size_t o = 0; o < segment.ops.size(); ++o)
      for (const std::vector<Use> *uses :
           {&segment.ops[o].operands, &segment.ops[o].results})
        for (const Use &use : *uses)
          if (use.tensor == tensor)
            add(static_cast<int>(o));
    for (const Conversions &conversions : problem.conversions)
      if (conversions.tensor == tensor) {
        add(conversions.maker.variable);
        add(conversions.setVariable);
        for (const Port &reader : conversions.readers)
          add(reader.variable);
      }
  }
  std::ranges::sort(variables);
  Forbidden forbidden{link, {}};
  for (int variable : variables)
    forbidden.values.emplace_back(variable, assignment[at(variable)]);
  return forbidden;
}

double eliminationWork(const Link &link) {
  std::vector<std::vector<int>> scopes;
  for (const CostTable &table : link.problem.tables)
    scopes.push_back(table.scope);
  return planElimination(link.problem.domains, scopes, keptVariables(link))
      .work;
}

void forbid(Problem &problem, const Forbidden &forbidden) {
  const auto &values = forbidden.values;
  // Adds a table over `scope` that forbids values unless `isLegal` is true.
  auto addTable = [&](std::vector<int> scope, auto isLegal) {
    CostTable table{std::move(scope), {}, {}};
    std::vector<int> at0(table.scope.size(), 0);
    for (;;) {
      table.time.push_back(isLegal(at0) ? 0.0 : kInfinity);
      std::size_t v = at0.size();
      while (v > 0 && ++at0[v - 1] == problem.domains[at(table.scope[v - 1])])
        at0[--v] = 0;
      if (v == 0)
        break;
    }
    problem.tables.push_back(std::move(table));
  };
  auto isForbidden = [&](std::size_t i, int value) {
    return values[i].second == value;
  };
  if (values.size() == 1) {
    addTable({values[0].first},
             [&](const auto &v) { return !isForbidden(0, v[0]); });
    return;
  }
  // The variable `agree` is 1 if all variables so far have their forbidden
  // values.
  int agree = -1;
  for (std::size_t i = 1; i + 1 < values.size(); ++i) {
    const int next = static_cast<int>(problem.domains.size());
    problem.domains.push_back(2);
    if (agree < 0)
      addTable({values[0].first, values[1].first, next}, [&](const auto &v) {
        return v[2] == (isForbidden(0, v[0]) && isForbidden(1, v[1]) ? 1 : 0);
      });
    else
      addTable({agree, values[i].first, next}, [&](const auto &v) {
        return v[2] == (v[0] == 1 && isForbidden(i, v[1]) ? 1 : 0);
      });
    agree = next;
  }
  const std::size_t last = values.size() - 1;
  if (agree < 0)
    addTable({values[0].first, values[1].first}, [&](const auto &v) {
      return !(isForbidden(0, v[0]) && isForbidden(1, v[1]));
    });
  else
    addTable({agree, values[last].first}, [&](const auto &v) {
      return !(v[0] == 1 && isForbidden(last, v[1]));
    });
}

// The reserve ignores pins, so that a plan that fits still fits when it is
// pinned.
Bytes workspaceReserveOf(const ModelGraph &graph, const Setting &setting,
                         const std::vector<int> &repeats) {
  Setting free = setting;
  free.pins = nullptr;
  const std::vector<bool> owner(graph.parameters.size(), true);
  std::deque<SegmentProblem> problems;
  std::vector<HeldSegment> held;
  for (std::size_t s = 0; s < repeats.size(); ++s)
    if (repeats[s] > 0) {
      auto segment = static_cast<int>(s);
      problems.push_back(unitProblem(graph, segment, free, owner));
      held.push_back({segment, &problems.back()});
    }
  return {workspaceReserve(graph, held, setting)};
}

} // namespace mtplan::planner
