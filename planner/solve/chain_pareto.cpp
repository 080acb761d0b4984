//===- chain_pareto.cpp - Fastest path within a memory limit ----*- C++ -*-===//
//
// A label's excess is measured against the cheapest way to its state, so it may
// still grow by the gap less the state's own excess.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_pareto.h"

#include <algorithm>

namespace mtplan::planner {
namespace {

/// Finds the labels that reach state `to` of boundary `i + 1`. Returns false if
/// the budget ran out.
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
    // The first of equal labels stays, so the label that keeps the state goes
    // first.
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
      // The labels come in order of memory, as a front.
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

} // namespace

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

} // namespace mtplan::planner
