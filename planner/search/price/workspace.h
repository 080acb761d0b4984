//===- workspace.h - Transient values of a segment --------------*- C++ -*-===//

#ifndef MTPLAN_PLANNER_SEARCH_PRICE_WORKSPACE_H
#define MTPLAN_PLANNER_SEARCH_PRICE_WORKSPACE_H

#include <vector>

#include "planner/search/segment/segment_plan.h"

namespace mtplan::planner {

/// Counts the bytes that are alive at each operator of a segment.
class Liveness {
public:
  explicit Liveness(std::size_t ops) : change(ops + 2, 0.0) {}
  void add(std::size_t tensor, std::size_t from, std::size_t to, double bytes) {
    add(from, to, bytes);
    lives.push_back({tensor, from, to});
  }
  /// Adds bytes that aliveAt() attributes to no tensor.
  void add(std::size_t from, std::size_t to, double bytes) {
    change[from] += bytes;
    change[to + 1] -= bytes;
  }
  /// Holds the most bytes that are alive at one operator, and the first such
  /// operator, or -1 if nothing is alive.
  struct Peak {
    double bytes = 0.0;
    int op = -1;
  };
  Peak peak() const {
    Peak most;
    double alive = 0.0;
    for (std::size_t o = 0; o < change.size(); ++o) {
      alive += change[o];
      if (alive > most.bytes)
        most = {alive, static_cast<int>(o)};
    }
    return most;
  }
  /// Returns the tensors that are alive at `op`, with duplicates.
  std::vector<int> aliveAt(int op) const {
    std::vector<int> tensors;
    for (const Life &life : lives)
      if (op >= 0 && life.from <= at(op) && at(op) <= life.to)
        tensors.push_back(static_cast<int>(life.tensor));
    return tensors;
  }

private:
  struct Life {
    std::size_t tensor, from, to;
  };
  std::vector<double> change;
  std::vector<Life> lives;
};

/// Returns whether a segment computes while the next segment's weights arrive.
bool gathersAhead(const Setting &setting);

/// Holds the bytes of a segment's weights that replicas all-gather, by phase.
struct BlockBytes {
  double forward = 0.0, backward = 0.0;
};

/// Computes the bytes of the transient values in one run of a segment.
class Workspace {
public:
  /// \param ahead  the bytes of another segment's weights, which are received
  /// while this segment computes
  Workspace(const ModelGraph &model, const SegmentPlan &segmentPlan,
            const Setting &setting, BlockBytes ahead = {});

  Liveness::Peak peak();

  BlockBytes block() const;

  /// Returns the tensors whose layouts determine the peak.
  std::vector<int> decisiveTensors(const Liveness::Peak &peak) const;

  /// Returns the bytes of inputs, which are alive during the entire
  /// micro-batch: one shard per layout in which operators read an input.
  /// `known` lists, by tensor, the layouts in which earlier runs read an input.
  /// These shards are not counted again. The call adds the layouts of this run
  /// to `known`.
  double inputs(std::vector<std::vector<Layout>> &known) const;

private:
  /// Describes a range of operators, both ends included.
  struct Span {
    std::size_t first, last;
    bool empty() const { return first > last; }
  };

  Span spanOf(Phase phase) const;
  Span lifeOf(std::size_t t, const Layout &layout, Phase phase) const;
  double tileBytes(std::size_t t, const Layout &layout) const;
  double betweenBytes(const PlannedConversion &conversion) const;
  void addVersion(std::size_t t, const Layout &layout, Phase phase);

  /// Describes an all-gathered weight, or a gradient to reduce.
  struct Exchanged {
    std::size_t tensor;
    Span life;
    double bytes;      ///< one message
    double shardBytes; ///< a rank's share of the message
    double between;    ///< intermediate values between two collectives
    bool inTiles;
  };

  std::vector<Exchanged> exchangedIn(Phase phase, bool weights) const;
  void addMessageBuffers(Phase phase);
  void addBlocks(Phase phase);
  bool isTensorAxis(int axis) const;
  static bool touches(const Op &op, std::size_t t);
  static bool crosses(const std::vector<int> &tensors,
                      const std::vector<Layout> &layouts, std::size_t t,
                      const Layout &layout);

  const SegmentGraph &segment;
  const SegmentPlan &plan;
  const Mesh &mesh;
  const OverlapRules &overlap;
  const BlockBytes next;  ///< of the segment whose weights are received
  const bool isOfBlocks;  ///< whether all weights are exchanged at once
  std::vector<int> tiles; ///< by tensor
  Liveness liveness;
  bool buffersMessages = false; ///< whether some message overlaps compute
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_SEARCH_PRICE_WORKSPACE_H
