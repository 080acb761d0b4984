//===- stream_order.h - What the streams of a program allow -----*- C++ -*-===//
//
// The same questions that codegen/ and the check of plans answer with care,
// answered by looking at every block of memory and every path.
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_CODEGEN_STREAM_ORDER_H
#define MTPLAN_TESTS_CODEGEN_STREAM_ORDER_H

#include <map>
#include <random>
#include <vector>

#include "runtime/plan/program_runs.h"

namespace mtplan {

/// By instruction and later instruction of one program.
using Pairs = std::vector<std::vector<bool>>;

inline Pairs noPairs(const runtime::Program &program) {
  const std::size_t n = program.instructions.size();
  return Pairs(n, std::vector<bool>(n, false));
}

/// Who touches a block of memory that a later one touches, one of them writing,
/// in any run. Pieces start at multiples of a block, so that two overlap if and
/// only if they share one.
inline Pairs meetings(const runtime::Stage &stage, int number) {
  const runtime::Program &program =
      stage.programs[static_cast<std::size_t>(number)];
  Pairs meet = noPairs(program);
  using Block = std::pair<int, std::int64_t>; // arena, number
  struct Use {
    std::size_t instruction;
    bool writes;
    bool counts; ///< it is read or written in a launch of several, too
  };
  Pairs together = meet; // as one of a launch
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
  // A launch starts as a whole, so that its first instruction has to follow
  // what any of its instructions has to follow.
  for (const runtime::Batch &batch : program.batches) {
    const auto first = static_cast<std::size_t>(batch.instructions.front());
    for (const int one : batch.instructions)
      for (std::size_t early = 0; early < first; ++early)
        if (together[early][static_cast<std::size_t>(one)])
          meet[early][first] = true;
  }
  return meet;
}

inline Pairs queued(const runtime::Program &program) {
  Pairs pairs = noPairs(program);
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (std::size_t j = i + 1; j < pairs.size(); ++j)
      pairs[i][j] =
          program.instructions[i].stream == program.instructions[j].stream;
  return pairs;
}

/// All that follows from `pairs`.
inline Pairs closed(Pairs pairs) {
  for (std::size_t k = 0; k < pairs.size(); ++k)
    for (std::size_t i = 0; i < k; ++i)
      if (pairs[i][k])
        for (std::size_t j = k + 1; j < pairs.size(); ++j)
          if (pairs[k][j])
            pairs[i][j] = true;
  return pairs;
}

/// What streams and waits say.
inline Pairs ordered(const runtime::Program &program) {
  Pairs pairs = queued(program);
  for (std::size_t j = 0; j < pairs.size(); ++j)
    for (int wait : program.instructions[j].waits)
      pairs[static_cast<std::size_t>(wait)][j] = true;
  return closed(std::move(pairs));
}

/// By instruction, whom it has to wait for: the pairs of `meet` on different
/// streams that follow from no others and no stream.
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

/// The program in another order that its streams and waits allow.
inline runtime::Program shuffled(const runtime::Program &program,
                                 std::mt19937_64 &random) {
  const std::size_t n = program.instructions.size();
  const Pairs before = ordered(program);
  runtime::Program other = program;
  other.instructions.clear();
  other.batches.clear(); // every instruction is a launch of its own
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
