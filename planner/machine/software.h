//===- software.h - What runs on the devices --------------------*- C++ -*-===//
//
// A generation of training software, read from a software file: which kernels
// it has, how much memory traffic its passes cost, what it runs beside what.
// The same operators on the same device take different time under each. Every
// number in a file carries its source; one without is rejected by
// software_json.cpp. docs/software-format.md says where they are from.
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
  /// Read and written per element of 16 bits; wider elements in proportion.
  double forwardBytes = 0.0, backwardBytes = 0.0;
  double forwardKernels = 1.0, backwardKernels = 1.0;
};

/// Passes that are not products. What is fused with a neighbour is 0 here or in
/// the neighbour.
struct Passes {
  Pass layerNorm, rmsNorm;
  Pass residual;   ///< additions of the residual stream
  Pass activation; ///< of one input: GELU
  Pass gated;      ///< of two inputs, per element of one: SwiGLU
  Pass rope, dropout;
  Pass biasGradient; ///< per element of the gradient summed; backward only
};

/// Shares of peak that an attention kernel reaches on a device.
struct AttentionRate {
  std::string device; ///< Device::name or Device::architecture
  double forward = 1.0, backward = 1.0;
};

/// Attention that keeps its scores in memory, [heads, queries, keys].
struct ScoreTraffic {
  /// Per score: softmax with scale and mask, as one kernel or step by step.
  double fusedForward = 0.0, fusedBackward = 0.0;
  double unfusedForward = 0.0, unfusedBackward = 0.0;
  double dropout = 0.0; ///< of the probabilities, either way
  /// Per score, from forward to backward: probabilities, mask, what is left.
  double saved = 0.0;
  /// The one kernel is there if heads times samples on a rank divide by this
  /// and the keys are at most that many.
  int fusedMultiple = 1, fusedLongest = 0;
};

/// What is done at once with what is before it, on some devices.
struct KernelJoins {
  std::vector<std::string> devices; ///< Device::name or Device::architecture
  /// By Precision, as joinName has them.
  std::array<std::vector<std::string>, 3> kernels;
  /// Of what replicas send of one segment's weights and gradients once a step:
  /// all go as one message.
  bool messages = false;
  bool operator==(const KernelJoins &) const = default;
};

struct AttentionKernel {
  bool keepsScores = false; ///< batched products; else one fused kernel
  /// Fused: head sizes the kernel has, ascending; others are padded. Beyond the
  /// last: multiples of it.
  std::vector<int> headSizes{1};
  std::vector<AttentionRate> rates; ///< fused; a device not here has its own
  ScoreTraffic scores;
  /// Copies around the kernel, per element of the queries.
  double copyForward = 0.0, copyBackward = 0.0;
  double forwardKernels = 1.0, backwardKernels = 1.0;
};

/// Bytes per parameter.
struct ParameterTraffic {
  double gradient = 2.0;   ///< kept and sent, for training in 16 bits
  double optimizer = 28.0; ///< read and written by one update of what is owned
  double sweep = 0.0;      ///< the same, of all that is stored: scaling, casts
  double normReads = 0.0;  ///< of each gradient that is owned, for the norm
  /// Per micro-batch after the first, to add a gradient to those before.
  double accumulation = 2.0;
  /// Per micro-batch, around gathers and reductions of split parameters.
  double shardCopies = 0.0;
  /// Weights and gradients go between replicas in messages of this much; 0:
  /// each on its own.
  Bytes bucket;
  /// Training in fp8, share of the bytes of weights brought together.
  double gatheredFp8 = 1.0;
  /// One ring through all devices whatever lies between, at this rate each, in
  /// place of what the network could do; 0: none.
  BytesPerSec flatRing;
  /// Once a step, for every rank that shares a copy of the optimizer's state
  /// and sends what it has updated by messages of its own.
  Seconds perSharer;
};

/// Of products in fp8: bytes moved per element, to cast it and to find its
/// scale.
struct CastTraffic {
  double input = 0.0;      ///< of a product, forward
  double normalised = 0.0; ///< the same of what a norm made
  double weight = 0.0;     ///< forward
  double gradient = 0.0;   ///< of a product's result, backward
  bool operator==(const CastTraffic &) const = default;
};

/// Collectives of the tensor axis, which stand between two operators.
struct TensorTraffic {
  double copies = 0.0; ///< of the whole tensor, after each
  /// Share that products cut in pieces hide.
  double hiddenForward = 0.0, hiddenBackward = 0.0;
  double fp8 = 1.0; ///< training in fp8, share of their time
};

/// What a layer that recomputes selectively runs a second time.
enum class SelectiveRule : std::uint8_t {
  attention, ///< its core
  /// All but attention and the first, third, ... product.
  everySecondProduct,
};

/// What runs beside compute.
struct OverlapRules {
  bool pointToPoint = false, gather = false, reduce = false;
  /// Of the time of an overlapped collective, what compute loses; and where the
  /// group has one rank per node.
  double tax = 0.0, taxOneRankPerNode = 0.0;
};

struct Software {
  std::string name;
  AttentionKernel attention;
  Passes passes;
  double crossEntropy = 8.0; ///< bytes per logit, forward and backward
  CastTraffic casts;
  /// Products of one input (q, k and v) are one, and the gradients of that
  /// input need no sum in memory.
  bool joinsProducts = false;
  KernelJoins joins;
  ParameterTraffic parameters;
  /// Recomputation ends with the last value that backward reads.
  bool stopsRecomputeEarly = false;
  SelectiveRule selective = SelectiveRule::attention;
  TensorTraffic tensor;
  OverlapRules overlap;
  double transfers = 2.0; ///< between stages, per boundary and micro-batch
  /// What tensor ranks all hold is sent between stages in as many pieces and
  /// gathered there.
  bool scattersSends = false;
  /// The host waits for each kernel: this long instead of Device::launch.
  std::optional<Seconds> blockingLaunch;
};

/// Shares of peak on `device`: what was measured there, else the entry of its
/// name, else of its architecture, else the device's own figure both ways.
/// \param drops  as measured with dropout, if it was
AttentionRate attentionRateOf(const Software &software, const Device &device,
                              Precision precision, bool drops = false);

/// What was measured of the software's kernels on the device; null: nothing.
const MeasuredKernels *measuredOf(const Software &software,
                                  const Device &device);

/// The same of one pass, by the name of its operator: of its variant, else of
/// any; 0: nothing.
BytesPerSec measuredPassRate(const Software &software, const Device &device,
                             std::string_view kernel, Precision precision,
                             std::string_view variant = {});

/// Whether it does a kernel at once with the one before it: as was measured on
/// the device, else as the software's file has it.
/// \param name  joinName of the two
bool joins(const Software &software, const Device &device,
           std::string_view name, Precision precision);

/// Whether KernelJoins::messages are one on the device.
bool joinsMessages(const Software &software, const Device &device);

/// What two kernels go by that may be done at once: "dropout+add"; of a product
/// and another, that alone: "activation.gelu".
/// \param maker  of what the second takes; empty: a product
std::string joinName(std::string_view maker, std::string_view kernel,
                     std::string_view variant);

/// What a kernel's variant goes by: "activation.gelu"; the kernel's own name
/// where there is none.
std::string variantName(std::string_view kernel, std::string_view variant);

/// `size` as the kernel computes it.
double paddedHead(const AttentionKernel &kernel, double size);

/// A software file that cannot be used; see MachineError.
class SoftwareError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_SOFTWARE_H
