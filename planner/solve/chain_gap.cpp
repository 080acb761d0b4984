//===- chain_gap.cpp - Closing the gap of the Lagrangian bound ------------===//
//
// Comparisons with a gap have a tolerance, so that rounding may add a point but
// never removes one. A label's excess is relative to the cheapest path to the
// label's state. The excess may be as large as the gap minus the excess of the
// cheapest complete path through that state.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_gap.h"

#include <algorithm>
#include <cmath>

namespace mtplan::planner {

namespace {

/// Each trial multiplies the gap by kGrowth, so that trial kTrials has the full
/// gap.
constexpr double kGrowth = 4.0;
constexpr int kTrials = 5;

std::size_t stateOf(const Problem &problem, const std::vector<int> &boundary,
                    const Assignment &assignment) {
  std::size_t state = 0;
  for (int variable : boundary)
    state = state * static_cast<std::size_t>(problem.domains[variable]) +
            static_cast<std::size_t>(assignment[variable]);
  return state;
}

std::size_t sharedOf(const Link &link, const LinkTable &table,
                     const Assignment &assignment) {
  std::size_t number = 0;
  for (std::size_t k = 0; k < table.sharedIds().size(); ++k)
    for (auto [variable, id] : link.shared)
      if (id == table.sharedIds()[k]) {
        number = number * static_cast<std::size_t>(table.sharedDomains()[k]) +
                 static_cast<std::size_t>(assignment[variable]);
        break;
      }
  return number;
}

struct PathLimits {
  double gap = 0.0;    ///< limits the path's Lagrangian cost minus the least
  double time = 0.0;   ///< may be exceeded by rounding alone
  double memory = 0.0; ///< never exceeded
};

/// Adds the labels that reach state `to` of boundary `i + 1` to `labels`.
/// Returns false if the budget ran out.
bool extend(const ParetoChain &chain, const ParetoSets &before, std::size_t i,
            std::size_t to, double slack, const PathLimits &limits,
            PointBudget &budget, FrontMerger &labels) {
  std::vector<ParetoPoint> front;
  const Stage &stage = chain.stages[i];
  const ParetoSets &sets = *chain.sets[i];
  double reached = chain.fromStart[i + 1][to];
  double room = limits.memory - chain.memoryToEnd[i + 1][to];
  double latest = limits.time - chain.timeToEnd[i + 1][to];
  for (std::size_t turn = 0; turn < stage.in; ++turn) {
    // The first of equal labels stays, so the label that does not change the
    // state is added first.
    std::size_t from = turn;
    if (to < stage.in)
      from = turn == 0 ? to : turn - (turn <= to ? 1 : 0);
    int entry = chain.entries[i][from * stage.out + to];
    if (entry < 0 || before.first(from) == before.last(from))
      continue;
    const ParetoPoint *first = sets.first(entry);
    const ParetoPoint *last = sets.last(entry);
    double more =
        chain.fromStart[i][from] + stage.cost[from * stage.out + to] - reached;
    if (first == last || !(more <= slack))
      continue;
    for (const ParetoPoint *q = first; q != last; ++q) {
      if (q->excess + more > slack)
        break;
      // The labels of `from` are a Pareto front in order of memory, and all are
      // extended by the same point `q`, so `front` is a Pareto front, too.
      for (const ParetoPoint *p = before.first(from); p != before.last(from);
           ++p) {
        double excess = p->excess + more + q->excess;
        double memory = p->memory + q->memory, time = p->time + q->time;
        if (memory > room)
          break;
        if (excess <= slack && time <= latest)
          front.push_back({time, memory, excess,
                           static_cast<int>(p - before.points.data()),
                           static_cast<int>(q - sets.points.data())});
      }
      if (!budget.spend(static_cast<std::int64_t>(front.size())))
        return false;
      if (!front.empty())
        labels.add(front);
    }
  }
  return true;
}

/// Finds the fastest path within the limits. Returns false if the budget ran
/// out first.
bool fastestWithin(const ParetoChain &chain, const PathLimits &limits,
                   double indifference, PointBudget &budget,
                   ParetoPath &found) {
  found = {};
  std::size_t count = chain.stages.size();
  std::vector<ParetoSets> labels(count + 1);
  std::vector<ParetoPoint> reaching;
  FrontMerger merger;
  auto slackAt = [&](std::size_t boundary, std::size_t state) {
    return limits.gap - (chain.fromStart[boundary][state] +
                         chain.toEnd[boundary][state] - chain.least);
  };
  labels[0].clear();
  for (std::size_t s = 0; s < chain.stages[0].in; ++s) {
    reaching.clear();
    if (slackAt(0, s) >= 0.0)
      reaching.emplace_back();
    labels[0].append(reaching);
  }
  for (std::size_t i = 0; i < count; ++i) {
    labels[i + 1].clear();
    for (std::size_t to = 0; to < chain.stages[i].out; ++to) {
      double slack = slackAt(i + 1, to);
      if (slack >= 0.0 &&
          !extend(chain, labels[i], i, to, slack, limits, budget, merger))
        return false;
      merger.take(indifference, reaching);
      labels[i + 1].append(reaching);
    }
  }

  const ParetoPoint *best = nullptr;
  std::size_t state = 0;
  for (std::size_t t = 0; t < chain.stages.back().out; ++t)
    for (const ParetoPoint *p = labels[count].first(t);
         p != labels[count].last(t); ++p)
      if (best == nullptr || p->time < best->time ||
          (p->time == best->time && p->memory < best->memory)) {
        best = p;
        state = t;
      }
  if (best == nullptr)
    return true;
  found.cost = {best->time, best->memory};
  found.repeats.resize(count);
  for (std::size_t i = count; i-- > 0;) {
    ParetoPath::Repeat &repeat = found.repeats[i];
    repeat.out = state;
    repeat.point = chain.sets[i]->points.data() + best->right;
    auto parent = static_cast<std::size_t>(best->left);
    const std::vector<std::size_t> &begin = labels[i].begin;
    state = static_cast<std::size_t>(
        std::upper_bound(begin.begin(), begin.end(), parent) - begin.begin() -
        1);
    repeat.in = state;
    best = labels[i].points.data() + parent;
  }
  return true;
}

} // namespace

ChainGap::ChainGap(const ChainProblem &theChain, const ChainTables &theTables,
                   const std::vector<std::vector<double>> &timeCosts,
                   const std::vector<std::vector<double>> &memoryCosts,
                   double theLambda, double theLeast)
    : chain(theChain), tables(theTables), lambda(theLambda), least(theLeast),
      bound(theLeast - theLambda * theChain.memoryLimit),
      indifference(1e-13 * std::abs(bound)), chains(theTables.sharedCount()) {
  for (std::size_t c = 0; c < chains.size(); ++c) {
    ParetoChain &one = chains[c];
    one.stages = tables.stages(c);
    distancesFromStart(one.stages, one.fromStart);
    distancesToEnd(one.stages, one.toEnd);
    distancesToEnd(tables.stages(c, &memoryCosts), one.memoryToEnd);
    distancesToEnd(tables.stages(c, &timeCosts), one.timeToEnd);
    one.least = *std::min_element(one.toEnd[0].begin(), one.toEnd[0].end());
    for (const Stage &stage : one.stages) {
      const LinkTable &table = tables.table(stage.link);
      one.entries.push_back(
          table.entries().data() +
          table.position(tables.localShared(stage.link, c), 0, 0));
    }
  }
}

double ChainGap::tolerance(const Incumbent &incumbent) const {
  return 1e-11 * (std::abs(least) + std::abs(incumbent.cost.time) +
                  std::abs(lambda * chain.memoryLimit));
}

bool ChainGap::search(double gap, double latest, PointBudget &budget,
                      const std::vector<const ParetoSets *> &sets,
                      ParetoPath &best, std::size_t &combination) {
  best = {};
  for (std::size_t c = 0; c < chains.size(); ++c) {
    ParetoChain &one = chains[c];
    double remaining = gap - (one.least - least);
    if (!(remaining >= 0.0))
      continue;
    one.sets.clear();
    for (const Stage &stage : one.stages)
      one.sets.push_back(sets[stage.link]);
    ParetoPath found;
    PathLimits limits = {remaining, latest, chain.memoryLimit};
    if (!fastestWithin(one, limits, indifference, budget, found))
      return false;
    if (!found.repeats.empty() &&
        (best.repeats.empty() || found.cost.time < best.cost.time)) {
      best = std::move(found);
      combination = c;
    }
  }
  return true;
}

void ChainGap::mix(const std::vector<std::vector<Run>> &solutions,
                   PointBudget budget, Incumbent &incumbent) {
  std::vector<Assignment> assignments;
  std::vector<ParetoSets> sets(chain.links.size());
  std::vector<const ParetoSets *> pointers;
  for (std::size_t l = 0; l < chain.links.size(); ++l) {
    const Link &link = chain.links[l];
    const LinkTable &table = tables.table(static_cast<int>(l));
    std::vector<std::vector<ParetoPoint>> byEntry(
        table.elimination().tableSize());
    for (const std::vector<Run> &runs : solutions)
      for (const Run &run : runs) {
        if (run.link != static_cast<int>(l))
          continue;
        std::size_t position =
            table.position(sharedOf(link, table, run.assignment),
                           stateOf(link.problem, link.in, run.assignment),
                           stateOf(link.problem, link.out, run.assignment));
        Cost cost = costOf(link.problem, run.assignment);
        double excess =
            cost.time + lambda * cost.memory - table.costs()[position];
        byEntry[table.entries()[position]].push_back(
            {cost.time, cost.memory, std::max(excess, 0.0),
             static_cast<int>(assignments.size()), -1});
        assignments.push_back(run.assignment);
      }
    sets[l].clear();
    for (std::vector<ParetoPoint> &points : byEntry) {
      keepPareto(points, 0.0);
      sets[l].appendByExcess(points);
    }
  }
  pointers.reserve(sets.size());
  for (const ParetoSets &set : sets)
    pointers.push_back(&set);

  double slack = tolerance(incumbent);
  double gap = (incumbent.cost.time - bound) / std::pow(kGrowth, kTrials - 1);
  for (int trial = 0; trial < kTrials; ++trial, gap *= kGrowth) {
    ParetoPath found;
    std::size_t combination = 0;
    if (!search(gap + slack, incumbent.cost.time, budget, pointers, found,
                combination))
      return;
    if (found.repeats.empty())
      continue;
    if (found.cost.time >= incumbent.cost.time)
      return;
    std::vector<Assignment> repeats;
    repeats.reserve(found.repeats.size());
    for (const ParetoPath::Repeat &repeat : found.repeats)
      repeats.push_back(assignments[repeat.point->left]);
    incumbent.runs = runsOf(chain.links, tables.linkOf(), std::move(repeats));
    incumbent.cost = costOf(chain, incumbent.runs);
    return;
  }
}

/// Returns, per entry of the link's elimination, the cost of the cheapest
/// solution that uses the entry in any repeat, minus the optimum.
std::vector<double> ChainGap::excessOf(int link) const {
  const LinkTable &table = tables.table(link);
  std::vector<double> excess(table.elimination().tableSize(), kInfinity);
  for (const ParetoChain &one : chains)
    for (std::size_t i = 0; i < one.stages.size(); ++i) {
      const Stage &stage = one.stages[i];
      if (stage.link != link)
        continue;
      for (std::size_t s = 0; s < stage.in; ++s)
        for (std::size_t t = 0; t < stage.out; ++t) {
          std::size_t position = s * stage.out + t;
          int entry = one.entries[i][position];
          if (entry >= 0)
            excess[entry] = std::min(
                excess[entry], one.fromStart[i][s] + stage.cost[position] +
                                   one.toEnd[i + 1][t] - least);
        }
    }
  return excess;
}

bool ChainGap::close(double stopAbove, PointBudget &budget,
                     Incumbent &incumbent) {
  double slack = tolerance(incumbent);
  auto fullGap = [&] {
    return std::min(incumbent.cost.time, stopAbove) - bound;
  };
  std::vector<ParetoElimination> links;
  for (std::size_t l = 0; l < chain.links.size(); ++l) {
    links.emplace_back(tables.table(static_cast<int>(l)).elimination(),
                       chain.links[l].problem);
    links.back().descend(excessOf(static_cast<int>(l)), fullGap() + slack);
  }
  double gap = fullGap() / std::pow(kGrowth, kTrials - 1);
  for (int trial = 1;; ++trial, gap *= kGrowth) {
    gap = trial >= kTrials ? fullGap() : std::min(gap, fullGap());
    bool isFull = gap >= fullGap();
    std::vector<const ParetoSets *> sets;
    for (ParetoElimination &link : links) {
      if (!link.ascend(gap + slack, indifference, budget))
        return false;
      sets.push_back(&link.sets());
    }
    ParetoPath found;
    std::size_t combination = 0;
    if (!search(gap + slack, std::min(incumbent.cost.time, stopAbove) + slack,
                budget, sets, found, combination))
      return false;
    if (!found.repeats.empty() && found.cost.time < incumbent.cost.time) {
      std::vector<Assignment> repeats;
      for (std::size_t i = 0; i < found.repeats.size(); ++i) {
        int link = tables.linkOf()[i];
        const ParetoPath::Repeat &repeat = found.repeats[i];
        repeats.push_back(links[link].decode(
            tables.table(link).keptValues(tables.localShared(link, combination),
                                          repeat.in, repeat.out),
            *repeat.point));
      }
      incumbent.runs = runsOf(chain.links, tables.linkOf(), std::move(repeats));
      incumbent.cost = costOf(chain, incumbent.runs);
    }
    incumbent.lowerBound = std::max(incumbent.lowerBound,
                                    std::min(bound + gap, incumbent.cost.time));
    if (isFull || incumbent.cost.time <= bound + gap)
      return true;
  }
}

} // namespace mtplan::planner
