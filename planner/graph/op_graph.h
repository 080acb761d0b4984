//===- op_graph.h - A training step as the planner sees it ------*- C++ -*-===//
//
// Plain values, no compiler: a model is a chain of segments; a segment is a
// list of operators over tensors, forward then backward. Each operator names
// its factors (the index names of an einsum) and says, per dimension of each
// operand and result, which factor runs along it. The legal partitionings
// follow from this alone.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_GRAPH_OP_GRAPH_H
#define MTPLAN_PLANNER_GRAPH_OP_GRAPH_H

#include <cstdint>
#include <string>
#include <vector>

#include "planner/graph/layout.h"
#include "planner/units.h"

namespace mtplan::planner {

/// The field's name for the split of a factor; `--splits` uses these names.
/// `hidden` is the model dimension seen by pointwise operators of the residual
/// stream; it is in no default set, because norms need it unsplit.
enum class Split : std::uint8_t {
  batch,
  sequence,
  column,
  row,
  head,
  vocab,
  expert,
  feature,
  hidden
};
const char *nameOf(Split split);

struct Factor {
  std::string name;      ///< "b", "s", "i", "o"
  std::int64_t size = 1; ///< global, > 0
  Split split = Split::feature;
  bool divisible = true;                ///< false: never split
  Reduction reduction = Reduction::sum; ///< of results that lack the factor
  /// The work of the busiest rank over the mean, when split by n > 1 ranks, is
  /// 1 + skew * (1 - 1/n): skew is 1 for the causal sequence split, else 0. It
  /// is 0 over context ranks, which have early and late slices.
  double skew = 0.0;
};

enum class TensorKind : std::uint8_t { activation, parameter, input };
enum class Phase : std::uint8_t { forward, backward };

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape; ///< global over the ranks of one micro-batch
  int elementBytes = 2;
  TensorKind kind = TensorKind::activation;
  Phase phase = Phase::forward; ///< where it is made; forward if an argument
  int parameter = -1;           ///< index into ModelGraph::parameters
  int batchDim = -1;            ///< the dimension that counts samples, or -1
};

/// One operand or result: a tensor, and per dimension the index of the factor
/// that may split it in this operator, or -1 where it must not be split. The
/// size of a dimension is its factor's or a multiple: features are heads in a
/// row.
struct Use {
  int tensor = 0;
  std::vector<int> factors;
  /// Whether no more of the operand is read than the first result has elements:
  /// a table in which rows are looked up.
  bool lookedUp = false;
};

/// Selects the roofline that prices the operator.
enum class OpClass : std::uint8_t {
  gemm,      ///< matrix product: tiles and waves
  attention, ///< fused attention
  memory     ///< bound by its operands and results
};

/// Which figures of the software price an operator of class memory. The
/// operator's definition in the IR says so.
enum class PassKind : std::uint8_t {
  traffic, ///< none: it reads its operands and writes its results
  layerNorm,
  rmsNorm,
  residual,
  activation,
  gated,
  rope,
  dropout,
  biasGradient,   ///< in the backward half alone
  logitsRead,     ///< one of two passes over the logits in the forward half
  logitsGradient, ///< reads the logits and writes their gradient
};

/// The variant of attention with dropout.
inline constexpr const char *kDropout = "dropout";

struct Op {
  std::string name; ///< "h.*.mlp.fc1", "h.*.mlp.fc1.dx"
  std::string kind; ///< the operator's mnemonic: "einsum", "layer_norm"
  /// Tells apart the kernels of one kind that differ in speed: the function of
  /// an activation, "gelu_tanh"; kDropout of attention with dropout.
  std::string variant;
  Phase phase = Phase::forward;
  OpClass opClass = OpClass::memory;
  PassKind pass = PassKind::traffic;
  std::vector<Factor> factors;
  std::vector<Use> operands;
  std::vector<Use> results;
  /// The operand whose producer the operator may be fused into, or -1. The
  /// producer is a product or a pass of the same phase and makes the operand as
  /// its first result; it has at most one such consumer.
  int fusedOperand = -1;
  /// Operands that are added to the result: partial whenever the result is (one
  /// rank alone then keeps a bias under a split contraction).
  std::vector<int> addends;
  /// Each group lists operands in which the operator is jointly linear: they
  /// may come partial, the result is then partial, and the other operands are
  /// not.
  std::vector<std::vector<int>> linearGroups;
  Flops flops; ///< of the whole operator, all ranks together
  /// gemm only: factors by role. m: first operand and result; n: second and
  /// result; k: both operands; batch: all three.
  std::vector<int> m, n, k, batch;
};

struct Accumulation {
  int tensor = 0;    ///< gradient of one micro-batch
  int parameter = 0; ///< index into ModelGraph::parameters
};

/// The unit of repetition. Tensor lists index `tensors`.
struct SegmentGraph {
  std::string name; ///< "embed", "h", "head"
  int repeat = 1;   ///< consecutive equal repeats, >= 1
  int first = 0;    ///< index of the first repeat, for names
  std::vector<Tensor> tensors;
  std::vector<Op> ops; ///< in program order; forward ones first
  std::vector<int> carriedIn, carriedOut; ///< forward arguments and results
  /// In backward: gradients of carriedOut come in, those of carriedIn go out,
  /// in order.
  std::vector<int> gradientIn, gradientOut;
  std::vector<Accumulation> accumulations;
  /// Scalars that are reported once per step (the loss), summed over
  /// micro-batches.
  std::vector<int> reported;
};

struct Parameter {
  std::string name; ///< "h.*.mlp.fc1.weight", "wte.weight"
  std::vector<std::int64_t> shape;
  std::vector<Split> splits; ///< per dimension: the name of its split
  int elementBytes = 2;
  int copies = 1;        ///< one per repeat of its segment
  bool shared = false;   ///< used by more than one segment (tied)
  bool divisible = true; ///< may be stored split
  /// Its elements over those of all parameters of the first segment that has
  /// it.
  double ofSegment = 1.0;
};

struct ModelGraph {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<SegmentGraph> segments; ///< in chain order
  std::int64_t sequence = 0;          ///< tokens per sample, for throughput
  /// Products of one micro-batch, forward and backward, attention counted over
  /// all pairs of positions: the numerator of MFU (Narayanan et al. 2021, 5.1,
  /// without recomputation).
  Flops modelFlops;
};

/// Sets Parameter::ofSegment.
void shareSegments(ModelGraph &graph);

/// Returns whether the parameter belongs to experts, whose ranks are others
/// than those of the rest, so that its messages are separate.
bool isOfExperts(const Parameter &parameter);

/// Returns whether the tensor is the gradient of one micro-batch.
bool isAccumulated(const SegmentGraph &segment, int tensor);

/// Returns whether the segment's repeats are layers of the model: it repeats,
/// or pins have cut it off a segment that does. Labels of such segments have a
/// star.
bool isLayer(const SegmentGraph &segment);

/// Returns whether a repeat passes the tensor on as it received it, as a
/// decoder does with the encoder's output. Several repeats that save it hold
/// one value.
bool isCarriedOut(const SegmentGraph &segment, int tensor);

/// Returns the graph for another number of samples per micro-batch, all
/// replicas together: shapes, factor sizes and flops follow the batch
/// dimension.
ModelGraph withBatch(const ModelGraph &graph, std::int64_t samples);

/// Returns every violation of this file's promises, a sentence each that starts
/// with a JSON pointer; empty if the graph is sound. Complexity: linear in the
/// graph.
std::vector<std::string> check(const ModelGraph &graph);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_H
