//===- interpret.h - Runs a training step in double precision ---*- C++ -*-===//
//
// The interpreter judges every rewriting of a step. It executes a program,
// logical or partitioned, on one rank or on all of them, and compares two
// executions. Initial parameters, data and dropout masks are functions of the
// *global* element (runtime/random/draws.h), so that two programs with the same
// meaning compute the same numbers up to rounding.
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

#include "ir/interpret/ranks.h"

namespace mtplan::ir {

/// Names one copy of a parameter of a repeated segment. `label` keeps its `*`.
/// A label without one belongs to no copy, and its `copy` is 0.
struct TensorKey {
  std::string label;
  std::int64_t copy = 0;

  // clang-tidy 14 takes the 0 of a defaulted comparison for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const TensorKey &) const = default;
  /// Returns the label with the number of the copy in place of the `*`.
  std::string name() const;
};

/// A change of one element of one parameter before the step, for the difference
/// quotient of a gradient check.
struct Perturbation {
  std::string label;
  std::int64_t copy = 0;    ///< ignored if `label` has no `*`
  std::int64_t element = 0; ///< row-major, in the global tensor
  double delta = 0.0;
};

/// The numbers of AdamW. Its moments are zero before the step, as in the first
/// update of a training run.
struct AdamOptions {
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;
};

/// Sees a collective that has run: the tensors that every rank passed in, and
/// those that it received, which the hook may change. A test makes faults with
/// it that no operator can express.
using CollectiveHook =
    std::function<void(mlir::Operation *, const std::vector<HostTensor> &passed,
                       std::vector<HostTensor> &received)>;

enum class Phase : std::uint8_t { forward, backward, update };

/// One forward or backward run through one chunk of the model, for one
/// micro-batch.
struct StageTask {
  Phase phase = Phase::forward;
  /// Number that the segments carry; 0 without a pipeline.
  std::int64_t chunk = 0;
  std::int64_t microBatch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const StageTask &) const = default;
};

/// Numbers that take the place of drawn ones, so that a run can start where a
/// run of another program started. Elements count row by row in the global
/// tensor, which for an input is that of one micro-batch.
struct GivenNumbers {
  std::function<double(const TensorKey &, std::int64_t element)> parameter;
  std::function<double(const std::string &label, std::int64_t microBatch,
                       std::int64_t element)>
      input; ///< the input "count" follows from "targets"
};

struct RunOptions {
  std::uint64_t seed = 1;
  int microBatches = 2;
  /// Selects data and dropout masks. The optimizer starts from zero moments at
  /// any step, because a run is one step and not a training.
  int step = 1;
  std::optional<Perturbation> perturbation;
  std::optional<GivenNumbers> given = {};
  AdamOptions adam;
  CollectiveHook afterCollective;
  /// The tasks of each stage in order, each task once. If empty, each
  /// micro-batch runs forward and backward before the next.
  std::vector<std::vector<StageTask>> order = {};
};

/// The pieces of a tensor on all ranks, and their layout.
struct DistributedTensor {
  /// Null: every rank of the stages that have the tensor holds all of it.
  LayoutAttr layout;
  /// No elements: the rank's stage does not have the tensor.
  std::vector<HostTensor> ranks;

  bool holds(std::int64_t rank) const {
    return !ranks[static_cast<std::size_t>(rank)].data.empty();
  }
};
using TensorTable = std::map<TensorKey, DistributedTensor>;

/// One kind of collective: the operator without its dialect's name
/// ("all_reduce"), its axis and its phase.
struct CollectiveKey {
  Phase phase = Phase::forward;
  std::string op;
  std::string axis;

  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const CollectiveKey &) const = default;
};

struct RunResult {
  MeshAttr mesh; ///< null: one rank
  /// The operands of `mtp.adamw`, or without an `mtp.update` the accumulators.
  TensorTable gradients;
  TensorTable parameters; ///< after the update, if there is one
  /// The values of `mtp.result`, or without an `mtp.update` the accumulators
  /// that belong to no parameter.
  TensorTable results;
  /// Executions in a step, over all copies, micro-batches and stages. `slice`
  /// and `mask` are counted too, though they send nothing. `send` and `receive`
  /// count for the axis of stages.
  std::map<CollectiveKey, std::int64_t> collectives;
};

/// Runs `module`. With the attribute `mtp.partitioned` all ranks of its mesh
/// run, otherwise one rank, for which `mtp.reshard` is the identity. Each
/// micro-batch runs forward through the chain of segments and, where segments
/// have backward halves, backward. The ranks of a stage run in lock step. Where
/// segments have chunks and the mesh has an axis of stages, each stage runs its
/// own chunks and exchanges only messages with others. Fails, with a
/// diagnostic, if the module does not verify, if it has an operator without a
/// kernel, or if stages wait for each other for ever.
mlir::FailureOr<RunResult> interpret(mlir::ModuleOp module,
                                     const RunOptions &options = {});

/// The largest disagreement found, and where.
struct Comparison {
  /// The largest relative error; infinite for NaN, wrong shapes and missing
  /// tensors.
  double worst = 0.0;
  std::string kind;      ///< "gradient", "parameter" or "result"
  std::string name;      ///< label with the copy's number, see TensorKey::name
  std::int64_t rank = 0; ///< rank of the partitioned run
  std::int64_t tensors = 0; ///< how many were compared
};

/// Compares every result, gradient and updated parameter. The piece of each
/// rank is compared with the slice of the logical tensor that its layout names,
/// so that replicas and copies on other stages are checked too. Partial pieces
/// are reduced first.
///
/// The error of a tensor is max |piece - slice| / max(max |logical|, bound),
/// where the bound is 1e-5 of the largest element of all logical tensors of
/// that kind. The bound is needed for gradients that are rounding error, such
/// as that of the bias of all keys, which softmax cancels. The noise is 1e-16
/// of the numbers that cancel, and up to 2e-10 of a bound of 1e-6.
Comparison compareRuns(const RunResult &logical, const RunResult &partitioned);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_INTERPRET_H
