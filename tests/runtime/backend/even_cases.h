//===- even_cases.h - Products at even distances in memory ------*- C++ -*-===//

#ifndef MTPLAN_TESTS_RUNTIME_BACKEND_EVEN_CASES_H
#define MTPLAN_TESTS_RUNTIME_BACKEND_EVEN_CASES_H

#include <string>
#include <utility>
#include <vector>

#include "runtime/backend/followed.h"
#include "runtime/plan/kernel_settings.h"
#include "tests/runtime/backend/kernel_case.h"

namespace mtplan::runtime::testing {

/// Describes runs of one kernel. One operand is the same in all runs; the other
/// operands have different values in each run.
struct EvenCase {
  std::vector<Case> runs;
  std::size_t shared = 0;

  const KernelSpec &spec() const { return runs.front().spec; }

  /// Returns the distance in bytes from each tensor of a run to that of the
  /// next run. There is a gap between the tensors. The shared operand has
  /// distance 0.
  EvenRuns steps() const {
    EvenRuns even{static_cast<std::int64_t>(runs.size()), {}, {}};
    const auto step = [](const TensorView &view) {
      const std::int64_t bytes = view.elements() * bytesOf(view.type);
      return (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    };
    for (const TensorView &view : spec().inputs)
      even.inputs.push_back(step(view));
    even.inputs[shared] = 0;
    for (const TensorView &view : spec().outputs)
      even.outputs.push_back(step(view));
    return even;
  }

  /// Returns whether a batch must write this output. It need not write the
  /// intermediate value that a fused consumer reads.
  bool isWritten(std::size_t output) const {
    return !spec().find(kThen) || output % 2 == 1;
  }

  /// Executes all runs and returns the bytes of their results: [run][result].
  /// \param together  true: as one batch; false: one run after the other
  /// \return an empty vector if the backend cannot batch these runs
  std::vector<std::vector<Bytes>> run(Backend &backend, bool together) const {
    const EvenRuns even = steps();
    const std::unique_ptr<Kernel> kernel =
        together ? backend.prepareEven(spec(), even) : backend.prepare(spec());
    if (!kernel)
      return {};
    Memory &memory = backend.memory();
    std::vector<Allocation> places;
    const auto place = [&](std::int64_t step, const TensorView &view,
                           auto numbersOf) {
      Bytes all(static_cast<std::size_t>(step) * (runs.size() - 1) +
                static_cast<std::size_t>(view.elements() * bytesOf(view.type)));
      for (std::size_t r = runs.size(); r-- > 0;) {
        const Bytes own = Case::stored(view, numbersOf(runs[r]));
        std::ranges::copy(own,
                          all.begin() + static_cast<std::ptrdiff_t>(r) * step);
      }
      places.emplace_back(memory, all.size());
      memory.upload(places.back().get(), all.data(), all.size());
      return places.back().get();
    };
    std::vector<std::byte *> from, to;
    for (std::size_t i = 0; i < even.inputs.size(); ++i)
      from.push_back(place(even.inputs[i], spec().inputs[i],
                           [i](const Case &one) { return one.input(i); }));
    for (std::size_t o = 0; o < even.outputs.size(); ++o)
      to.push_back(place(even.outputs[o], spec().outputs[o],
                         [o](const Case &one) { return one.before(o); }));
    const Moment &moment = runs.front().moment;
    const StepNumbers numbers{moment.seed, moment.step, moment.drops, {}, {}};
    Allocation step(memory, sizeof(numbers));
    memory.upload(step.get(), &numbers, sizeof(numbers));
    for (std::int64_t r = 0; r < (together ? 1 : even.count); ++r) {
      std::vector<const void *> inputs;
      std::vector<void *> outputs;
      for (std::size_t i = 0; i < from.size(); ++i)
        inputs.push_back(from[i] + r * even.inputs[i]);
      for (std::size_t o = 0; o < to.size(); ++o)
        outputs.push_back(to[o] + r * even.outputs[o]);
      kernel->run({inputs.data(), outputs.data(),
                   reinterpret_cast<const StepNumbers *>(step.get()),
                   moment.microBatch, moment.copy});
    }
    std::vector<std::vector<Bytes>> results;
    for (std::int64_t r = 0; r < even.count; ++r) {
      results.emplace_back();
      for (std::size_t o = 0; o < to.size(); ++o) {
        const TensorView &view = spec().outputs[o];
        results.back().emplace_back(
            static_cast<std::size_t>(view.elements() * bytesOf(view.type)));
        memory.download(results.back().back().data(),
                        to[o] + r * even.outputs[o],
                        results.back().back().size());
      }
    }
    return results;
  }
};

/// Returns products of one shared input, like those of queries, keys and
/// values, with a bias and without; products with a fused `add`; and weight
/// gradients, with a bias gradient and without. A weight gradient begins an
/// accumulator, adds to one, or is not accumulated.
inline std::vector<EvenCase> evenCases(ElementType type) {
  const ElementType wide =
      type == ElementType::f64 ? ElementType::f64 : ElementType::f32;
  const TensorView x{type, {3, 37, 48}, {}}, weight{type, {48, 24}, {}},
      bias{type, {24}, {}}, above{type, {3, 37, 24}, {}},
      sum{wide, weight.shape, {}}, biasSum{wide, bias.shape, {}};
  std::vector<EvenCase> all;
  unsigned seed = 40;
  // Adds a case of `count` runs. `build` adds the operands and results.
  const auto add = [&](const char *equation, int count, auto build) {
    EvenCase even;
    for (int r = 0; r < count; ++r) {
      Case one("einsum", ++seed);
      one.set("equation", equation);
      build(one);
      if (r > 0)
        one.setInput(0, even.runs[0].input(0));
      even.runs.push_back(std::move(one));
    }
    all.push_back(std::move(even));
  };
  for (const bool biased : {false, true}) {
    const auto operands = [&](Case &one) {
      one.in(x).in(weight);
      if (biased)
        one.in(bias);
    };
    add("bsi,io->bso", 3, [&](Case &one) {
      operands(one);
      one.out(above);
    });
    add("bsi,io->bso", 2, [&](Case &one) {
      operands(one);
      one.set("then", "add").in(above).out(above).out(above);
    });
  }
  for (const std::int64_t first : {-1, 1, 2})
    for (const bool sums : {false, true})
      add("bsi,bso->io", first == 1 ? 2 : 3, [&](Case &one) {
        one.set("then", "accumulate").in(x).in(above);
        if (first >= 0)
          one.set("first_term", first);
        one.out(weight).out(
            sum, Doubles(static_cast<std::size_t>(sum.elements()), 0.7));
        if (sums)
          one.set(kBiasGradient, std::int64_t{1})
              .out(bias)
              .out(biasSum, Doubles(24, 0.7));
      });
  add("bsi,bso->io", 2, [&](Case &one) {
    one.set(kBiasGradient, std::int64_t{1}).in(x).in(above);
    one.out(weight).out(bias);
  });
  return all;
}

} // namespace mtplan::runtime::testing

#endif // MTPLAN_TESTS_RUNTIME_BACKEND_EVEN_CASES_H
