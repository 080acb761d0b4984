//===- software.h - The software that runs on the devices -------*- C++ -*-===//
//
// Defines the contents of a software file, which describes a generation of
// training software: its attention kernels, the traffic of its memory-bound
// kernels, and the work that overlaps compute. docs/software-format.md lists
// the sources.
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

struct Pass {
  /// These are the bytes read and written, per 16-bit element of the largest
  /// operand or result. For elements of another width, the bytes are scaled in
  /// proportion.
  double forwardBytes = 0.0, backwardBytes = 0.0;
  double forwardKernels = 1.0, backwardKernels = 1.0;
  /// Counts the bytes that forward keeps for backward in addition to operands
  /// and results, per 16-bit element as above.
  double kept = 0.0;
};

/// Holds the figures of memory-bound kernels. If the software fuses two
/// neighbouring kernels, the figures of one of the two are 0.
struct Passes {
  Pass layerNorm, rmsNorm;
  Pass residual;   ///< additions of the residual stream
  Pass activation; ///< an activation of one input, such as GELU
  Pass gated;      ///< SwiGLU; bytes per element of one of the two inputs
  Pass rope, dropout;
  /// Holds figures for backward only, per element of the gradient that the
  /// kernel sums.
  Pass biasGradient;
};

/// Holds the shares of peak that an attention kernel reaches on a device.
struct AttentionRate {
  std::string device; ///< Device::name or Device::architecture
  double forward = 1.0, backward = 1.0;
};

/// Holds the traffic of attention that stores its scores,
/// [heads][queries][keys], in memory. Bytes are per 16-bit score.
struct ScoreTraffic {
  /// These are the bytes of softmax with scale and mask, as one fused kernel or
  /// as separate kernels.
  double fusedForward = 0.0, fusedBackward = 0.0;
  double unfusedForward = 0.0, unfusedBackward = 0.0;
  double dropout = 0.0; ///< dropout of probabilities, per phase
  /// Counts the bytes saved for backward: probabilities, mask, dropped
  /// probabilities.
  double saved = 0.0;
  /// The fused softmax is used only if heads times samples on a rank are a
  /// multiple of fusedMultiple and there are at most fusedLongest keys.
  int fusedMultiple = 1, fusedLongest = 0;
};

/// Lists the kernels that are fused with the producer of their operand, and the
/// devices on which they are fused.
struct KernelFusions {
  std::vector<std::string> devices; ///< Device::name or Device::architecture
  std::array<std::vector<std::string>, 3> kernels; ///< fusionName()s
  /// Says whether replicas exchange all weights of a segment in one message,
  /// and all gradients in another. Only exchanges that occur once a step are
  /// grouped in this way.
  bool messages = false;
  bool operator==(const KernelFusions &) const = default;
};

struct AttentionKernel {
  bool keepsScores = false; ///< true: batched products; false: one fused kernel
  /// Lists the head sizes of the fused kernel, ascending. Any other size is
  /// padded to the next size in the list or, if the size exceeds the last one,
  /// to a multiple of the last one.
  std::vector<int> headSizes{1};
  /// Lists the rates of the fused kernel. Device::attentionEfficiency applies
  /// to devices that are not listed.
  std::vector<AttentionRate> rates;
  ScoreTraffic scores;
  /// These are the bytes that copies before and after the kernel move, per
  /// 16-bit element of the queries.
  double copyForward = 0.0, copyBackward = 0.0;
  /// Counts the bytes of these copies that are kept for backward.
  double copyKept = 0.0;
  double forwardKernels = 1.0, backwardKernels = 1.0;
};

