//===- op_graph.h - A training step as the planner sees it ------*- C++ -*-===//
//
// Defines the planner's graph, which does not depend on the compiler. A model
// is a chain of segments; a segment is a list of operators over tensors,
// forward then backward. Each operator names its factors (the index names of an
// einsum) and, for each dimension of its operands and results, the factor along
// that dimension. The legal partitionings follow from the factors alone.
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

/// Names the ways to split a factor; `--splits` uses these names. `hidden` is
/// the model dimension of pointwise operators of the residual stream; no
/// default set of splits contains `hidden`, because norms need that dimension
/// unsplit.
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
const char *nameOf(Split split); ///< "batch", "sequence", ..., "hidden"

struct Factor {
  std::string name;      ///< "b", "s", "i", "o"
  std::int64_t size = 1; ///< size over all ranks, > 0
  Split split = Split::feature;
  bool divisible = true; ///< false: never split
  /// Says how results that lack the factor are reduced over it.
  Reduction reduction = Reduction::sum;
  /// Describes the imbalance of a split: if n ranks split the factor, the
  /// busiest rank has 1 + skew * (1 - 1/n) times the mean work. The skew is 1
  /// for the query positions of causal attention, else 0. Context-parallel
  /// ranks have equal work at any skew, because each holds an early and a late
  /// slice.
  double skew = 0.0;
};

enum class TensorKind : std::uint8_t { activation, parameter, input };
enum class Phase : std::uint8_t { forward, backward };

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape; ///< unsharded, for one micro-batch
  int elementBytes = 2;
  TensorKind kind = TensorKind::activation;
  Phase phase = Phase::forward; ///< the phase that produces or receives it
  int parameter = -1;           ///< index into ModelGraph::parameters; -1: none
  int batchDim = -1; ///< index of the batch dimension in `shape`; -1: none
};

/// Describes one operand or result. `factors` holds, per dimension, the index
/// of the factor that may split the dimension in this operator, or -1. The size
/// of a dimension is the size of its factor or a multiple of that size: for
/// example, the number of features is a multiple of the number of heads.
struct Use {
  int tensor = 0;
  std::vector<int> factors;
  /// Says whether the operand is a lookup table. The operator reads at most as
  /// many elements of a lookup table as the first result has.
  bool lookedUp = false;
};

/// Selects the cost model of the operator.
enum class OpClass : std::uint8_t {
  gemm,      ///< matrix product: tiles and waves
  attention, ///< attention, with or without a fused kernel
  memory     ///< limited by the memory traffic of operands and results
};

/// Selects the software's figures that price an operator of class memory. The
/// operator's definition in the IR sets the kind.
enum class PassKind : std::uint8_t {
  traffic, ///< no figures: the bytes of operands and results count
  layerNorm,
  rmsNorm,
  residual,
  activation,
  gated,
  rope,
  dropout,
  biasGradient,   ///< has figures only in backward
  logitsRead,     ///< one of the two forward operators that read logits
  logitsGradient, ///< reads the logits and writes their gradient
};

inline constexpr const char *kDropout = "dropout";

struct Op {
  std::string name; ///< "h.*.mlp.fc1", "h.*.mlp.fc1.dx"
  std::string kind; ///< the operator's mnemonic: "einsum", "layer_norm"
  /// Distinguishes kernels of one kind that differ in speed: the function of an
  /// activation, such as "gelu_tanh"; kDropout for attention with dropout.
  std::string variant;
  Phase phase = Phase::forward;
  OpClass opClass = OpClass::memory;
  PassKind pass = PassKind::traffic;
  std::vector<Factor> factors;
  std::vector<Use> operands;
  std::vector<Use> results;
  /// Holds the index of the operand whose producer the operator may be fused
  /// with; -1 means no fusion. The producer is a product or a memory-bound
  /// operator of the same phase, and the operand is the producer's first
  /// result. A producer has at most one such consumer.
  int fusedOperand = -1;
  /// Lists the operands that are added to the result. An addend is partial
  /// whenever the result is: if a contraction is split, only one rank adds the
  /// bias.
  std::vector<int> addends;
  /// Each group lists operands in which the operator is jointly linear. If all
  /// operands of the group are partial and no other operand is, the result is
  /// partial.
  std::vector<std::vector<int>> linearGroups;
  Flops flops; ///< of all ranks together
  /// For gemm only, these list the indices of the factors by role. `m` are
  /// factors of the first operand and the result, `n` of the second operand and
  /// the result, `k` of both operands, and `batch` of all three.
  std::vector<int> m, n, k, batch;
};

