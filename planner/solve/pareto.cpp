//===- pareto.cpp - Trade-offs between time and memory --------------------===//
//
// Each removal of dominated points may lose up to `indifference` of time, so n
// removals in sequence lose up to n times as much.
//
// A bucket's joined table has entries (c, v), where c is an entry of the result
// and v a value of the variable. In descend(), the excess of (c, v) is the
// excess of c plus the cost of v minus the cost of the cheapest value. An
// input's entry has the least excess of all (c, v) that read the entry.
// ascend() adds the inputs' points.
//
//===----------------------------------------------------------------------===//

#include "planner/solve/pareto.h"

#include <algorithm>

namespace mtplan::planner {

namespace {

/// Removes points that are no faster than a point in a strictly lower band of
/// memory, in O(n). keepPareto() would remove these points, too, but sorts them
/// first.
void dropDominated(std::vector<ParetoPoint> &points) {
  constexpr std::size_t kFew = 256, kMostBands = 1 << 14;
  if (points.size() < kFew)
    return;
  std::size_t bands = std::min(2 * points.size(), kMostBands);
  auto [least, most] =
      std::minmax_element(points.begin(), points.end(),
                          [](const ParetoPoint &a, const ParetoPoint &b) {
                            return a.memory < b.memory;
                          });
  double base = least->memory, span = most->memory - base;
  if (!(span > 0.0))
    return;
  auto bandOf = [&](const ParetoPoint &point) {
    double band = (point.memory - base) / span * static_cast<double>(bands - 1);
    return static_cast<std::size_t>(band);
  };
  // fastestBelow[b] is the least time over all bands before b.
  std::vector<double> fastestBelow(bands + 1, kInfinity);
  for (const ParetoPoint &point : points) {
    double &fastest = fastestBelow[bandOf(point) + 1];
    fastest = std::min(fastest, point.time);
  }
  for (std::size_t band = 1; band <= bands; ++band)
    fastestBelow[band] = std::min(fastestBelow[band], fastestBelow[band - 1]);
  std::erase_if(points, [&](const ParetoPoint &point) {
    return fastestBelow[bandOf(point)] <= point.time;
  });
}

} // namespace

void keepPareto(std::vector<ParetoPoint> &points, double indifference) {
  if (points.size() < 2)
    return;
  dropDominated(points);
  std::stable_sort(points.begin(), points.end(),
                   [](const ParetoPoint &a, const ParetoPoint &b) {
                     if (a.memory != b.memory)
                       return a.memory < b.memory;
                     return a.time < b.time;
                   });
  double fastest = kInfinity;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i)
    if (points[i].time < fastest - indifference) {
      fastest = points[i].time;
      points[kept++] = points[i];
    }
  points.resize(kept);
}

void FrontMerger::merge(const std::vector<ParetoPoint> &earlier,
                        const std::vector<ParetoPoint> &later) {
  merged.clear();
  double fastest = kInfinity;
  auto a = earlier.begin(), b = later.begin();
  while (a != earlier.end() || b != later.end()) {
    bool takeLater = a == earlier.end();
    if (!takeLater && b != later.end())
      takeLater =
          b->memory != a->memory ? b->memory < a->memory : b->time < a->time;
    const ParetoPoint &next = takeLater ? *b++ : *a++;
    if (next.time < fastest) {
      fastest = next.time;
      merged.push_back(next);
    }
  }
}

void FrontMerger::add(std::vector<ParetoPoint> &front) {
  for (std::size_t level = 0;; ++level) {
    if (level == levels.size())
      levels.emplace_back();
    if (levels[level].empty()) {
      levels[level].swap(front);
      front.clear();
      return;
    }
    merge(levels[level], front);
    front.swap(merged);
    levels[level].clear();
  }
}