/// Holds the traffic of parameters and gradients, in bytes per parameter if not
/// stated otherwise.
struct ParameterTraffic {
  /// Counts the bytes of a stored or sent gradient, in 16-bit training.
  double gradient = 2.0;
  /// Counts the bytes that one update reads and writes, per parameter of the
  /// rank's optimizer shard.
  double optimizer = 28.0;
  /// Counts the bytes that scaling and casts read and write, per weight on the
  /// rank.
  double sweep = 0.0;
  double normReads = 0.0; ///< reads of each gradient for the norm
  /// Counts the bytes moved to add a gradient to its accumulator, per
  /// micro-batch after the first.
  double accumulation = 2.0;
  /// Counts the bytes that copies before and after the all-gathers and
  /// reductions of ZeRO-3 move, per micro-batch.
  double shardCopies = 0.0;
  /// Holds the size of the messages in which replicas exchange weights and
  /// gradients; 0 means one message per parameter.
  Bytes bucket;
  /// Holds the bytes of an all-gather of weights in fp8 training, relative to
  /// an all-gather of 16-bit weights.
  double gatheredFp8 = 1.0;
  /// If not 0, replicas communicate at this rate over one ring through all
  /// devices, and the model of NetworkLevel does not apply to their exchanges.
  BytesPerSec flatRing;
  /// Holds the time to add to a step for each rank over which the optimizer's
  /// state is sharded, in software that sends each shard in its own message.
  Seconds perSharer;
};

/// Counts the bytes moved, per 16-bit element, to cast the tensors of an fp8
/// product and to find their scales.
struct CastTraffic {
  double input = 0.0;      ///< a product's input, forward
  double normalised = 0.0; ///< a product's input that a norm produced
  double weight = 0.0;     ///< a product's weight, forward
  double gradient = 0.0;   ///< the gradient of a product's result, backward
  bool operator==(const CastTraffic &) const = default;
};

/// Holds figures of the tensor axis's collectives between operators.
struct TensorTraffic {
  double copies = 0.0; ///< tensor copies after each collective
  /// Multiply the times of the collectives: of groups within a node, and of
  /// groups that span nodes.
  double slowdown = 1.0, slowdownAcrossNodes = 1.0;
  /// These are the shares of the time of collectives and copies that are hidden
  /// beside products that run in tiles.
  double hiddenForward = 0.0, hiddenBackward = 0.0;
  /// Multiplies the times of the collectives and of the copies in fp8 training.
  double fp8 = 1.0;
};

/// Names the part of a layer that selective recomputation computes again.
enum class SelectiveRule : std::uint8_t {
  attention, ///< core attention
  /// Recomputes all operators except attention and the first, third, ...
  /// product.
  everySecondProduct,
};

struct OverlapRules {
  bool pointToPoint = false, gather = false, reduce = false;
  /// An overlapped collective delays compute by `tax` times the collective's
  /// time. taxOneRankPerNode applies to groups with one rank per node.
  double tax = 0.0, taxOneRankPerNode = 0.0;
};

/// Holds times for which the host of an eager framework is busy. The host
/// launches work ahead of the device. If launching a phase takes longer than
/// the device's work, the launches set the time of the phase.
struct HostLaunch {
  Seconds kernel;     ///< of one kernel
  Seconds collective; ///< of a collective between two operators
  /// One is added to `collective` per rank of its group: without stages, for a
  /// group over nodes; with stages, for a group within a node, or over nodes.
  Seconds perRankAcrossNodes, perRankPipelined, perRankPipelinedAcrossNodes;
  Seconds message; ///< added to each message between stages
  /// These are added to each step, for work that no phase contains; the second
  /// only if replicas share the optimizer's state.
  Seconds step, shardedStep;
  bool operator==(const HostLaunch &) const = default;
};

/// Holds what a framework keeps in memory in addition to the state of training,
/// the values that backward reads, and the workspace.
struct FrameworkMemory {
  /// Says whether a value is saved for backward in the layout in which it was
  /// produced. A product whose input was all-gathered gathers it again in
  /// backward (Korthikanti et al. 2022, section 4.2.2).
  bool savesAsProduced = false;
  /// Counts the bytes kept from the loss to its backward, per 16-bit logit, in
  /// addition to the logits.
  double crossEntropy = 0.0;
  /// Counts the bytes of the buckets in which replicas exchange gradients, per
  /// parameter on the rank. Without replicas there are no buckets.
  double buckets = 0.0;
  /// Holds the bytes that the allocator caches and does not use, relative to
  /// all bytes that are in use.
  double cached = 0.0;
  bool operator==(const FrameworkMemory &) const = default;
};

