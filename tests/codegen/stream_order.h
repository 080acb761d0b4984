//===- stream_order.h - Orders that a program's streams allow ---*- C++ -*-===//
//
// Computes memory conflicts and orders of instructions by brute force, over all
// memory blocks and paths, as a reference for codegen/ and the plan check.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_CODEGEN_STREAM_ORDER_H
#define MTPLAN_TESTS_CODEGEN_STREAM_ORDER_H

#include <map>
#include <random>
#include <vector>

#include "runtime/plan/program_runs.h"

namespace mtplan {

/// Says whether a relation holds, for each [instruction][later instruction].
using Pairs = std::vector<std::vector<bool>>;

inline Pairs noPairs(const runtime::Program &program) {
  const std::size_t n = program.instructions.size();
  return Pairs(n, std::vector<bool>(n, false));
}

/// Returns the pairs of instructions that access the same block of memory in
/// some run of the program, one or both by a write. Tensors start at multiples
/// of a block, so that two of them overlap if and only if they share a block.
inline Pairs meetings(const runtime::Stage &stage, int number) {
  const runtime::Program &program =
      stage.programs[static_cast<std::size_t>(number)];
  Pairs meet = noPairs(program);
  using Block = std::pair<int, std::int64_t>; // arena, offset in bytes
  struct Use {
    std::size_t instruction;
    bool writes;
    bool counts; ///< whether a batched launch makes this access
  };
  Pairs together = meet; // the pairs whose second access a batched launch makes
  auto run = [&](int copy, int microBatch) {
    std::map<Block, std::vector<Use>> uses;
    for (std::size_t i = 0; i < program.instructions.size(); ++i)
      for (bool writes : {false, true}) {
        const runtime::Instruction &one = program.instructions[i];
        const auto &tensors = writes ? one.outputs : one.inputs;
        for (std::size_t t = 0; t < tensors.size(); ++t) {
          const runtime::Tensor &tensor = tensors[t];
          const bool counts =
              !writes ||
              !std::holds_alternative<runtime::KernelCall>(one.what) ||
              runtime::isWritten(one, t);
          const runtime::Buffer &buffer =
              stage.buffers[static_cast<std::size_t>(tensor.buffer)];
          const std::int64_t start =
              buffer.offset +
              (tensor.entry + copy * tensor.entryStep) % buffer.entries *
                  buffer.entryStride +
              microBatch % buffer.slots * buffer.slotStride;
          for (std::int64_t at = start; at < start + buffer.size;
               at += runtime::kAlignment)
            uses[{buffer.arena, at}].push_back({i, writes, counts});
        }
      }
    for (const auto &[block, all] : uses)
      for (const Use &a : all)
        for (const Use &b : all)
          if (a.instruction < b.instruction && (a.writes || b.writes)) {
            meet[a.instruction][b.instruction] = true;
            if (b.counts)
              together[a.instruction][b.instruction] = true;
          }
  };
  for (const auto *entries : {&stage.schedule, &stage.reduce, &stage.apply})
    for (const runtime::ScheduleEntry &entry : *entries)
      for (int i = 0; i < entry.count && entry.program == number; ++i)
        run(entry.first + i * entry.step, entry.microBatch);
  // A batch is one launch at its first instruction, which therefore has the
  // conflicts of all instructions of the batch.
  for (const runtime::Batch &batch : program.batches) {
    const auto first = static_cast<std::size_t>(batch.instructions.front());
    for (const int one : batch.instructions)
      for (std::size_t early = 0; early < first; ++early)
        if (together[early][static_cast<std::size_t>(one)])
          meet[early][first] = true;
  }
  return meet;
}

/// Returns the pairs of instructions on the same stream.
inline Pairs queued(const runtime::Program &program) {
  Pairs pairs = noPairs(program);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (std::size_t j = i + 1; j < pairs.size(); ++j)
      pairs[i][j] =
          program.instructions[i].stream == program.instructions[j].stream;
  return pairs;
}

/// Returns the transitive closure of `pairs`.
inline Pairs closed(Pairs pairs) {
  for (std::size_t k = 0; k < pairs.size(); ++k)
    for (std::size_t i = 0; i < k; ++i)
      if (pairs[i][k])
        for (std::size_t j = k + 1; j < pairs.size(); ++j)
          if (pairs[k][j])
            pairs[i][j] = true;
  return pairs;
}

/// Returns the pairs of instructions that streams and waits put in order.
inline Pairs ordered(const runtime::Program &program) {
  Pairs pairs = queued(program);
  for (std::size_t j = 0; j < pairs.size(); ++j)
    for (int wait : program.instructions[j].waits)
      pairs[static_cast<std::size_t>(wait)][j] = true;
  return closed(std::move(pairs));
}

/// Returns the minimal waits of each instruction: the pairs of `meet` on
/// different streams that neither other pairs nor stream order imply.
inline std::vector<std::vector<int>> leastWaits(const runtime::Program &program,
                                                const Pairs &meet) {
  const Pairs queue = queued(program);
  Pairs all = queue;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < all.size(); ++j)
      all[i][j] = queue[i][j] || meet[i][j];
  all = closed(std::move(all));
  std::vector<std::vector<int>> waits(all.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      bool follows = queue[i][j] || !meet[i][j];
      for (std::size_t k = i + 1; k < j && !follows; ++k)
        follows = all[i][k] && all[k][j];
      if (!follows)
        waits[j].push_back(static_cast<int>(i));
    }
  return waits;
}

/// Returns the program in a random order that its streams and waits allow.
inline runtime::Program shuffled(const runtime::Program &program,
                                 std::mt19937_64 &random) {
  const std::size_t n = program.instructions.size();
  const Pairs before = ordered(program);
  runtime::Program other = program;
  other.instructions.clear();
  other.batches.clear(); // one launch per instruction
  std::vector<int> place(n, -1);
  while (other.instructions.size() < n) {
    std::vector<std::size_t> ready;
    for (std::size_t j = 0; j < n; ++j) {
      bool isReady = place[j] < 0;
      for (std::size_t i = 0; i < j && isReady; ++i)
        isReady = !before[i][j] || place[i] >= 0;
      if (isReady)
        ready.push_back(j);
    }
    const std::size_t next = ready[random() % ready.size()];
    place[next] = static_cast<int>(other.instructions.size());
    other.instructions.push_back(program.instructions[next]);
    for (int &wait : other.instructions.back().waits)
      wait = place[static_cast<std::size_t>(wait)];
  }
  return other;
}

} // namespace mtplan

#endif // MTPLAN_TESTS_CODEGEN_STREAM_ORDER_H
