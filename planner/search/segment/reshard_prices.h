//===- reshard_prices.h - The price of layout changes -----------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_SEGMENT_RESHARD_PRICES_H
#define MTPLAN_PLANNER_SEARCH_SEGMENT_RESHARD_PRICES_H

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/integers.h"
#include "planner/search/space/setting.h"

namespace mtplan::planner {

/// Returns the time of one step of a layout change; reshardTime() sums all
/// steps.
/// \param elements  the size of the shard before the step
Seconds stepTime(const StepMove &step, double elements, double elementBytes,
                 const Mesh &mesh, const Machine &machine);

/// Returns the time of a step on a weight or its gradient; stateReshardTime()
/// sums all steps. Replicas exchange weights and gradients in the software's
/// buckets. A bucket holds several parameters, and the time of a parameter is
/// its share of the bucket's time.
/// \param tiles      the number of sequential messages
/// \param ofSegment  the parameter's share (Parameter::ofSegment) of a message
/// that its segment exchanges once a step, if the software groups messages;
/// else 1
Seconds stateTime(const StepMove &step, double elements, double elementBytes,
                  const Setting &setting, int tiles = 1,
                  double ofSegment = 1.0);
Seconds stateReshardTime(const Layout &from, const Layout &to,
                         const std::vector<std::int64_t> &shape,
                         double elementBytes, const Setting &setting,
                         double ofSegment = 1.0);

Seconds reshardTime(const Layout &from, const Layout &to,
                    const std::vector<std::int64_t> &shape, double elementBytes,
                    const Mesh &mesh, const Machine &machine);

/// Returns the exposed time of a step on a value between two operators. The
/// time of a collective over a tensor axis includes the copies after the
/// collective, and excludes the share that the software hides.
Seconds exposedTime(const StepMove &step, double elements, double elementBytes,
                    Phase phase, const Setting &setting);

/// Returns the bytes of one rank's shard.
double localBytes(const std::vector<std::int64_t> &shape, const Layout &layout,
                  double elementBytes, const Mesh &mesh);

/// Holds the factors by which the times of layout changes of weights and
/// gradients are multiplied.
struct StateScales {
  double betweenReplicas = 1.0; ///< collectives
  double local = 1.0;           ///< slices and masks
  double overTensorRanks = 1.0; ///< collectives
  bool operator==(const StateScales &) const = default;
};

/// Holds the layouts of a tensor and the prices of conversions between them.
struct LayoutDomain {
  std::vector<Layout> layouts;
  std::vector<double> seconds;         ///< by [from * size() + to]
  std::vector<double> backwardSeconds; ///< likewise; empty: equal to `seconds`
  std::vector<double> bytes;           ///< one rank's shard, by layout

  int size() const { return static_cast<int>(layouts.size()); }
  /// Returns the index of `layout`, which is added if it is new.
  int add(const Layout &layout);
  int find(const Layout &layout) const; ///< -1 if the layout is unknown
  /// \param passed  whether the value is an activation that passes between
  /// operators; then exposedTime() applies, and no replicated 16-bit value
  /// becomes partial
  /// \param tiles  the number of tiles of a weight or gradient (stateTime())
  /// \param scales  the factors for the layout changes of a weight or gradient
  void price(const std::vector<std::int64_t> &shape, double elementBytes,
             bool passed, const Setting &setting, int tiles = 1,
             const StateScales &scales = {});
  /// Forbids every conversion after which `axis` no longer splits the same
  /// dimension as before.
  void keepInPlace(int axis);
  /// Forbids every conversion with a step that is not one of `kinds`, over an
  /// axis that is not a tensor axis.
  void restrictBetweenReplicas(const std::vector<StepKind> &kinds,
                               const std::vector<std::int64_t> &shape,
                               const Mesh &mesh);
  double between(int from, int to, Phase phase = Phase::forward) const {
    bool differs = phase == Phase::backward && !backwardSeconds.empty();
    return (differs ? backwardSeconds
                    : seconds)[at(from) * layouts.size() + at(to)];
  }
};

/// Represents a set of layouts as a bit mask over their indices.
using LayoutSet = std::uint64_t;
constexpr LayoutSet setOf(int layout) { return LayoutSet{1} << layout; }

/// Finds the cheapest conversions from one layout to several. Each conversion
/// may start from any layout that exists already, and may produce an
/// intermediate layout that is not requested. The conversions are a minimum
/// Steiner arborescence, found by dynamic programming over the requested set
/// and its subsets (Dreyfus and Wagner 1971). With n = domain.size(), which is
/// at most 64, the constructor takes O(n^3). A set of k layouts then takes
/// O(3^k n + 2^k n^2), or less if subsets of it are already known.
class ConversionTrees {
public:
  explicit ConversionTrees(const LayoutDomain &theDomain,
                           Phase thePhase = Phase::forward);

  /// Returns the prices of the conversions to a non-empty set, by the layout
  /// from which they start. The reference is valid as long as the object.
  const std::vector<double> &prices(LayoutSet set) {
    return treesTo(set).price;
  }

  /// Returns the conversions from `made` to a set, as pairs (from, to) of
  /// layout indices, in a legal order. Their price must be finite.
  std::vector<std::pair<int, int>> conversions(int made, LayoutSet set);

private:
  /// Holds the cheapest trees to a set, by root. A tree is a path to `branch`
  /// and, from there, the trees to `part` and to the rest of the set. For a
  /// single layout the tree is a path, and `branch` and `part` are empty.
  struct Trees {
    std::vector<double> price;
    std::vector<int> branch;
    std::vector<LayoutSet> part; ///< by branch
  };
  Trees &treesTo(LayoutSet set);
  double pathPrice(int from, int to) const {
    return paths[at(from) * at(size) + at(to)];
  }
  void appendTree(int root, LayoutSet set, LayoutSet &have,
                  std::vector<std::pair<int, int>> &found);

  const int size;
  std::vector<double> paths; ///< prices of the cheapest paths, [from][to]
  std::vector<int> nexts;    ///< the second layout of each path
  std::unordered_map<LayoutSet, Trees> known;
};

/// Returns the layouts in which a value may pass between segments: replicated
/// over a tensor axis, or split over that axis along an allowed dimension. The
/// other axes are fixed: replicas split the samples, and the context axis
/// splits the positions.
std::vector<Layout> boundaryLayouts(const Tensor &tensor,
                                    const Setting &setting);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_SEGMENT_RESHARD_PRICES_H
