//===- product_peak.cpp - Measures the peak rate of products --------------===//

#include "runtime/executor/product_peak.h"

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

#include "runtime/backend/memory.h"
#include "runtime/executor/step_times.h"

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

class Product {
public:
  /// \throws std::runtime_error if memory is insufficient
  Product(Backend &theBackend, ElementType type, std::int64_t theSize)
      : size(theSize), backend(theBackend), bytes(size * size * bytesOf(type)),
        left(backend.memory(), static_cast<std::size_t>(bytes)),
        right(backend.memory(), static_cast<std::size_t>(bytes)),
        result(backend.memory(), static_cast<std::size_t>(bytes)) {
    const TensorView rows{type, {1, size, size}, {}},
        weight{type, {size, size}, {}};
    kernel = backend.prepare({"einsum",
                              "peak",
                              {{"equation", std::string("bsi,io->bso")}},
                              {rows, weight},
                              {rows}});
    Pattern pattern(backend.memory(), type, bytes);
    pattern.fill(left.get(), bytes);
    pattern.fill(right.get(), bytes);
  }

  void run(int times) {
    const void *const in[] = {left.get(), right.get()};
    void *const out[] = {result.get()};
    for (int time = 0; time < times; ++time)
      kernel->run({in, out});
    backend.queue().finish();
  }

  double flops() const {
    const auto side = static_cast<double>(size);
    return 2.0 * side * side * side;
  }

  const std::int64_t size;

private:
  Backend &backend;
  const std::int64_t bytes;
  const Allocation left, right, result;
  std::unique_ptr<Kernel> kernel;
};

/// Returns null if memory is insufficient.
std::unique_ptr<Product> productOf(Backend &backend, ElementType type,
                                   std::int64_t size) {
  try {
    return std::make_unique<Product>(backend, type, size);
  } catch (const std::runtime_error &) {
    return nullptr;
  }
}

double secondsOfOne(Product &product, const SecondsNow &now) {
  const double start = now();
  product.run(1);
  return std::max(now() - start, 1e-9);
}

} // namespace

SecondsNow steadyNow() { return monotonicSeconds; }

double productPeak(const Plan &plan, World &world, Backend &backend,
                   const SecondsNow &now) {
  constexpr std::int64_t kSmallest = 512, kLargest = 8192;
  constexpr double kLong = 1e-3, kEnough = 0.1; // seconds
  constexpr int kRuns = 6, kRunsOfDevice = 20;
  const ElementType type = typeOfProducts(plan);
  auto product = std::make_unique<Product>(backend, type, kSmallest);
  product->run(1);
  int runs = kRuns;
  // On a device, the time of a small product is mostly the time of its launch.
  // If products are long and many, launch and synchronization are a negligible
  // part of the time on the host's clock.
  if (backend.queue().records()) {
    double one = 0.0;
    for (;;) {
      one = secondsOfOne(*product, now);
      if (one >= kLong) // the host may have been delayed
        one = std::min(one, secondsOfOne(*product, now));
      if (one >= kLong || product->size == kLargest)
        break;
      auto larger = productOf(backend, type, 2 * product->size);
      if (!larger)
        break;
      product = std::move(larger);
      product->run(1);
    }
    runs = static_cast<int>(
        std::clamp(kEnough / one, 2.0, static_cast<double>(kRunsOfDevice)));
  }
  // On CPU cores, the interval lasts until all ranks have finished, because
  // ranks may share cores.
  world.barrier("the peak of products");
  const double start = now();
  product->run(runs);
  double end = now();
  world.barrier("the end of the peak of products");
  // On a device, the interval excludes the wait for ranks on other devices.
  if (!backend.queue().records())
    end = now();
  return runs * product->flops() / std::max(end - start, 1e-9);
}

} // namespace mtplan::runtime
