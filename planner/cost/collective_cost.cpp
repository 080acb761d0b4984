//===- collective_cost.cpp - Time of a collective on a topology -----------===//
//
// One pass (an all-gather or reduce-scatter) of S bytes over m members of a
// level is a ring of m - 1 steps in which every member sends (m - 1) / m of S
// in total. A pass over several levels is hierarchical: an outer level moves
// only the shards that the inner levels leave. An all-reduce is two passes.
//
// Messages are cut into chunks that are pipelined through the steps of all
// levels. If s steps have the latency l each and the busiest link needs the
// time X for its traffic, c chunks take the time (s + c) (l + X / c). With the
// best c and the abbreviation L = s l, the time is
//
//   t = base + (sqrt(L) + sqrt(X))^2
//
// The time tends to L for small messages and to X for large ones, and rises
// slowly in between, as measured times do. Levels overlap chunk by chunk, so X
// is the time of the slowest level, not the sum. The formula comes from the
// optimal-segment pipeline of van de Geijn's "global combine" and Chan et al.
// 2007, "Collective communication: theory, practice, and experience"; the
// hierarchy follows NCCL's rings over NVLink and rails.
//
//===----------------------------------------------------------------------===//

#include "planner/cost/collective_cost.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <numeric>

namespace mtplan::planner {

namespace {

/// Holds the times of a collective. `base` and `latency` are sums over levels.
/// `traffic` is a maximum over levels, because the traffic of all levels
/// overlaps.
struct Pipeline {
  double base = 0.0;    // seconds
  double latency = 0.0; // seconds, the sum over all steps
  double traffic = 0.0; // seconds on the busiest level

  Seconds time() const {
    double root = std::sqrt(latency) + std::sqrt(traffic);
    return Seconds{base + root * root};
  }
};

struct Sharing {
  int domains = 1;          // domains with a member of the group
  int most = 1, fewest = 1; // members in a single domain
};

Sharing sharingOfOne(Group group, std::int64_t first, int domain) {
  Sharing sharing{0, 0, group.size};
  std::int64_t last = -1;
  int members = 0;
  auto leave = [&] {
    sharing.most = std::max(sharing.most, members);
    sharing.fewest = std::min(sharing.fewest, members);
  };
  for (int member = 0; member < group.size; ++member) {
    std::int64_t in = (first + std::int64_t{member} * group.stride) / domain;
    if (in != last && members > 0)
      leave();
    if (in != last) {
      ++sharing.domains;
      members = 0;
    }
    last = in;
    ++members;
  }
  leave();
  return sharing;
}

// Returns how the group that touches the most domains is distributed over them.
// If several groups touch as many domains, the group with the fewest members in
// a domain counts.
Sharing sharingOf(Group group, int domain) {
  std::int64_t span = std::int64_t{group.size} * group.stride;
  if (domain == 0 || domain % span == 0)
    return {1, group.size, group.size};
  if (span % domain == 0 && domain % group.stride == 0)
    return {static_cast<int>(span / domain), domain / group.stride,
            domain / group.stride};
  if (group.stride % domain == 0)
    return {group.size, 1, 1};
  // Groups need not align with domains. Their positions relative to the domains
  // repeat after `period` ranks.
  std::int64_t period = std::lcm(span, std::int64_t{domain});
  std::int64_t ranks =
      std::min(std::max<std::int64_t>(group.ranks, span), period);
  Sharing worst{0, 0, 0};
  for (std::int64_t base = 0; base + span <= ranks; base += span)
    for (int offset = 0; offset < group.stride; ++offset) {
      Sharing one = sharingOfOne(group, base + offset, domain);
      if (one.domains > worst.domains ||
          (one.domains == worst.domains && one.fewest < worst.fewest))
        worst = one;
    }
  return worst;
}

/// Iterates over the levels that a group spans, innermost first. If domains
/// contain unequal numbers of the group's ranks, the domain that contains the
/// fewest is the bottleneck of the traffic between domains.
class LevelWalk {
public:
  LevelWalk(Group reach, const Machine &machine)
      : group(reach), levels(machine.levels) {}

  // Moves to the next level whose domains hold more ranks of the group than
  // the domains of the level before.
  bool next() {
    while (covered < group.size && index < levels.size()) {
      const NetworkLevel &candidate = levels[index++];
      bool last = index == levels.size();
      Sharing sharing = sharingOf(group, last ? 0 : candidate.ranks);
      if (sharing.most <= covered)
        continue;
      level = &candidate;
      inner = fewest;
      fewest = sharing.fewest;
      covered = sharing.most;
      members = (covered + inner - 1) / inner;
      return true;
    }
    return false;
  }

