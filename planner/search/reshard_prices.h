//===- reshard_prices.h - What a tensor elsewise costs ----------*- C++ -*-===//
//
// The layouts one tensor may take in a segment, the price of turning each into
// each other, and the cheapest way to have several of them at once.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_SEARCH_RESHARD_PRICES_H
#define MTPLAN_PLANNER_SEARCH_RESHARD_PRICES_H

#include <cstdint>
#include <utility>
#include <vector>

#include "planner/search/setting.h"

namespace mtplan::planner {

/// Time of one step on a piece of `local` shape (before the step).
Seconds stepTime(const ReshardStep &step,
                 const std::vector<std::int64_t> &localBefore,
                 double elementBytes, const Mesh &mesh, const Machine &machine);

/// Time of a step of a weight or of its gradient: between replicas they go in
/// the software's buckets, of which each has its share, and on its links.
/// \param tiles      there they go as so many messages, one after another
/// \param ofSegment  Parameter::ofSegment of what goes once a step, as one
///                   message with its segment's, if the software joins those:
///                   this share of its time is the parameter's, whatever the
///                   others' layouts. Else 1
Seconds stateTime(const ReshardStep &step,
                  const std::vector<std::int64_t> &localBefore,
                  double elementBytes, const Setting &setting, int tiles = 1,
                  double ofSegment = 1.0);
Seconds stateReshardTime(const Layout &from, const Layout &to,
                         const std::vector<std::int64_t> &shape,
                         double elementBytes, const Setting &setting,
                         double ofSegment = 1.0);

/// Time of all steps from `from` to `to`.
Seconds reshardTime(const Layout &from, const Layout &to,
                    const std::vector<std::int64_t> &shape, double elementBytes,
                    const Mesh &mesh, const Machine &machine);

/// Of a value between two operators, what compute waits for: of collectives of
/// the tensor axis the share that the software does not hide, copies included.
Seconds exposedTime(const ReshardStep &step,
                    const std::vector<std::int64_t> &localBefore,
                    double elementBytes, Phase phase, const Setting &setting);

/// Bytes of one rank's piece.
double localBytes(const std::vector<std::int64_t> &shape, const Layout &layout,
                  double elementBytes, const Mesh &mesh);

/// Layouts by index; a set of layouts is a bit mask over them.
struct LayoutDomain {
  std::vector<Layout> layouts;
  std::vector<double> seconds; ///< [from * n + to]
  /// The same in backward, where that differs; else empty.
  std::vector<double> backwardSeconds;
  std::vector<double> bytes; ///< of one rank's piece, per layout

  int size() const { return static_cast<int>(layouts.size()); }
  /// Index of `layout`, added if it is new.
  int add(const Layout &layout);
  int find(const Layout &layout) const; ///< or -1
  /// \param passed  from operator to operator, so that exposedTime() applies,
  ///                and nothing of 16 bits that is whole becomes partial
  /// \param tiles   if not: see stateTime()
  void price(const std::vector<std::int64_t> &shape, double elementBytes,
             bool passed, const Setting &setting, int tiles = 1);
  /// Nothing that the axis splits one way comes to be split another.
  void keepInPlace(int axis);
  double between(int from, int to, Phase phase = Phase::forward) const {
    bool differs = phase == Phase::backward && !backwardSeconds.empty();
    return (differs ? backwardSeconds
                    : seconds)[static_cast<std::size_t>(from) * layouts.size() +
                               static_cast<std::size_t>(to)];
  }
};

/// [made][set]: the price of the cheapest conversions that make all of a set of
/// layouts from the one that is made, where each may start from any layout that
/// is there already, and layouts outside the set may be passed through: a
/// Steiner arborescence, by dynamic programming over subsets. O(2^n n^2),
/// n = domain.size().
std::vector<double> materialiseCosts(const LayoutDomain &domain,
                                     Phase phase = Phase::forward);

/// The conversions themselves, (from, to) in an order in which they can run.
/// `wanted` must have a finite price.
std::vector<std::pair<int, int>> materialise(const LayoutDomain &domain,
                                             int made, unsigned wanted,
                                             Phase phase = Phase::forward);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_RESHARD_PRICES_H
