//===- product_peak.cpp - What products reach at best ---------------------===//

#include "runtime/executor/product_peak.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>

namespace mtplan::runtime {

namespace {

ElementType typeOfProducts(const Plan &plan) {
  std::map<ElementType, int> seen;
  for (const Stage &stage : plan.stages)
    for (const Program &program : stage.programs)
      for (const Instruction &instruction : program.instructions)
        if (const auto *call = std::get_if<KernelCall>(&instruction.what);
            call && call->kernel == "einsum")
          ++seen[instruction.inputs.front().type];
  ElementType most = ElementType::f32;
  for (const auto &[type, count] : seen)
    if (count > seen[most])
      most = type;
  return most;
}

} // namespace

double productPeak(const Plan &plan, World &world, Backend &backend) {
  constexpr std::int64_t kSize = 512;
  constexpr int kRuns = 6;
  using Clock = std::chrono::steady_clock;
  const TensorView rows{typeOfProducts(plan), {1, kSize, kSize}, {}},
      weight{rows.type, {kSize, kSize}, {}};
  std::unique_ptr<Kernel> kernel =
      backend.prepare({"einsum",
                       "peak",
                       {{"equation", std::string("bsi,io->bso")}},
                       {rows, weight},
                       {rows}});
  const auto bytes =
      static_cast<std::size_t>(rows.elements() * bytesOf(rows.type));
  Memory &memory = backend.memory();
  const Allocation left(memory, bytes), right(memory, bytes),
      result(memory, bytes);
  const void *const in[] = {left.get(), right.get()};
  void *const out[] = {result.get()};
  kernel->run({in, out});
  backend.queue().finish();
  // From when all begin until all are done: ranks may share cores.
  world.barrier("the peak of products");
  const auto start = Clock::now();
  for (int run = 0; run < kRuns; ++run)
    kernel->run({in, out});
  backend.queue().finish();
  world.barrier("the end of the peak of products");
  const std::chrono::duration<double> took = Clock::now() - start;
  return kRuns * 2.0 * kSize * kSize * kSize / std::max(took.count(), 1e-9);
}

} // namespace mtplan::runtime