  const NetworkLevel *level = nullptr;
  int members = 1; // number of members at this level, of `inner` ranks each
  int inner = 1;   // ranks of the group inside one member
  int covered = 1; // ranks of the group inside one domain of this level

private:
  int fewest = 1; // ranks of the group in the domain with the fewest
  Group group;
  const std::vector<NetworkLevel> &levels;
  std::size_t index = 0;
};

// Returns the total rate of all rings of `members` members, in bytes per
// second.
double ringRate(const NetworkLevel &level, int members) {
  if (level.rings.empty())
    return level.bandwidth.value;
  std::size_t at =
      std::min(static_cast<std::size_t>(members) - 2, level.rings.size() - 1);
  return level.bandwidth.value * level.rings[at];
}

// Returns the time of `passes` reduce-scatters or all-gathers of `total` bytes.
// Two passes make an all-reduce; `inSwitch` allows reductions in switches.
Seconds ringTime(double total, int passes, Group group, const Machine &machine,
                 bool inSwitch = false) {
  Pipeline pipeline;
  for (LevelWalk walk(group, machine); walk.next();) {
    const NetworkLevel &level = *walk.level;
    double share = total / walk.inner;
    double steps = passes * (walk.members - 1.0);
    double latency = steps * level.latency.value;
    double traffic =
        steps / walk.members * share / ringRate(level, walk.members);
    if (inSwitch && level.inSwitchReduction) {
      // Each member sends its addends of all m shards and the sum of one shard,
      // and receives as much: (m + 1) / m of the payload.
      double reduced = (walk.members + 1.0) / walk.members * share /
                       level.reductionBandwidth.value;
      if (reduced < traffic) {
        traffic = reduced;
        latency = level.reductionLatency.value;
      }
    }
    pipeline.base += passes * level.base.value;
    pipeline.latency += latency;
    pipeline.traffic = std::max(pipeline.traffic, traffic);
  }
  return pipeline.time();
}

// Returns the time in which every rank sends an equal part of `payload` to
// every rank. Within a domain, one rank forwards the data of all its ranks for
// a rank outside, as NCCL's PXN does. Each level therefore has one step per
// other domain.
Seconds allToAllTime(double payload, Group group, const Machine &machine) {
  Pipeline pipeline;
  for (LevelWalk walk(group, machine); walk.next();) {
    const NetworkLevel &level = *walk.level;
    double peers = walk.covered - walk.inner;
    pipeline.base += level.base.value;
    pipeline.latency += (walk.members - 1) * level.latency.value;
    pipeline.traffic =
        std::max(pipeline.traffic,
                 payload * peers / group.size / ringRate(level, walk.members));
  }
  return pipeline.time();
}

} // namespace

Seconds pointToPointTime(Bytes payload, int stride, const Machine &machine) {
  assert(payload.value >= 0 && stride >= 1);
  assert(!machine.levels.empty());
  for (LevelWalk walk({2, stride, 2 * stride}, machine); walk.next();)
    if (walk.covered == 2) {
      const NetworkLevel &level = *walk.level;
      double rate = level.pointToPoint.value > 0 ? level.pointToPoint.value
                                                 : ringRate(level, 2);
      return Seconds{level.base.value + level.latency.value +
                     payload.value / rate};
    }
  return Seconds{0.0};
}

Seconds collectiveTime(StepKind kind, Bytes payload, Group group,
                       const Machine &machine) {
  assert(payload.value >= 0 && group.size >= 1 && group.stride >= 1);
  assert(!machine.levels.empty() || group.size == 1);
  if (group.size == 1)
    return Seconds{0.0};
  switch (kind) {
  case StepKind::allReduce:
    // The communication library uses in-switch reduction only where the
    // reduction is faster than the ring.
    return std::min(ringTime(payload.value, 2, group, machine),
                    ringTime(payload.value, 2, group, machine, true));
  case StepKind::reduceScatter:
    return ringTime(payload.value, 1, group, machine);
  case StepKind::allGather:
    return ringTime(payload.value * group.size, 1, group, machine);
  case StepKind::allToAll:
    return allToAllTime(payload.value, group, machine);
  case StepKind::slice:
  case StepKind::maskToRoot:
    break;
  }
  assert(false && "not a collective");
  return Seconds{0.0};
}

} // namespace mtplan::planner
