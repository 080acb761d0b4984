//===- plan.h - The executable plan, as plain values ------------*- C++ -*-===//
//
// What runs? This file says what is to run: the contract between the compiler
// and the runtime, which do not see each other. It is the contract alone; no
// writer and no executor exist yet. Once they do, a change here bumps
// kPlanVersion and touches both in the same commit.
//
// All ranks of a pipeline stage run one program on shapes that are already
// local; a rank differs from its neighbours only by its place in the mesh.
// Every `int` that refers to something is an index into the vector that is
// named.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_RUNTIME_PLAN_PLAN_H
#define MTPLAN_RUNTIME_PLAN_PLAN_H

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace mtplan::runtime {

inline constexpr int kPlanVersion = 1;
inline constexpr std::int64_t kAlignment = 256; ///< bytes, of every offset

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// One axis of the mesh, e.g. "tp" of 8.
struct Axis {
  std::string name;
  int size = 1; ///< >= 1
};

/// The ranks that talk to each other over some axes. Ranks that differ only in
/// their places on `axes` form one communicator; `communicators` lists them
/// all, every rank of the mesh exactly once, each in the order of those places.
struct Group {
  std::vector<int> axes; ///< of Plan::mesh, major first, none twice
  std::vector<std::vector<int>> communicators; ///< of ranks, equal sizes
};

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

enum class ElementType { f64, f32, f16, bf16, i32 };

/// Of one element.
constexpr std::int64_t bytesOf(ElementType type) {
  return type == ElementType::f64                               ? 8
         : type == ElementType::f32 || type == ElementType::i32 ? 4
                                                                : 2;
}

/// How long the bytes of an arena live.
enum class MemoryClass {
  parameters,  ///< over steps: weights as computed with
  optimizer,   ///< over steps: master weights and moments
  gradients,   ///< over a step; zero when it starts
  activations, ///< from a forward to its backward
  workspace,   ///< within an instruction, and for what is in transit
  host,        ///< pinned memory of the host, for what is offloaded
};

/// One allocation of a rank. A stage has at most one of each class.
struct Arena {
  MemoryClass memoryClass = MemoryClass::workspace;
  std::int64_t size = 0; ///< bytes, >= the end of every buffer in it
};

/// A named region of an arena, once for each copy of a repeated segment and
/// each micro-batch in flight: copy c of micro-batch m starts at `offset + c *
/// copyStride + (m % slots) * slotStride`.
struct Buffer {
  std::string name;
  int arena = 0;               ///< of Stage::arenas
  std::int64_t offset = 0;     ///< bytes from the arena's base, aligned
  std::int64_t size = 0;       ///< bytes of one copy and slot, > 0
  std::int64_t copyStride = 0; ///< bytes, aligned; 0: shared by all copies
  int slots = 1;               ///< micro-batches kept apart, >= 1
  std::int64_t slotStride = 0; ///< bytes, aligned; 0 only if slots == 1
};

/// A dense row-major tensor within a buffer.
struct Tensor {
  int buffer = 0; ///< of Stage::buffers
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape; ///< local, each > 0; empty: a scalar
};

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

/// What a kernel needs to know beside its tensors, e.g. "eps" or an einsum.
struct Setting {
  std::string name;
  std::variant<std::int64_t, double, std::string> value;
};

/// A computation on this rank alone.
struct KernelCall {
  std::string kernel; ///< key in the backend's table, e.g. "einsum"
  std::vector<Setting> settings;
};

enum class Reduction { sum, max };

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

enum class Peer { previousStage, nextStage };

/// One tensor to or from the rank at the same place of a neighbouring stage;
/// the neighbour's matching instruction has the same `channel`.
struct Transfer {
  Peer peer = Peer::nextStage;
  bool sends = true; ///< else receives
  int channel = 0;
};

/// One thing a rank does. Instructions with the same stream run in order;
/// otherwise only `waits` orders them.
struct Instruction {
  std::string label; ///< of the operator it came from, "h.*.mlp.fc1"
  std::variant<KernelCall, Collective, Transfer> what;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  int stream = 0;         ///< of Plan::streams
  std::vector<int> waits; ///< of the same Program, earlier ones only
};

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

/// One direction of one segment ("h.forward", "h.backward"), or the update.
struct Program {
  std::string name;
  std::vector<Instruction> instructions;
};

/// Runs a program for copies first, first + step, ..., `count` of them. All of
/// an entry's instructions follow all of the entry before on the same stream.
struct ScheduleEntry {
  int program = 0;    ///< of Stage::programs
  int microBatch = 0; ///< >= 0 and < Plan::microBatches
  int first = 0;      ///< copy, counted within the stage
  int step = 1;       ///< 1, or -1 in backward
  int count = 1;      ///< >= 1
};

/// What the ranks of one pipeline stage hold and do in a training step.
struct Stage {
  std::vector<int> ranks; ///< of 0 .. Plan::ranks - 1, ascending
  std::vector<Arena> arenas;
  std::vector<Buffer> buffers;
  std::vector<Program> programs;
  std::vector<ScheduleEntry> schedule;
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
  std::vector<Stage> stages;        ///< in forward order; every rank in one
};

} // namespace mtplan::runtime

#endif // MTPLAN_RUNTIME_PLAN_PLAN_H
