//===- plan.h - The executable plan, as plain values ------------*- C++ -*-===//
//
// The plan is the interface between the compiler and the runtime, which do not
// include each other. codegen/ fills a Plan, and the executor runs the plan. A
// commit that changes the structs of this file increments kPlanVersion and
// adapts plan_read_json.cpp, plan_write_json.cpp, codegen/ and
// runtime/executor/.
//
// All ranks of a pipeline stage run the same programs on local shapes. Ranks
// differ only in their coordinates on the mesh. Each `int` that refers to
// something is an index into the vector that its comment names. A segment is a
// part of the model that is compiled once, such as a transformer layer. A model
// may repeat a segment, and identifiers call each repetition a `copy`. Comments
// call it a layer.
//
// A step of a stage has three parts. `schedule` runs forward and backward and
// accumulates gradients (kernel_settings.h). `reduce` completes every
// parameter's gradient. All ranks then agree on the norm of all gradients.
// `apply` updates the parameters.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_H
#define MTPLAN_RUNTIME_PLAN_PLAN_H

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/plan/element_type.h"

namespace mtplan::runtime {

inline constexpr int kPlanVersion = 7;

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// Describes one axis of the mesh, e.g. "tp" of 8.
struct Axis {
  std::string name;
  int size = 1; ///< >= 1
};

/// Describes a process group. `communicators` lists disjoint sets of ranks of
/// equal size. Collectives number the ranks of a set by their position.
struct Group {
  std::string name; ///< "tp", "dp", "pp 0 3", for messages and reports
  std::vector<std::vector<int>> communicators;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Names the use of an arena, which determines how long its bytes live.
enum class MemoryClass {
  parameters,  ///< kept over steps: weights as kernels read them
  optimizer,   ///< kept over steps: master weights and moments
  gradients,   ///< kept within a step: accumulated gradients
  activations, ///< kept from a forward pass to its backward pass
  workspace,   ///< kept within a run; also for tensors in transit
  host,        ///< pinned host memory, for offloaded tensors
};

/// Describes one allocation on each rank. A stage has at most one arena of each
/// class.
struct Arena {
  MemoryClass memoryClass = MemoryClass::workspace;
  std::int64_t size = 0; ///< bytes, >= the end of every buffer in it
};

/// Describes a named region of an arena. The region is an array of equal
/// pieces, by layer of a repeated segment (entry) and by micro-batch in flight
/// (slot). The piece of entry e and micro-batch m starts at `offset + (e %
/// entries) * entryStride + (m % slots) * slotStride`.
struct Buffer {
  std::string name;
  int arena = 0;                ///< index into Stage::arenas
  std::int64_t offset = 0;      ///< bytes from the arena's base, aligned
  std::int64_t size = 0;        ///< bytes of one piece, > 0
  int entries = 1;              ///< >= 1
  std::int64_t entryStride = 0; ///< bytes, aligned; >= size if entries > 1
  int slots = 1;                ///< micro-batches with separate bytes, >= 1
  std::int64_t slotStride = 0;  ///< bytes, aligned; 0 only if slots == 1
};

/// Describes a dense row-major tensor at the start of a piece of a buffer.
/// Layer c, counted from 0 within its segment, uses entry `entry + c *
/// entryStep`.
struct Tensor {
  int buffer = 0; ///< index into Stage::buffers
  int entry = 0, entryStep = 0;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< local, each > 0; empty: a scalar
  /// Lists, by dimension, the axes of Plan::mesh that shard the dimension,
  /// major first. The list is empty if no dimension is sharded.
  std::vector<std::vector<int>> split;
};

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// Holds an attribute of a kernel, e.g. "eps" or the equation of an einsum.
struct Setting {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

/// Describes a computation on this rank alone. If the computation depends on
/// the rank's coordinate on an axis, the integer setting "axis" is the index of
/// that axis in Plan::mesh. If all operands are in the arena of class host, the
/// kernel runs on the host, within Stage::apply. Otherwise the kernel runs on
/// the device, and no operand is on the host. The exception is "copy", which
/// may move a tensor between host and device.
struct KernelCall {
  std::string kernel; ///< key in the backend's table, e.g. "einsum"
  std::vector<Setting> settings;
};

enum class Reduction { sum, max, avg };

enum class CollectiveKind { allReduce, allGather, reduceScatter, allToAll };

/// Describes one call by every rank of a communicator.
struct Collective {
  CollectiveKind kind = CollectiveKind::allReduce;
  int group = 0; ///< index into Plan::groups
  /// Only allReduce and reduceScatter use the reduction.
  Reduction reduction = Reduction::sum;
  int gathered = 0;  ///< dimension that grows (allGather, allToAll)
  int scattered = 0; ///< dimension that shrinks (reduceScatter, allToAll)
};

/// Sends one tensor to another stage, or receives it. The peer is the rank with
/// the same index in the other stage's Stage::ranks. The peer has a matching
/// instruction with the same `channel`. Sends are buffered.
struct Transfer {
  bool sends = true; ///< false: receives
  int stage = 0;     ///< the peer's index in Plan::stages
  int channel = 0;
};

/// Provides a micro-batch of training data or, with the label "count", the
/// number of target tokens of the whole step.
struct Input {
  std::string label;             ///< "ids", "targets", "types", "count", ...
  std::vector<std::string> dims; ///< "batch", "sequence" or "other"
  std::int64_t limit = 0;        ///< exclusive bound of integers; 0: floats
};

/// Reports the instruction's only input, a number of the step such as the loss.
struct Report {
  std::string label; ///< "loss", ...
};

/// Describes one action of a rank. Within a run of its program, instructions of
/// one stream run in order. Only `waits` order instructions of different
/// streams. Executing the instructions one by one in program order also
/// respects streams and waits.
struct Instruction {
  std::string label; ///< label of the IR operator, "h.*.mlp.fc1"
  std::variant<KernelCall, Collective, Transfer, Input, Report> what;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  int stream = 0;         ///< index into Plan::streams
  std::vector<int> waits; ///< earlier instructions of the same Program
  /// Marks a collective that overlaps with the rest of the schedule. Its input
  /// is a sum over all micro-batches, so the collective runs for the last
  /// micro-batch only. Until the schedule ends, instructions of later runs wait
  /// for the collective only if they are on its stream.
  bool overlapped = false;
};

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Lists instructions of one stream that run as one launch if the backend or
/// the communicator supports that launch. No instruction writes bytes that
/// another instruction of the batch reads or writes. All instructions of a
/// batch are of the same kind, which is one of these:
///   - Products are einsums of `schedule` that differ only in their tensors.
///     They share one of their first two operands. The other tensors of
///     consecutive einsums are a constant number of bytes apart, the same in
///     every run. All einsums may start when the first may start.
///   - Collectives belong to one group, within the stage. They are consecutive,
///     and only the first waits.
///   - Kernels have one name and are in a program of `apply` that one schedule
///     entry runs. They are consecutive, and only the first waits.
struct Batch {
  std::vector<int> instructions; ///< indices in the program, ascending
  /// Says whether one launch covers all layers that the schedule entry runs. If
  /// so, the batch must be the whole program. The batch may be a single
  /// instruction if there are several layers.
  bool ofAllCopies = false;
};

/// Holds the instructions of one direction of a segment ("h.forward",
/// "h.backward"), of the segment's last run ("h.last.forward"), of the
/// all-gathers of the weights that a forward or backward pass needs first
/// ("embed.weights.forward"), or of a part of the update.
struct Program {
  std::string name;
  std::vector<Instruction> instructions;
  int firstCopy = 0; ///< the first layer's number in the model; seeds dropout
  std::vector<Batch> batches = {}; ///< disjoint
};

/// Runs a program for `count` layers of its segment: `first`, `first + step`
/// and so on. A run is the program's execution for one layer. All streams join
/// between two runs, because consecutive runs reuse buffers and no `waits`
/// order instructions of different runs. Only `overlapped` instructions
/// continue across runs.
struct ScheduleEntry {
  int program = 0;    ///< index into Stage::programs
  int microBatch = 0; ///< >= 0 and < Plan::microBatches
  int first = 0;
  int step = 1;  ///< 1, or -1 in backward
  int count = 1; ///< >= 1
};

/// Describes a parameter of one layer, or of each layer of a segment, with the
/// state that training keeps for it. The tensors have one entry per layer.
struct Parameter {
  std::string label; ///< "h.*.mlp.fc1.weight"
  std::string init;  ///< normal, residual, ones or zeros, as in mtp.parameter
  int firstCopy = 0; ///< the first layer's number in the model, for the `*`
  int copies = 1;
  Tensor value;    ///< the stored weight, in the type that kernels read
  Tensor gradient; ///< complete after Stage::reduce; sharded as the moments
  /// Holds the master weight, sharded like the gradient. Without a master, the
  /// update changes `value` itself.
  std::optional<Tensor> master;
  Tensor firstMoment, secondMoment; ///< on the host if offloaded
  /// Lists the axes of Plan::mesh over which the gradient is replicated. The
  /// norm counts only ranks with coordinate 0 on all of these axes.
  std::vector<int> alike;
  /// Says whether an earlier stage has the same parameter and counts the
  /// parameter in the norm.
  bool countedElsewhere = false;
  /// Holds the global extents without padding, by dimension; empty if nothing
  /// is padded. Padding depends on the plan, not on the model.
  std::vector<std::int64_t> unpadded;
};

inline bool runsFor(int microBatch, const Instruction &instruction,
                    int microBatches) {
  return !instruction.overlapped || microBatch + 1 == microBatches;
}

struct Stage {
  std::vector<int> ranks; ///< ascending
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Parameter> parameters;
  std::vector<Program> programs;
  std::vector<ScheduleEntry> schedule; ///< forward and backward
  std::vector<ScheduleEntry> reduce;
  std::vector<ScheduleEntry> apply;
};

/// docs/executable-plan.md describes the JSON of the plan.
struct Plan {
  int version = kPlanVersion;
  std::string model; ///< name of the model, for display
  int ranks = 1;     ///< product of the axes' sizes
  /// Lists the axes, major first. A rank's number is the mixed-radix number
  /// whose digits are the rank's coordinates.
  std::vector<Axis> mesh;
  std::vector<Group> groups;
  std::vector<std::string> streams; ///< names: "compute", "tensor", "data", ...
  int microBatches = 1;             ///< number per step, on each rank
  std::int64_t globalBatch = 1;     ///< samples of a step, over all replicas
  std::int64_t sequence = 1;        ///< positions of a sample
  std::int64_t layers = 1;   ///< layers of the model, for the init "residual"
  std::vector<Stage> stages; ///< in forward order; each rank is in one stage
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_H
