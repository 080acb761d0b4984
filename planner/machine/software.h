//===- software.h - The software that runs on the devices -------*- C++ -*-===//
//
// A software file describes a generation of training software: its kernels, the
// memory traffic of its passes, and the work that it overlaps. The same
// operators on the same device take different times under each. Every number in
// a file has a source; software_json.cpp rejects a number without one.
// docs/software-format.md lists the sources.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_PLANNER_MACHINE_SOFTWARE_H
#define MTPLAN_PLANNER_MACHINE_SOFTWARE_H

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "planner/machine/machine.h"

namespace mtplan::planner {

/// One kind of pass over a tensor, forward and backward.
struct Pass {
  /// Bytes read and written per 16-bit element; wider elements in proportion.
  double forwardBytes = 0.0, backwardBytes = 0.0;
  double forwardKernels = 1.0, backwardKernels = 1.0;
};

/// Passes that are not products. A pass that is fused with a neighbour is 0
/// here or in the neighbour.
struct Passes {
  Pass layerNorm, rmsNorm;
  Pass residual;   ///< additions of the residual stream
  Pass activation; ///< of one input: GELU
  Pass gated;      ///< of two inputs, per element of one: SwiGLU
  Pass rope, dropout;
  Pass biasGradient; ///< per element of the gradient summed; backward alone
};

/// The shares of peak that an attention kernel reaches on a device.
struct AttentionRate {
  std::string device; ///< Device::name or Device::architecture
  double forward = 1.0, backward = 1.0;
};

/// Attention that stores its scores in memory, [heads, queries, keys].
struct ScoreTraffic {
  /// Bytes per score of softmax with scale and mask, as one kernel or step by
  /// step.
  double fusedForward = 0.0, fusedBackward = 0.0;
  double unfusedForward = 0.0, unfusedBackward = 0.0;
  double dropout = 0.0; ///< of the probabilities, in either direction
  /// Bytes per score saved for backward: probabilities, mask, dropped
  /// probabilities.
  double saved = 0.0;
  /// The fused kernel needs heads times samples on a rank to be a multiple of
  /// this, and at most that many keys.
  int fusedMultiple = 1, fusedLongest = 0;
};

/// The consumers that are fused with their producers, and the devices where
/// they are.
struct KernelFusions {
  std::vector<std::string> devices; ///< Device::name or Device::architecture
  /// By Precision, as fusionName spells them.
  std::array<std::vector<std::string>, 3> kernels;
  /// Whether replicas send the weights and gradients of a segment that travel
  /// once a step as one message.
  bool messages = false;
  bool operator==(const KernelFusions &) const = default;
};

struct AttentionKernel {
  bool keepsScores = false; ///< batched products; else one fused kernel
  /// Head sizes of the fused kernel, ascending; others are padded. Above the
  /// last: multiples of it.
  std::vector<int> headSizes{1};
  /// The rates of the fused kernel; a device that is not listed has its own.
  std::vector<AttentionRate> rates;
  ScoreTraffic scores;
  /// Bytes copied around the kernel, per element of the queries.
  double copyForward = 0.0, copyBackward = 0.0;
  double forwardKernels = 1.0, backwardKernels = 1.0;
};

/// Bytes per parameter.
struct ParameterTraffic {
  double gradient = 2.0; ///< stored and sent, in 16-bit training
  /// Bytes of the owned shard that one update reads and writes.
  double optimizer = 28.0;
  /// Bytes of the stored weights that scaling and casts read and write.
  double sweep = 0.0;
  double normReads = 0.0; ///< of each owned gradient, for the norm
  /// Bytes that add a gradient to its accumulator, per micro-batch after the
  /// first.
  double accumulation = 2.0;
  /// Bytes copied around gathers and reductions of split parameters, per
  /// micro-batch.
  double shardCopies = 0.0;
  /// The size of messages in which replicas exchange weights and gradients; 0:
  /// a message each.
  Bytes bucket;
  /// In fp8 training, the share of the weights' bytes that are gathered.
  double gatheredFp8 = 1.0;
  /// The rate of one ring through all devices, which replaces the network's
  /// model; 0: none.
  BytesPerSec flatRing;
  /// Time once a step for every rank that shares the optimizer's state and
  /// sends its updates in messages of its own.
  Seconds perSharer;
};

/// Bytes moved per element of an fp8 product to cast it and to find its scale.
struct CastTraffic {
  double input = 0.0;      ///< of a product, forward
  double normalised = 0.0; ///< the same for the output of a norm
  double weight = 0.0;     ///< forward
  double gradient = 0.0;   ///< of a product's result, backward
  bool operator==(const CastTraffic &) const = default;
};

/// Collectives of the tensor axis between two operators.
struct TensorTraffic {
  double copies = 0.0; ///< of the whole tensor, after each collective
  /// The share that products in tiles hide.
  double hiddenForward = 0.0, hiddenBackward = 0.0;
  double fp8 = 1.0; ///< their share of the time in fp8 training
};

/// The part of a layer that selective recomputation repeats.
enum class SelectiveRule : std::uint8_t {
  attention, ///< its core
  /// All operators but attention and the first, third, ... product.
  everySecondProduct,
};

/// The communication that overlaps compute.
struct OverlapRules {
  bool pointToPoint = false, gather = false, reduce = false;
  /// The share of an overlapped collective's time that compute loses, and the
  /// share for a group with one rank per node.
  double tax = 0.0, taxOneRankPerNode = 0.0;
};

struct Software {
  std::string name;
  AttentionKernel attention;
  Passes passes;
  double crossEntropy = 8.0; ///< bytes per logit, forward and backward
  CastTraffic casts;
  /// Whether products of one input (q, k and v) run as one batched product,
  /// whose input gradient then needs no sum in memory.
  bool batchesProducts = false;
  KernelFusions fusions;
  ParameterTraffic parameters;
  /// Whether recomputation ends with the last value that backward reads.
  bool stopsRecomputeEarly = false;
  SelectiveRule selective = SelectiveRule::attention;
  TensorTraffic tensor;
  OverlapRules overlap;
  double transfers = 2.0; ///< between stages, per boundary and micro-batch
  /// Whether values that all tensor ranks hold are sent between stages in
  /// shards and gathered there.
  bool scattersSends = false;
  /// If set, the host waits for each kernel: this replaces Device::launch.
  std::optional<Seconds> blockingLaunch;
};

/// Returns the shares of peak on `device`: the measured ones, else the entry of
/// its name, else of its architecture, else the device's own figure in both
/// directions.
/// \param drops  as measured with dropout, if it was
AttentionRate attentionRateOf(const Software &software, const Device &device,
                              Precision precision, bool drops = false);

/// Returns the measured rates of the software's kernels on the device, or null.
const MeasuredKernels *measuredOf(const Software &software,
                                  const Device &device);

/// Returns the measured rate of one pass, by its operator's variant, else by
/// its kind; 0: not measured.
BytesPerSec measuredPassRate(const Software &software, const Device &device,
                             std::string_view kernel, Precision precision,
                             std::string_view variant = {});

/// Returns whether a kernel is fused with its producer: as measured on the
/// device, else as the software's file says.
/// \param name  fusionName of the two
bool isFused(const Software &software, const Device &device,
             std::string_view name, Precision precision);

/// Returns whether KernelFusions::messages applies to the device.
bool groupsMessages(const Software &software, const Device &device);

/// Returns the name of two kernels that may be fused: "dropout+add"; of a
/// product and a consumer, the consumer alone: "activation.gelu".
/// \param maker  the producer; empty: a product
std::string fusionName(std::string_view maker, std::string_view kernel,
                       std::string_view variant);

/// Returns the name of a kernel's variant: "activation.gelu"; the kernel's own
/// name where there is none.
std::string variantName(std::string_view kernel, std::string_view variant);

/// Returns the head size that the kernel computes for `size`.
double paddedHead(const AttentionKernel &kernel, double size);

/// A software file that cannot be used; see MachineError.
class SoftwareError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_SOFTWARE_H
