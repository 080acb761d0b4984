//===- interpret.h - Runs a training step in double precision ---*- C++ -*-===//
//
// The judge of every rewriting of a step: a program, logical or partitioned,
// is executed on one rank or on all of them, and two executions are compared
// (compare.h). Initial parameters, data and dropout masks are functions of the
// *global* element (runtime/random/draws.h), so that two programs which mean
// the same compute the same, but for rounding.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_IR_INTERPRET_INTERPRET_H
#define MTPLAN_IR_INTERPRET_INTERPRET_H

#include <compare>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinOps.h"

#include "ir/interpret/host_tensor.h"
#include "ir/mtp.h"

namespace mtplan::ir {

/// Which of the copies of a repeated segment a name means. `label` keeps its
/// `*`; labels without one belong to no copy, and have `copy` 0.
struct TensorKey {
  std::string label;
  std::int64_t copy = 0;

  // clang-tidy 14 takes the 0 of a defaulted comparison for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const TensorKey &) const = default;
  /// The label with its `*` replaced by the number of the copy.
  std::string name() const;
};

/// A nudge to one element of one parameter before the step: the difference
/// quotient of a gradient check.
struct Perturbation {
  std::string label;
  std::int64_t copy = 0;    ///< ignored if `label` has no `*`
  std::int64_t element = 0; ///< row-major, in the global tensor
  double delta = 0.0;
};

/// AdamW from moments that are zero: the first update of a training run.
struct AdamOptions {
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;
};

/// Sees a collective that has run: what every rank passed in and what it
/// received, which may be changed. With it a test makes faults that no operator
/// can express, to see that they show.
using CollectiveHook =
    std::function<void(mlir::Operation *, const std::vector<HostTensor> &passed,
                       std::vector<HostTensor> &received)>;

enum class Phase : std::uint8_t { forward, backward, update };

/// What a stage does in one go: forward or backward through one chunk of the
/// model, for one micro-batch.
struct StageTask {
  Phase phase = Phase::forward;
  std::int64_t chunk = 0; ///< as the segments say; 0 without a pipeline
  std::int64_t microBatch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const StageTask &) const = default;
};

struct RunOptions {
  std::uint64_t seed = 1;
  int microBatches = 2;
  /// Chooses data and dropout masks. The optimizer starts afresh whatever it
  /// is: a run is one step, not a training.
  int step = 1;
  std::optional<Perturbation> perturbation;
  AdamOptions adam;
  CollectiveHook afterCollective;
  /// Of every stage, its tasks in order, each once. Empty: each micro-batch
  /// forward and back before the next.
  std::vector<std::vector<StageTask>> order = {};
};

/// What every rank holds of a tensor, and how those pieces lie.
struct DistributedTensor {
  LayoutAttr layout; ///< null: whole on every rank of the stages that hold it
  std::vector<HostTensor> ranks; ///< no elements: of a stage without it

  bool holds(std::int64_t rank) const {
    return !ranks[static_cast<std::size_t>(rank)].data.empty();
  }
};
using TensorTable = std::map<TensorKey, DistributedTensor>;

/// A kind of collective: an operator without its dialect's name
/// ("all_reduce"), its axis and when it ran.
struct CollectiveKey {
  Phase phase = Phase::forward;
  std::string op;
  std::string axis;

  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const CollectiveKey &) const = default;
};

struct RunResult {
  MeshAttr mesh; ///< null: one rank
  /// What `mtp.adamw` was given; without an `mtp.update`, what accumulated.
  TensorTable gradients;
  TensorTable parameters; ///< after the update, if there is one
  /// Values of `mtp.result`; without an `mtp.update`, the accumulators that
  /// are not of parameters.
  TensorTable results;
  /// Executions per step, every copy, micro-batch and stage counted; `slice`
  /// and `mask` are listed like the others though they send nothing, `send` and
  /// `receive` as over the axis of stages.
  std::map<CollectiveKey, std::int64_t> collectives;
};

/// Runs `module`: with the attribute `mtp.partitioned` all ranks of its mesh,
/// else one rank, for which `mtp.reshard` is the identity. Micro-batches follow
/// each other, each forward through the chain of segments and, where there are
/// backward halves, back. The ranks of a stage are in lock step; where segments
/// have chunks and the mesh an axis of stages, each stage runs its own ones and
/// knows of the others only what they send. Fails, with a diagnostic, if the
/// module does not verify, holds an operator it does not know, or if stages
/// wait for each other for ever.
mlir::FailureOr<RunResult> interpret(mlir::ModuleOp module,
                                     const RunOptions &options = {});

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_INTERPRET_H
