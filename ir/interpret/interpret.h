//===- interpret.h - Runs a training step in double precision ---*- C++ -*-===//
//
// The interpreter is the reference that passes are tested against. It executes
// a logical program on one rank or a partitioned program on all ranks, and
// compareRuns() compares two executions. Initial parameters, data and dropout
// masks are functions of the *global* element index (runtime/random/draws.h).
// Equivalent programs therefore compute the same numbers up to rounding.
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

/// Identifies a tensor. In a repeated layer, `label` keeps its `*`, and `copy`
/// is the layer's number. Without a `*`, `copy` is 0.
struct TensorKey {
  std::string label;
  std::int64_t copy = 0;

  // clang-tidy 14 mistakes the 0 of a defaulted comparison for a pointer.
  // NOLINTNEXTLINE(modernize-use-nullptr)
  auto operator<=>(const TensorKey &) const = default;
  /// Returns the label with the number of the layer in place of the `*`.
  std::string name() const;
};

/// Describes a change of one element of one parameter before the step, for the
/// difference quotient of a gradient check.
struct Perturbation {
  std::string label;
  std::int64_t copy = 0;    ///< ignored if `label` has no `*`
  std::int64_t element = 0; ///< row-major index in the global tensor
  double delta = 0.0;
};

struct AdamOptions {
  double learningRate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double decay = 0.01;
};

/// Receives the inputs and the results of all ranks after each collective. The
/// function may change the results, so that tests can inject faults that no
/// operator expresses.
using CollectiveHook =
    std::function<void(mlir::Operation *, const std::vector<HostTensor> &passed,
                       std::vector<HostTensor> &received)>;

enum class Phase : std::uint8_t { forward, backward, update };

/// Describes one forward or backward run through one chunk of the model, for
/// one micro-batch.
struct StageTask {
  Phase phase = Phase::forward;
  /// Holds the `chunk` of the segments, or 0 without a pipeline.
  std::int64_t chunk = 0;
  std::int64_t microBatch = 0;
  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const StageTask &) const = default;
};

/// Gives values that replace random parameters and data, so that a run can
/// start from the state of another program. `element` is the row-major index in
/// the global tensor. The global tensor of an input has the samples of one
/// micro-batch.
struct GivenNumbers {
  std::function<double(const TensorKey &, std::int64_t element)> parameter;
  std::function<double(const std::string &label, std::int64_t microBatch,
                       std::int64_t element)>
      input; ///< not called for "count", which is derived from "targets"
};

struct RunOptions {
  std::uint64_t seed = 1;
  int microBatches = 2;
  /// Holds the number of the step, which selects data and dropout masks. The
  /// optimizer always starts from zero moments, because a run is a single step.
  int step = 1;
  std::optional<Perturbation> perturbation;
  std::optional<GivenNumbers> given = {};
  AdamOptions adam;
  CollectiveHook afterCollective;
  /// Lists the tasks of each stage in order, each task once. If the list is
  /// empty, each micro-batch runs forward and backward before the next
  /// micro-batch.
  std::vector<std::vector<StageTask>> order = {};
};

struct DistributedTensor {
  /// A null layout replicates the tensor within each stage that holds it.
  LayoutAttr layout;
  /// Holds the shards by rank. A shard is empty if the rank's stage lacks the
  /// tensor.
  std::vector<HostTensor> ranks;

  bool holds(std::int64_t rank) const {
    return !ranks[static_cast<std::size_t>(rank)].data.empty();
  }
};
using TensorTable = std::map<TensorKey, DistributedTensor>;

/// Identifies a kind of collective by the operator's name without the dialect
/// ("all_reduce"), its mesh axis and its phase.
struct CollectiveKey {
  Phase phase = Phase::forward;
  std::string op;
  std::string axis;

  // NOLINTNEXTLINE(modernize-use-nullptr): as above
  auto operator<=>(const CollectiveKey &) const = default;
};

struct RunResult {
  MeshAttr mesh; ///< null for a run on one rank
  /// Holds the gradients that `mtp.adamw` reads. Without an `mtp.update`, holds
  /// the accumulators of parameters.
  TensorTable gradients;
  TensorTable parameters; ///< after the update, if there is one
  /// Holds the values of `mtp.result`. Without an `mtp.update`, holds the
  /// accumulators that belong to no parameter.
  TensorTable results;
  /// Counts the executions in the step, summed over layers, micro-batches and
  /// stages. `slice` and `mask` are counted, though they send nothing. `send`
  /// and `receive` are counted under the axis of stages.
  std::map<CollectiveKey, std::int64_t> collectives;
};

/// Executes a partitioned `module` on all ranks of its mesh, and any other
/// module on one rank, where `mtp.reshard` is the identity. Each micro-batch
/// runs forward through the chain of segments and, if segments have backward
/// halves, backward. The ranks of a stage run in lock step. If segments have
/// chunks and the mesh has an axis of stages, each stage runs its own chunks
/// and exchanges messages and sums with the other stages. Fails, with a
/// diagnostic, if the module does not verify, if it has an operator without a
/// kernel, or if stages deadlock.
mlir::FailureOr<RunResult> interpret(mlir::ModuleOp module,
                                     const RunOptions &options = {});

struct Comparison {
  /// Holds the largest relative error, which is infinite for NaN, wrong shapes
  /// and missing tensors.
  double worst = 0.0;
  std::string kind;      ///< "gradient", "parameter" or "result"
  std::string name;      ///< label with the layer's number, see TensorKey::name
  std::int64_t rank = 0; ///< rank of the partitioned run
  std::int64_t tensors = 0; ///< number of tensors compared
};

/// Compares every result, gradient and updated parameter. The shard of each
/// rank is compared with the slice of the logical tensor that the layout
/// assigns to the rank, so that replicas on all ranks and stages are checked.
/// Partial shards are reduced first.
///
/// The error of a tensor is max |shard - slice| / max(max |logical|, bound),
/// where the bound is 1e-5 times the largest element of all logical tensors of
/// the same kind. The bound is needed for gradients that are pure rounding
/// error, such as the gradient of the key bias, which cancels in the softmax.
Comparison compareRuns(const RunResult &logical, const RunResult &partitioned);

} // namespace mtplan::ir

#endif // MTPLAN_IR_INTERPRET_INTERPRET_H
