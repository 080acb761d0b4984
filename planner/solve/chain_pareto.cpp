//===- chain_pareto.cpp - Fastest path within a memory limit ----*- C++ -*-===//
//
// A label's excess is measured against the cheapest way to its state, so what
// it may still grow by is the gap less the state's own excess.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/chain_pareto.h"

#include <algorithm>

namespace mtplan::planner {
namespace {

/// Labels that reach state `to` of boundary `i + 1`. False: out of budget.
bool extend(const ParetoChain &chain, const ParetoSets &before, std::size_t i,
            std::size_t to, double slack, double memoryLimit,
            PointBudget &budget, std::vector<ParetoPoint> &labels) {
  const Stage &stage = chain.stages[i];
  const ParetoSets &sets = *chain.sets[i];
  double reached = chain.fromStart[i + 1][to];
  double room = memoryLimit - chain.memoryToEnd[i + 1][to];
  for (std::size_t turn = 0; turn < stage.in; ++turn) {
    // Of equal labels the first one made stays: try staying in the state first.
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
    for (const ParetoPoint *p = before.first(from); p != before.last(from);
         ++p) {
      if (p->excess + more > slack)
        break;
      for (const ParetoPoint *q = first; q != last; ++q) {
        double excess = p->excess + more + q->excess;
        if (excess > slack)
          break;
        if (!budget.spend(1))
          return false;
        if (p->memory + q->memory <= room)
          labels.push_back({p->time + q->time, p->memory + q->memory, excess,
                            static_cast<int>(p - before.points.data()),
                            static_cast<int>(q - sets.points.data())});
      }
    }
  }
  return true;
}

} // namespace

bool fastestWithin(const ParetoChain &chain, double gap, double memoryLimit,
                   double indifference, PointBudget &budget,
                   ParetoPath &found) {
  found = {};
  std::size_t count = chain.stages.size();
  std::vector<ParetoSets> labels(count + 1);
  std::vector<ParetoPoint> reaching;
  auto slackAt = [&](std::size_t boundary, std::size_t state) {
    return gap - (chain.fromStart[boundary][state] +
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
      reaching.clear();
      double slack = slackAt(i + 1, to);
      if (slack >= 0.0 && !extend(chain, labels[i], i, to, slack, memoryLimit,
                                  budget, reaching))
        return false;
      keepPareto(reaching, indifference);
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
  found.copies.resize(count);
  for (std::size_t i = count; i-- > 0;) {
    ParetoPath::Copy &copy = found.copies[i];
    copy.out = state;
    copy.point = chain.sets[i]->points.data() + best->right;
    auto parent = static_cast<std::size_t>(best->left);
    const std::vector<std::size_t> &begin = labels[i].begin;
    state = static_cast<std::size_t>(
        std::upper_bound(begin.begin(), begin.end(), parent) - begin.begin() -
        1);
    copy.in = state;
    best = labels[i].points.data() + parent;
  }
  return true;
}

} // namespace mtplan::planner