void FrontMerger::take(double indifference, std::vector<ParetoPoint> &points) {
  points.clear();
  for (std::vector<ParetoPoint> &level : levels) {
    if (level.empty())
      continue;
    merge(level, points);
    points.swap(merged);
    level.clear();
  }
  double fastest = kInfinity;
  std::erase_if(points, [&](const ParetoPoint &point) {
    if (!(point.time < fastest - indifference))
      return true;
    fastest = point.time;
    return false;
  });
}

void ParetoSets::clear() {
  points.clear();
  begin.assign(1, 0);
}

void ParetoSets::append(const std::vector<ParetoPoint> &entry) {
  points.insert(points.end(), entry.begin(), entry.end());
  begin.push_back(points.size());
}

void ParetoSets::appendByExcess(const std::vector<ParetoPoint> &entry) {
  points.insert(points.end(), entry.begin(), entry.end());
  std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(begin.back()),
                   points.end(),
                   [](const ParetoPoint &a, const ParetoPoint &b) {
                     return a.excess < b.excess;
                   });
  begin.push_back(points.size());
}

ParetoElimination::ParetoElimination(const Elimination &theElimination,
                                     const Problem &problem)
    : elimination(theElimination), program(theElimination.program()) {
  for (const Leaf &leaf : program.leaves) {
    std::vector<double> time(leaf.size, 0.0);
    std::vector<double> memory(leaf.size, 0.0);
    for (const Leaf::Part &part : leaf.parts) {
      const CostTable &table = problem.tables[part.table];
      for (std::size_t i = 0; i < leaf.size; ++i) {
        time[i] += table.time[part.index[i]];
        if (!table.memory.empty())
          memory[i] += table.memory[part.index[i]];
      }
    }
    leafTime.push_back(std::move(time));
    leafMemory.push_back(std::move(memory));
  }
  std::size_t widest = 0;
  for (const Bucket &bucket : program.buckets)
    widest = std::max(widest, bucket.scope.size());
  digits.resize(widest);
  results.resize(program.buckets.size());
}

void ParetoElimination::locate(const Bucket &bucket, std::size_t entry) {
  for (std::size_t p = bucket.scope.size(); p-- > 0;) {
    auto domain = static_cast<std::size_t>(bucket.domains[p]);
    digits[p] = entry % domain;
    entry /= domain;
  }
}

std::size_t ParetoElimination::entryOf(const BucketInput &input,
                                       const Bucket &bucket,
                                       std::size_t value) const {
  std::size_t entry = value * input.variableStride;
  for (std::size_t p = 0; p < bucket.scope.size(); ++p)
    entry += digits[p] * input.strides[p];
  return entry;
}

double ParetoElimination::joined(const Bucket &bucket,
                                 std::size_t value) const {
  double sum = 0.0;
  for (const BucketInput &input : bucket.inputs)
    sum += elimination.arena()[input.offset + entryOf(input, bucket, value)];
  return sum;
}

void ParetoElimination::descend(const std::vector<double> &excess, double gap) {
  excessOf.resize(program.buckets.size());
  for (std::size_t b = 0; b < program.buckets.size(); ++b)
    excessOf[b].assign(program.buckets[b].size, kInfinity);
  excessOf.back() = excess;
  for (std::size_t b = program.buckets.size(); b-- > 0;) {
    const Bucket &bucket = program.buckets[b];
    for (std::size_t c = 0; c < bucket.size; ++c) {
      double entryExcess = excessOf[b][c];
      if (!(entryExcess <= gap))
        continue;
      locate(bucket, c);
      double least = elimination.arena()[bucket.offset + c];
      for (std::size_t v = 0; v < bucket.values; ++v) {
        double here = entryExcess + (joined(bucket, v) - least);
        if (!(here <= gap))
          continue;
        for (const BucketInput &input : bucket.inputs)
          if (input.message >= 0) {
            double &there = excessOf[input.message][entryOf(input, bucket, v)];
            there = std::min(there, here);
          }
      }
    }
  }
}

