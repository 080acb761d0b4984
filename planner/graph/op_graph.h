//===- op_graph.h - A training step as the planner sees it ------*- C++ -*-===//
//
// Plain values, no compiler: a model is a chain of segments; a segment is a
// list of operators over tensors, forward then backward. Each operator names
// its factors (the index names of an einsum) and says, per dimension of each
// operand and result, which factor runs along it. That is all the planner
// needs to know which partitionings are legal.
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

/// What a split of a factor is called in the field; `--splits` names these.
/// `hidden` is the model dimension seen by pointwise operators of the residual
/// stream; it is in no default set (norms need it whole).
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
  /// Work of the busiest rank over the mean when split by n > 1 ranks is
  /// 1 + skew * (1 - 1/n): 1 for the causal sequence split, else 0. Not over
  /// context ranks, which have early and late pieces.
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
/// that may split it in this operator, or -1 where it must be whole. The size
/// of a dimension is its factor's, or a multiple: features are heads in a row.
struct Use {
  int tensor = 0;
  std::vector<int> factors;
  /// An operand of which no more is read than the first result has elements: a
  /// table that rows are looked up in.
  bool lookedUp = false;
};

/// Which roofline prices the operator.
enum class OpClass : std::uint8_t {
  gemm,      ///< matrix product: tiles and waves
  attention, ///< fused attention
  memory     ///< bound by its operands and results
};

/// The variant of attention that drops.
inline constexpr const char *kDropout = "dropout";

struct Op {
  std::string name; ///< "h.*.mlp.fc1", "h.*.mlp.fc1.dx"
  std::string kind; ///< the operator's mnemonic: "einsum", "layer_norm"
  /// What it computes where one kind has kernels of different speed: of
  /// activations the function, "gelu_tanh"; of attention that drops kDropout.
  std::string variant;
  Phase phase = Phase::forward;
  OpClass opClass = OpClass::memory;
  std::vector<Factor> factors;
  std::vector<Use> operands;
  std::vector<Use> results;
  /// The operand that a product or a pass of the same phase makes as its first
  /// result, and software may do this at once with; or -1. Each has one such
  /// follower at most.
  int follows = -1;
  /// Operands added to the result: partial whenever the result is (a bias
  /// under a split contraction is then kept by one rank only).
  std::vector<int> addends;
  /// Each group: operands in which the operator is jointly linear, so that they
  /// may come partial and the result leaves partial, the others being whole.
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
  int repeat = 1;   ///< consecutive equal copies, >= 1
  int first = 0;    ///< index of the first copy, for names
  std::vector<Tensor> tensors;
  std::vector<Op> ops; ///< in program order; forward ones first
  std::vector<int> carriedIn, carriedOut; ///< forward arguments and results
  /// Backward: gradients of carriedOut come in, of carriedIn go out, in order.
  std::vector<int> gradientIn, gradientOut;
  std::vector<Accumulation> accumulations;
  /// Scalars reported once per step (the loss): summed over micro-batches.
  std::vector<int> reported;
};

struct Parameter {
  std::string name; ///< "h.*.mlp.fc1.weight", "wte.weight"
  std::vector<std::int64_t> shape;
  std::vector<Split> splits; ///< per dimension: the name its split goes by
  int elementBytes = 2;
  int copies = 1;        ///< one per repetition of its segment
  bool shared = false;   ///< used by more than one segment (tied)
  bool divisible = true; ///< may be stored split
  /// Of the elements of all parameters of its segment, the first that has it.
  double ofSegment = 1.0;
};

struct ModelGraph {
  std::string name;
  std::vector<Parameter> parameters;
  std::vector<SegmentGraph> segments; ///< in chain order
  std::int64_t sequence = 0;          ///< tokens per sample, for throughput
  /// Products of one micro-batch, forward and backward, attention counted over
  /// all pairs of positions: the numerator of MFU (Narayanan et al. 2021, 5.1,
  /// without recompute).
  Flops modelFlops;
};

/// Writes Parameter::ofSegment.
void shareSegments(ModelGraph &graph);

/// Whether its copies are layers of the model: it repeats, or is what pins cut
/// off a segment that does. Labels of such have a star.
bool isLayer(const SegmentGraph &segment);

/// Whether a copy hands on what it was handed, in the same place: the encoder's
/// output in a decoder. Kept that way by several copies, it is one value.
bool isHandedOn(const SegmentGraph &segment, int tensor);

/// The same graph for another number of samples per micro-batch, all replicas
/// together: shapes, factor sizes and flops follow the batch dimension.
ModelGraph withBatch(const ModelGraph &graph, std::int64_t samples);

/// Every violation of what the comments above promise, each one a sentence
/// that starts with a JSON pointer; empty if the graph is sound.
/// Complexity: linear in the graph.
std::vector<std::string> check(const ModelGraph &graph);

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_GRAPH_OP_GRAPH_H
