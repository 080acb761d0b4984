//===- plan.h - The executable plan, as plain values ------------*- C++ -*-===//
//
// What runs? This file says what is to run: the contract between the compiler
// and the runtime, which do not see each other. codegen/ fills one in, the
// executor runs it. A change here bumps kPlanVersion and touches
// plan_read_json.cpp, plan_write_json.cpp and both sides in the same commit.
//
// All ranks of a pipeline stage run one program on shapes that are already
// local; a rank differs from its neighbours only by its place in the mesh.
// Every `int` that refers to something is an index into the vector that is
// named.
//
// A step of a stage: `schedule` runs, forward and backward, which adds up
// gradients (kernel_settings.h); then `reduce`, after which every parameter's
// gradient is whole; then the norm of all gradients is taken and agreed on;
// then `apply`.
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

/// One axis of the mesh, e.g. "tp" of 8.
struct Axis {
  std::string name;
  int size = 1; ///< >= 1
};

/// Ranks that talk to each other. `communicators` lists disjoint ones of equal
/// size, the members of each in the order of their places.
struct Group {
  std::string name; ///< "tp", "dp", "pp 0 3", for messages
  std::vector<std::vector<int>> communicators;
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// How long the bytes of an arena live.
enum class MemoryClass {
  parameters,  ///< over steps: weights as computed with
  optimizer,   ///< over steps: master weights and moments
  gradients,   ///< over a step; zero when it starts
  activations, ///< from a forward to its backward
  workspace,   ///< within a program, and for what is in transit
  host,        ///< pinned memory of the host, for what is offloaded
};

/// One allocation of a rank. A stage has at most one of each class.
struct Arena {
  MemoryClass memoryClass = MemoryClass::workspace;
  std::int64_t size = 0; ///< bytes, >= the end of every buffer in it
};

/// A named region of an arena: an array of equal elements by copy of a repeated
/// segment and by micro-batch in flight. Its entry (e, m) starts at `offset +
/// (e % entries) * entryStride + (m % slots) * slotStride`.
struct Buffer {
  std::string name;
  int arena = 0;                ///< of Stage::arenas
  std::int64_t offset = 0;      ///< bytes from the arena's base, aligned
  std::int64_t size = 0;        ///< bytes of one entry, > 0
  int entries = 1;              ///< >= 1
  std::int64_t entryStride = 0; ///< bytes, aligned; >= size if entries > 1
  int slots = 1;                ///< micro-batches kept apart, >= 1
  std::int64_t slotStride = 0;  ///< bytes, aligned; 0 only if slots == 1
};

/// A dense row-major tensor at the start of an entry of a buffer: for copy c of
/// a segment, counted from the segment's first, entry `entry + c * entryStep`.
struct Tensor {
  int buffer = 0; ///< of Stage::buffers
  int entry = 0, entryStep = 0;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< local, each > 0; empty: a scalar
  /// By dimension, the axes of Plan::mesh that split it, major first; empty: no
  /// dimension is split.
  std::vector<std::vector<int>> split;
};

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// What a kernel needs to know beside its tensors, e.g. "eps" or an einsum.
struct Setting {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

/// A computation on this rank alone. Where it depends on the rank's place along
/// an axis, the integer setting "axis" is that axis's number in Plan::mesh.
/// Where all operands are in the arena of class host the host computes, in
/// Stage::apply; else all are the device's, but for a "copy" from one to the
/// other.
struct KernelCall {
  std::string kernel; ///< key in the backend's table, e.g. "einsum"
  std::vector<Setting> settings;
};

enum class Reduction { sum, max, avg };

enum class CollectiveKind { allReduce, allGather, reduceScatter, allToAll };

/// One call by every rank of a communicator.
struct Collective {
  CollectiveKind kind = CollectiveKind::allReduce;
  int group = 0; ///< of Plan::groups
  /// For allReduce and reduceScatter; else unread.
  Reduction reduction = Reduction::sum;
  int gathered = 0;  ///< dimension that grows (allGather, allToAll)
  int scattered = 0; ///< dimension that shrinks (reduceScatter, allToAll)
};

/// One tensor to or from the rank at the same place of another stage, which has
/// a matching instruction with the same `channel`. Sends are buffered.
struct Transfer {
  bool sends = true; ///< else receives
  int stage = 0;     ///< of Plan::stages, the other one
  int channel = 0;
};

/// A micro-batch of training data, or with label "count" the number of target
/// tokens of the whole step.
struct Input {
  std::string label;             ///< "ids", "targets", "types", "count", ...
  std::vector<std::string> dims; ///< "batch", "sequence" or "other"
  std::int64_t limit = 0;        ///< integers are below; 0: no integers
};

/// A number of the step for people, read from the only input.
struct Report {
  std::string label; ///< "loss", ...
};

/// One thing a rank does. Within a run of its program, instructions with the
/// same stream run in order; others are ordered by `waits` alone. The order of
/// the program is one of those that are left.
struct Instruction {
  std::string label; ///< of the operator it came from, "h.*.mlp.fc1"
  std::variant<KernelCall, Collective, Transfer, Input, Report> what;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  int stream = 0;         ///< of Plan::streams
  std::vector<int> waits; ///< of the same Program, earlier ones only
  /// A collective of sums over all micro-batches, in the schedule: it runs with
  /// the last of them alone, and later runs do not follow it, but for what
  /// comes after it on its stream, until the schedule ends.
  bool overlapped = false;
};

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// Instructions of one stream that are one launch where the backend or the
/// communicator has one for them. None writes what another reads or writes.
///   - Products: einsums of `schedule` that differ only in their tensors. They
///     share one of their first two operands; the others and all that is
///     written lie at even distances, the same in every run. All may run when
///     the first does.
///   - Collectives of one group within the stage. They are consecutive, and
///     only the first waits.
///   - Kernels of one name in a program of `apply` that one entry runs. They
///     are consecutive, and only the first waits.
struct Batch {
  std::vector<int> instructions; ///< of the program, ascending
  /// The kernels of all copies of the entry are one launch. The batch is the
  /// whole program; it may be one instruction if there are several copies.
  bool ofAllCopies = false;
};

/// One direction of one segment ("h.forward", "h.backward"), or a part of the
/// update.
struct Program {
  std::string name;
  std::vector<Instruction> instructions;
  int firstCopy = 0; ///< number of copy 0 in the model, which names its masks
  std::vector<Batch> batches = {}; ///< no instruction is in two
};

/// Runs a program for `count` copies of its segment: the first-th, counted
/// within the segment, then every `step`-th. A run is that of one copy. Between
/// runs all streams join: what a run does follows all that the run before it
/// does, of whichever entry, unless it is overlapped. For buffers are used by
/// turns, and nothing else says who has done with them.
struct ScheduleEntry {
  int program = 0;    ///< of Stage::programs
  int microBatch = 0; ///< >= 0 and < Plan::microBatches
  int first = 0;
  int step = 1;  ///< 1, or -1 in backward
  int count = 1; ///< >= 1
};

/// A parameter, or as many copies of one as a segment has, with all that
/// training keeps of it. Entries of the tensors follow the copy.
struct Parameter {
  std::string label; ///< "h.*.mlp.fc1.weight"
  std::string init;  ///< normal, residual, ones or zeros, as mtp.parameter has
  int firstCopy = 0; ///< number of copy 0 in the model, for the `*`
  int copies = 1;
  Tensor value;    ///< as it is stored and computed with
  Tensor gradient; ///< after Stage::reduce: whole, split as the state is
  /// Split as the gradient. No master where the value, split alike, serves.
  std::optional<Tensor> master;
  Tensor firstMoment, secondMoment; ///< offloaded, as the master: the host's
  /// Axes of Plan::mesh over which gradients are alike: the norm counts the
  /// rank that has place 0 on all of them.
  std::vector<int> alike;
  /// Another stage, an earlier one, has it, too, and counts it.
  bool countedElsewhere = false;
  /// Global extents that are not padding, by dimension; empty: all. What is
  /// beyond them depends on the plan, and is no part of the model.
  std::vector<std::int64_t> unpadded;
};

/// Whether a run of a program for a micro-batch has the instruction.
inline bool runsFor(int microBatch, const Instruction &instruction,
                    int microBatches) {
  return !instruction.overlapped || microBatch + 1 == microBatches;
}

/// What the ranks of one pipeline stage hold and do in a training step.
struct Stage {
  std::vector<int> ranks; ///< of 0 .. Plan::ranks - 1, ascending
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Parameter> parameters;
  std::vector<Program> programs;
  std::vector<ScheduleEntry> schedule; ///< forward and backward
  std::vector<ScheduleEntry> reduce;
  std::vector<ScheduleEntry> apply;
};

struct Plan {
  int version = kPlanVersion;
  std::string model; ///< name, for people
  int ranks = 1;     ///< product of the axes' sizes
  /// Major first: rank = place on the last axis + its size * (place on the one
  /// before + ...).
  std::vector<Axis> mesh;
  std::vector<Group> groups;
  std::vector<std::string> streams; ///< "compute", "tensor", "data", ...
  int microBatches = 1;             ///< per step, of each rank
  std::int64_t globalBatch = 1;     ///< samples of a step, all replicas
  std::int64_t sequence = 1;        ///< positions of a sample
  std::int64_t layers = 1;          ///< for init "residual"
  std::vector<Stage> stages;        ///< in forward order; every rank in one
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_H