int ParetoElimination::keep(ParetoPoint &point) {
  if (point.left < 0 || point.right < 0)
    return std::max(point.left, point.right);
  nodes.push_back({-1, 0, point.left, point.right});
  return static_cast<int>(nodes.size()) - 1;
}

/// Sets `partial` to the current entry's points for one value of the bucket's
/// variable. Returns false if the budget ran out.
bool ParetoElimination::combine(const Bucket &bucket, std::size_t value,
                                double slack, double indifference,
                                PointBudget &budget) {
  ParetoPoint base;
  for (const BucketInput &input : bucket.inputs)
    if (input.leaf >= 0) {
      std::size_t entry = entryOf(input, bucket, value);
      base.time += leafTime[input.leaf][entry];
      base.memory += leafMemory[input.leaf][entry];
    }
  partial.assign(1, base);
  for (const BucketInput &input : bucket.inputs) {
    if (input.message < 0)
      continue;
    const ParetoSets &sets = results[input.message];
    std::size_t entry = entryOf(input, bucket, value);
    extended.clear();
    for (ParetoPoint &p : partial) {
      int left = keep(p);
      for (const ParetoPoint *q = sets.first(entry); q != sets.last(entry);
           ++q) {
        if (p.excess + q->excess > slack)
          break;
        extended.push_back({p.time + q->time, p.memory + q->memory,
                            p.excess + q->excess, left, q->left});
      }
    }
    if (!budget.spend(static_cast<std::int64_t>(extended.size())))
      return false;
    if (partial.size() > 1)
      keepPareto(extended, indifference);
    partial.swap(extended);
  }
  return true;
}

bool ParetoElimination::ascend(double gap, double indifference,
                               PointBudget &budget) {
  nodes.clear();
  std::vector<ParetoPoint> all;
  for (std::size_t b = 0; b < program.buckets.size(); ++b) {
    const Bucket &bucket = program.buckets[b];
    ParetoSets &result = results[b];
    result.clear();
    for (std::size_t c = 0; c < bucket.size; ++c) {
      all.clear();
      double entryExcess = excessOf[b][c];
      if (entryExcess <= gap) {
        locate(bucket, c);
        double least = elimination.arena()[bucket.offset + c];
        for (std::size_t v = 0; v < bucket.values; ++v) {
          double more = joined(bucket, v) - least;
          if (!(entryExcess + more <= gap))
            continue;
          if (!combine(bucket, v, gap - entryExcess - more, indifference,
                       budget))
            return false;
          for (ParetoPoint &p : partial) {
            p.excess += more;
            p.left = keep(p);
            p.right = static_cast<int>(v);
            all.push_back(p);
          }
        }
        keepPareto(all, indifference);
        for (ParetoPoint &p : all) {
          if (bucket.variable >= 0) {
            nodes.push_back({static_cast<int>(b), p.right, p.left, -1});
            p.left = static_cast<int>(nodes.size()) - 1;
          }
          p.right = -1;
        }
      }
      result.appendByExcess(all);
    }
  }
  return true;
}

Assignment ParetoElimination::decode(const std::vector<int> &keptValues,
                                     const ParetoPoint &point) const {
  const LiveValues &live = program.live;
  Assignment assignment(live.size());
  for (std::size_t v = 0; v < live.size(); ++v)
    assignment[v] = live[v][0];
  for (std::size_t k = 0; k < program.keep.size(); ++k)
    assignment[program.keep[k]] = keptValues[k];
  std::vector<int> open = {point.left};
  while (!open.empty()) {
    int index = open.back();
    open.pop_back();
    if (index < 0)
      continue;
    const Node &node = nodes[index];
    if (node.bucket >= 0) {
      int variable = program.buckets[node.bucket].variable;
      assignment[variable] = live[variable][node.value];
    }
    open.push_back(node.left);
    open.push_back(node.right);
  }
  return assignment;
}

} // namespace mtplan::planner
