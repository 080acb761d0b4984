//===- kernel_case.h - One call of a kernel, with its numbers ---*- C++ -*-===//
//
// A case is built once, with seeded numbers, and run on any backend:
//
//   Case("layer_norm").in({f32, {2, 3, 8}}).in({f32, {8}}).in({f32, {8}})
//       .out({f32, {2, 3, 8}}).run(*backend)
//
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_KERNEL_CASE_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_KERNEL_CASE_H

#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/backend/kernel.h"

namespace mtplan::runtime::testing {

using Doubles = std::vector<double>;
using Shape = std::vector<std::int64_t>;
using Bytes = std::vector<std::byte>;

class Case {
public:
  explicit Case(const std::string &kernel, unsigned seed = 1)
      : random(seed * 7919 + static_cast<unsigned>(kernel.size())) {
    spec.kernel = kernel;
    spec.label = "h.*." + kernel;
    moment = {11, 3, 2, 5};
  }

  Case &set(const std::string &name, std::int64_t value) {
    spec.settings.push_back({name, value});
    return *this;
  }
  Case &set(const std::string &name, double value) {
    spec.settings.push_back({name, value});
    return *this;
  }
  Case &set(const std::string &name, const char *value) {
    spec.settings.push_back({name, std::string(value)});
    return *this;
  }

  /// Adds an operand with `values`, or else with normally distributed numbers.
  Case &in(const TensorView &view, std::optional<Doubles> values = {}) {
    spec.inputs.push_back(view);
    if (!values) {
      std::normal_distribution<double> normal;
      values.emplace();
      for (std::int64_t i = 0; i < view.elements(); ++i)
        values->push_back(normal(random));
    }
    inputs.push_back(stored(view, *values));
    return *this;
  }
  /// Adds an operand of integers from `least` to `most`.
  Case &integers(const Shape &shape, int least, int most) {
    std::uniform_int_distribution<int> uniform(least, most);
    const TensorView view{ElementType::i32, shape, {}};
    Doubles values;
    for (std::int64_t i = 0; i < view.elements(); ++i)
      values.push_back(uniform(random));
    return in(view, values);
  }
  /// Adds a result whose buffer contains `before`, or else 77, before the run.
  Case &out(const TensorView &view, std::optional<Doubles> before = {}) {
    spec.outputs.push_back(view);
    if (!before)
      before = Doubles(static_cast<std::size_t>(view.elements()), 77.0);
    outputs.push_back(stored(view, *before));
    return *this;
  }

  /// Runs the kernel and returns the bytes of its results.
  std::vector<Bytes> runBytes(Backend &backend) const {
    const std::unique_ptr<Kernel> kernel = backend.prepare(spec);
    Memory &memory = backend.memory();
    std::vector<Allocation> places;
    auto place = [&](const Bytes &bytes) {
      places.emplace_back(memory, bytes.size());
      memory.upload(places.back().get(), bytes.data(), bytes.size());
      return places.back().get();
    };
    std::vector<const void *> from;
    std::vector<void *> to;
    for (const Bytes &bytes : inputs)
      from.push_back(place(bytes));
    for (const Bytes &bytes : outputs)
      to.push_back(place(bytes));
    const StepNumbers numbers{moment.seed, moment.step, moment.drops, update,
                              norm};
    Allocation step(memory, sizeof(numbers));
    memory.upload(step.get(), &numbers, sizeof(numbers));
    kernel->run({from.data(), to.data(),
                 reinterpret_cast<const StepNumbers *>(step.get()),
                 moment.microBatch, moment.copy});
    std::vector<Bytes> results = outputs;
    for (std::size_t i = 0; i < results.size(); ++i)
      memory.download(results[i].data(), to[i], results[i].size());
    return results;
  }
  std::vector<Doubles> run(Backend &backend) const {
    const std::vector<Bytes> results = runBytes(backend);
    std::vector<Doubles> all;
    all.reserve(results.size());
    for (std::size_t i = 0; i < results.size(); ++i)
      all.push_back(widened(spec.outputs[i], results[i]));
    return all;
  }

  Doubles input(std::size_t i) const {
    return widened(spec.inputs[i], inputs[i]);
  }
  /// Returns the contents of a result before the run.
  Doubles before(std::size_t i) const {
    return widened(spec.outputs[i], outputs[i]);
  }
  void setInput(std::size_t i, const Doubles &values) {
    inputs[i] = stored(spec.inputs[i], values);
  }

  KernelSpec spec;
  Moment moment;
  UpdateNumbers update{.learningRate = 0.01,
                       .weightDecay = 0.1,
                       .step = 3,
                       .gradientFactor = 0.5};
  NormRule norm;

  static Bytes stored(const TensorView &view, const Doubles &values) {
    Bytes bytes(static_cast<std::size_t>(view.elements() * bytesOf(view.type)));
    for (std::size_t i = 0; i < values.size(); ++i)
      writeElement(view.type, bytes.data(), static_cast<std::int64_t>(i),
                   values[i]);
    return bytes;
  }
  static Doubles widened(const TensorView &view, const Bytes &bytes) {
    Doubles values;
    for (std::int64_t i = 0; i < view.elements(); ++i)
      values.push_back(readElement(view.type, bytes.data(), i));
    return values;
  }

private:
  std::mt19937_64 random;
  std::vector<Bytes> inputs, outputs;
};

/// Expects that `actual` is within `tolerance` of `expected` everywhere.
inline void expectWithin(double tolerance, const Case &one,
                         const std::vector<Doubles> &actual,
                         const std::vector<Doubles> &expected) {
  ASSERT_EQ(actual.size(), expected.size()) << one.spec.kernel;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].size(), expected[i].size()) << one.spec.kernel;
    for (std::size_t e = 0; e < expected[i].size(); ++e)
      EXPECT_NEAR(actual[i][e], expected[i][e], tolerance)
          << one.spec.kernel << ", result " << i << ", element " << e;
  }
}

} // namespace mtplan::runtime::testing

#endif // MTPLAN_TESTS_RUNTIME_BACKEND_KERNEL_CASE_H
