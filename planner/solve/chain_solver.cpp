//===- chain_solver.cpp - Many chains of one shape, solved exactly --------===//
//
// solve() does step 1 of the header, and limitMemory() does steps 2 to 5.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_solver.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "planner/solve/chain_gap.h"

namespace mtplan::planner {
namespace {

/// Two times count as equal up to this relative difference.
constexpr double kClosed = 1e-9;

/// A new vertex of the convex hull must be below the line through two known
/// vertices by more than this relative distance.
constexpr double kNewVertex = 1e-12;

/// Each cut finds a new vertex of the hull, so this limit is reached only if
/// rounding makes the cuts cycle.
constexpr int kMostCuts = 64;

const ChainProblem &checked(const ChainProblem &shape) {
  std::vector<std::string> errors = check(shape);
  if (!errors.empty())
    throw std::invalid_argument(errors.front());
  return shape;
}

/// Holds the greatest value of the Lagrangian dual so far.
struct Dual {
  double bound = -kInfinity; ///< the dual's value, a lower bound in seconds
  double lambda = 0.0;       ///< the multiplier, in seconds per byte
  double least = 0.0;        ///< the least Lagrangian cost at `lambda`
};

bool isClosed(double lowerBound, double time) {
  return time - lowerBound <= kClosed * std::abs(time);
}

} // namespace

ChainSolver::ChainSolver(const ChainProblem &theShape)
    : shape(checked(theShape)), tables(theShape) {
  for (Link &link : shape.links)
    for (CostTable &table : link.problem.tables) {
      table.time = {};
      table.memory = {};
    }
}

bool ChainSolver::hasShapeOf(const ChainProblem &chain) const {
  bool same = chain.links.size() == shape.links.size();
  for (std::size_t l = 0; same && l < shape.links.size(); ++l) {
    const Link &a = shape.links[l];
    const Link &b = chain.links[l];
    same = a.in == b.in && a.out == b.out && a.shared == b.shared &&
           a.problem.domains == b.problem.domains &&
           a.problem.tables.size() == b.problem.tables.size();
    for (std::size_t t = 0; same && t < a.problem.tables.size(); ++t) {
      const CostTable &table = b.problem.tables[t];
      std::size_t size = 1;
      for (int variable : a.problem.tables[t].scope)
        size *= static_cast<std::size_t>(a.problem.domains[variable]);
      same = table.scope == a.problem.tables[t].scope &&
             table.time.size() == size &&
             (table.memory.empty() || table.memory.size() == size);
    }
  }
  return same;
}

ChainSolution ChainSolver::solve(const ChainProblem &chain,
                                 SolveLimits limits) {
  if (!hasShapeOf(chain))
    throw std::invalid_argument("the chain differs in shape from the solver's");
  ChainSolution solution;
  double fastest =
      tables.prepare(chain) ? tables.run(chain, {1.0, 0.0}) : kInfinity;
  solution.lowerBound = fastest;
  if (fastest == kInfinity) {
    solution.cost.time = kInfinity;
    return solution;
  }
  if (fastest > limits.stopAbove) {
    solution.abandoned = true;
    return solution;
  }
  solution.runs = tables.decode(chain);
  solution.cost = costOf(chain, solution.runs);
  if (solution.cost.memory <= chain.memoryLimit) {
    solution.feasible = true;
    solution.optimal = true;
    return solution;
  }
  limitMemory(chain, limits, solution);
  solution.limited = true;
  return solution;
}

std::vector<LeastCost>
ChainSolver::least(const ChainProblem &chain,
                   const std::vector<Objective> &objectives) {
  if (!hasShapeOf(chain))
    throw std::invalid_argument("the chain differs in shape from the solver's");
  std::vector<LeastCost> all;
  bool legal = tables.prepare(chain);
  for (const Objective &objective : objectives) {
    LeastCost one{kInfinity, std::vector(chain.links.size(), kInfinity)};
    if (legal) {
      one.total = tables.run(chain, objective);
      for (std::size_t l = 0; l < chain.links.size(); ++l)
        one.byLink[l] =
            std::ranges::min(tables.table(static_cast<int>(l)).costs());
    }
    all.push_back(std::move(one));
  }
  return all;
}

/// Replaces `solution` with the best solution found within the memory limit or,
/// if none fits, with the smallest solution. On entry, `solution` is the
/// fastest solution of all and exceeds the limit.
void ChainSolver::limitMemory(const ChainProblem &chain,
                              const SolveLimits &limits,
                              ChainSolution &solution) {
  Cost large = solution.cost;
  const std::vector<std::vector<double>> timeCosts = tables.costs();
  std::vector<std::vector<Run>> vertices = {std::move(solution.runs)};
  tables.run(chain, {0.0, 1.0});
  Incumbent incumbent;
  incumbent.runs = tables.decode(chain);
  incumbent.cost = costOf(chain, incumbent.runs);
  if (incumbent.cost.memory > chain.memoryLimit) {
    solution.runs = std::move(incumbent.runs);
    solution.cost = incumbent.cost;
    solution.lowerBound = kInfinity;
    return;
  }
  std::vector<std::vector<double>> memoryCosts = tables.costs();
  vertices.push_back(incumbent.runs);
  incumbent.lowerBound = solution.lowerBound;

  auto abandon = [&] {
    solution = {};
    solution.lowerBound = incumbent.lowerBound;
    solution.abandoned = true;
  };

  Dual dual = {incumbent.lowerBound, 0.0, incumbent.lowerBound};
  double lambdaRun = -1.0;
  Cost small = incumbent.cost;
  for (int cut = 0; cut < kMostCuts && small.time > large.time; ++cut) {
    double lambda = (small.time - large.time) / (large.memory - small.memory);
    double least = tables.run(chain, {1.0, lambda});
    lambdaRun = lambda;
    double bound = least - lambda * chain.memoryLimit;
    if (bound > dual.bound)
      dual = {bound, lambda, least};
    incumbent.lowerBound = dual.bound;
    if (dual.bound > limits.stopAbove)
      return abandon();
    double line = large.time + lambda * large.memory;
    bool isNew = least < line - kNewVertex * std::abs(line);
    vertices.push_back(tables.decode(chain));
    Cost cost = costOf(chain, vertices.back());
    if (cost.memory <= chain.memoryLimit && cost.time < incumbent.cost.time) {
      incumbent.runs = vertices.back();
      incumbent.cost = cost;
    }
    if (!isNew || isClosed(dual.bound, incumbent.cost.time))
      break;
    (cost.memory <= chain.memoryLimit ? small : large) = cost;
  }

  bool closed = isClosed(incumbent.lowerBound, incumbent.cost.time);
  if (!closed && limits.points > 0) {
    if (lambdaRun != dual.lambda)
      tables.run(chain, {1.0, dual.lambda});
    ChainGap gap(chain, tables, timeCosts, memoryCosts, dual.lambda,
                 dual.least);
    gap.mix(vertices, {limits.points / 4}, incumbent);
    closed = isClosed(incumbent.lowerBound, incumbent.cost.time);
    if (!closed) {
      PointBudget budget = {limits.points};
      closed = gap.close(limits.stopAbove, budget, incumbent);
    }
  }
  if (closed && incumbent.cost.time > limits.stopAbove)
    return abandon();
  solution.feasible = true;
  solution.optimal = closed;
  solution.runs = std::move(incumbent.runs);
  solution.cost = incumbent.cost;
  solution.lowerBound = std::min(incumbent.lowerBound, incumbent.cost.time);
}

} // namespace mtplan::planner