struct Accumulation {
  int tensor = 0;    ///< index of the gradient of one micro-batch
  int parameter = 0; ///< index into ModelGraph::parameters
};

/// Describes a part of the model that can repeat, such as a layer. Lists of
/// tensors are indices into `tensors`.
struct SegmentGraph {
  std::string name; ///< "embed", "h", "head"
  int repeat = 1;   ///< the number of consecutive equal repeats, >= 1
  int first = 0;    ///< index of the first repeat, for names
  std::vector<Tensor> tensors;
  std::vector<Op> ops; ///< in program order; forward ones first
  std::vector<int> carriedIn, carriedOut; ///< forward arguments and results
  /// The backward arguments `gradientIn` are the gradients of carriedOut, and
  /// the backward results `gradientOut` are the gradients of carriedIn, in the
  /// same order.
  std::vector<int> gradientIn, gradientOut;
  std::vector<Accumulation> accumulations;
  /// Lists the scalars that are reported once per step (the loss), summed over
  /// micro-batches.
  std::vector<int> reported;
};

struct Parameter {
  std::string name; ///< "h.*.mlp.fc1.weight", "wte.weight"
  std::vector<std::int64_t> shape;
  std::vector<Split> splits; ///< per dimension: the name of its split
  int elementBytes = 2;
  int copies = 1;        ///< number of instances: one per repeat of its segment
  bool shared = false;   ///< used by more than one segment (tied)
  bool divisible = true; ///< may be stored split
  /// Holds the number of elements divided by the total number of elements of
  /// all parameters that first occur in the same segment. The parameters of
  /// experts are totalled separately.
  double ofSegment = 1.0;
};

struct ModelGraph {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<SegmentGraph> segments; ///< in chain order
  std::int64_t sequence = 0;          ///< tokens per sample, for throughput
  /// Counts the operations of one micro-batch's products, forward and backward,
  /// with attention over all pairs of positions. This is the numerator of MFU
  /// (Narayanan et al. 2021, 5.1, without recomputation).
  Flops modelFlops;
};

/// Sets Parameter::ofSegment.
void shareSegments(ModelGraph &graph);

/// Returns whether the parameter belongs to experts. The gradients of experts'
/// parameters are reduced over other process groups, in separate messages.
bool isOfExperts(const Parameter &parameter);

/// Returns whether the tensor is a parameter's gradient of one micro-batch.
bool isAccumulated(const SegmentGraph &segment, int tensor);

/// Returns whether an operator makes only gradients of parameters. A
/// zero-bubble schedule postpones such operators.
bool makesWeightGradients(const SegmentGraph &segment, const Op &op);

/// Returns whether the segment's repeats are layers of the model: the segment
/// repeats, or pins (strategies that the user fixes) have cut the segment from
/// a repeated segment. The operator names of such segments contain "*".
bool isLayer(const SegmentGraph &segment);

bool hasLayers(const ModelGraph &graph);

/// Returns whether a repeat passes the tensor through unchanged, as a decoder
/// does with the encoder's output. All repeats that save such a tensor share
/// one copy.
bool isCarriedOut(const SegmentGraph &segment, int tensor);

/// Returns the graph with `samples` samples per micro-batch, counted over all
/// replicas.
ModelGraph withBatch(const ModelGraph &graph, std::int64_t samples);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_H