/// Holds the rates that the software's libraries reach, relative to the figures
/// of the machine file.
struct ReachedRates {
  double products = 1.0; ///< of large matrix products
  double network = 1.0;  ///< of collectives and messages between nodes
  bool operator==(const ReachedRates &) const = default;
};

/// Says how measured steps compared with predictions under the software.
struct Accuracy {
  std::string device;  ///< Device::name or Device::architecture
  int runs = 0;        ///< number of measured runs
  int mostDevices = 0; ///< largest number of devices of a run
  /// Eight in ten further steps are expected to take between `low` and `high`
  /// times the predicted time.
  double low = 1.0, high = 1.0;
  bool operator==(const Accuracy &) const = default;
};

struct Software {
  std::string name;
  AttentionKernel attention;
  Passes passes;
  double crossEntropy = 8.0; ///< bytes per 16-bit logit, forward plus backward
  CastTraffic casts;
  /// Says whether products of one input (q, k and v) run as one batched
  /// product. The input's gradient then needs no sum in memory.
  bool batchesProducts = false;
  KernelFusions fusions;
  ParameterTraffic parameters;
  /// Says whether recomputation ends with the last value that backward reads.
  bool stopsRecomputeEarly = false;
  SelectiveRule selective = SelectiveRule::attention;
  TensorTraffic tensor;
  OverlapRules overlap;
  double transfers = 2.0; ///< sends per stage boundary and micro-batch
  /// Says whether stages send values that are replicated over tensor ranks in
  /// shards, which the receivers all-gather.
  bool scattersSends = false;
  /// If set, the host waits for each kernel, and blockingLaunch replaces
  /// Device::launch as the gap between kernels.
  std::optional<Seconds> blockingLaunch;
  HostLaunch host; ///< 0 if the host is never slower than the device
  FrameworkMemory memory;
  ReachedRates reached;
  /// Lists devices, each with ascending numbers of devices.
  std::vector<Accuracy> accuracy;
};

/// Returns the machine with the rates that the software reaches.
Machine machineUnder(const Software &software, Machine machine);

/// Returns the shares of peak on `device`: the measured shares or, if there are
/// none, the software's entry for the device's name, else the entry for its
/// architecture, else Device::attentionEfficiency for both phases.
/// \param drops  whether to prefer the shares that were measured with dropout,
/// if there are any
AttentionRate attentionRateOf(const Software &software, const Device &device,
                              Precision precision, bool drops = false);

/// Returns the measured rates of the software's kernels on the device, or null.
const MeasuredKernels *measuredOf(const Software &software,
                                  const Device &device);

/// Returns the measured rate of a memory-bound kernel: the rate of `variant`
/// or, if that rate was not measured, the rate without a variant. The result is
/// 0 if neither was measured.
BytesPerSec measuredPassRate(const Software &software, const Device &device,
                             std::string_view kernel, Precision precision,
                             std::string_view variant = {});

/// Returns whether a kernel is fused with its producer. Measurements on the
/// device take precedence over the software file.
/// \param name  the fusionName of the two kernels
bool isFused(const Software &software, const Device &device,
             std::string_view name, Precision precision);

bool groupsMessages(const Software &software, const Device &device);

/// Returns the name of the fusion of two kernels: "dropout+add", or only the
/// consumer's name if the producer is a product: "activation.gelu".
/// \param maker  the producer; empty: a product
std::string fusionName(std::string_view maker, std::string_view kernel,
                       std::string_view variant);

/// Returns the name of a kernel's variant, such as "activation.gelu", or the
/// kernel's name if `variant` is empty.
std::string variantName(std::string_view kernel, std::string_view variant);

/// Returns the head size to which the kernel pads `size`.
double paddedHead(const AttentionKernel &kernel, double size);

/// Reports an invalid software file, in the format of MachineError.
class SoftwareError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace mtplan::planner

#endif // MTPLAN_PLANNER_MACHINE_SOFTWARE_H
