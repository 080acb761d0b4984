//===- together_test.cpp - One kernel for many tensors --------------------===//

#include <array>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/backend/long_sum.h"
#include "runtime/cuda/cuda_backend.h"
#include "tests/emulator/device.h"

namespace mtplan::runtime {
namespace {

// Lists tensor sizes in elements. A thread handles up to 8 elements at once,
// and a block about 16384.
constexpr std::array<std::int64_t, 8> kSizes{1,     7,     8,     768,
                                             16384, 16385, 16391, 40000};

TensorView viewOf(ElementType type, std::int64_t elements) {
  return {type, {elements}, {}};
}

/// Holds tensors in one allocation; the pattern between them must not change.
class Together : public ::testing::TestWithParam<emulator::Order> {
protected:
  Together() { emulator::setOrder(GetParam()); }
  ~Together() override { emulator::setOrder(emulator::Order::ascending); }

  /// Allocates a tensor with random numbers, `astray` bytes after an aligned
  /// address.
  void *place(const TensorView &view, std::int64_t astray = 0) {
    used = (used + 255) / 256 * 256 + astray;
    void *there = room.get() + used;
    used += view.elements() * bytesOf(view.type);
    std::uniform_real_distribution<double> positive(0.01, 1.0);
    for (std::int64_t i = 0; i < view.elements(); ++i)
      writeElement(view.type,
                   host.data() +
                       (used - (view.elements() - i) * bytesOf(view.type)),
                   0, positive(random));
    return there;
  }
  void put(const void *to, double value) {
    std::memcpy(at(to), &value, sizeof(value));
  }
  std::byte *at(const void *device) {
    return host.data() + (static_cast<const std::byte *>(device) - room.get());
  }

  void begin() { memory.upload(room.get(), host.data(), host.size()); }
  std::vector<std::byte> end() {
    std::vector<std::byte> all(host.size());
    memory.download(all.data(), room.get(), all.size());
    return all;
  }

  std::vector<std::byte> oneByOne(const std::vector<FixedRun> &runs) {
    begin();
    for (const FixedRun &run : runs)
      backend->prepare(run.spec)->run(run.with(step.as<StepNumbers>()));
    return end();
  }
  std::vector<std::byte> together(const std::vector<FixedRun> &runs) {
    const std::unique_ptr<Kernel> all = backend->prepareTogether(runs);
    if (!all) {
      ADD_FAILURE() << "not together";
      return {};
    }
    begin();
    all->run({nullptr, nullptr, step.as<StepNumbers>()});
    return end();
  }

  void setStep(const StepNumbers &numbers) {
    memory.upload(step.get(), &numbers, sizeof(numbers));
  }

  FixedRun update(std::int64_t elements, ElementType gradient,
                  ElementType value, ElementType state, bool decays,
                  std::int64_t astray = 0) {
    const TensorView slope = viewOf(gradient, elements),
                     weight = viewOf(value, elements),
                     moment = viewOf(state, elements);
    FixedRun run{{"adamw",
                  "w",
                  {{"decay", std::int64_t{decays}}},
                  {slope},
                  {weight, moment, moment, moment}},
                 {place(slope, astray)},
                 {place(weight, astray)}};
    run.outputs.push_back(value == state ? run.outputs[0]
                                         : place(moment, astray));
    run.outputs.push_back(place(moment));
    run.outputs.push_back(place(moment));
    return run;
  }
  FixedRun squares(const TensorView &view, void *sum, bool counts = true,
                   std::int64_t astray = 0) {
    return {{"square_sum",
             "w",
             {{"counts", std::int64_t{counts}}},
             {view},
             {viewOf(ElementType::f64, 2)}},
            {place(view, astray)},
            {sum}};
  }

  std::mt19937_64 random{5};
  const std::unique_ptr<Backend> backend = makeCudaBackend();
  Memory &memory = backend->memory();
  std::vector<std::byte> host =
      std::vector<std::byte>(std::size_t{8} << 20, std::byte{0x5a});
  Allocation room{memory, host.size()}, step{memory, sizeof(StepNumbers)};
  std::int64_t used = 0;
};

TEST_P(Together, ParametersAreUpdatedToTheBitsOfEachAlone) {
  using enum ElementType;
  std::vector<FixedRun> runs;
  bool decays = false;
  for (const std::int64_t elements : kSizes) {
    decays = !decays;
    runs.push_back(update(elements, f32, f32, f32, decays));
    runs.push_back(update(elements, f32, bf16, f32, decays));
    runs.push_back(update(elements, bf16, f16, f32, !decays, 4));
  }
  StepNumbers numbers;
  numbers.update = {.learningRate = 0.01,
                    .weightDecay = 0.1,
                    .step = 3,
                    .gradientFactor = 0.25};
  setStep(numbers);
  EXPECT_EQ(together(runs), oneByOne(runs));

  runs = {update(16391, f64, f64, f64, true), update(9, f64, f32, f64, false)};
  EXPECT_EQ(together(runs), oneByOne(runs));
}

// A replay reads the step numbers of the time at which it runs.
TEST_P(Together, AnUpdateIsRecorded) {
  using enum ElementType;
  const std::vector<FixedRun> runs{update(20000, f32, bf16, f32, true),
                                   update(3, f32, bf16, f32, false)};
  const std::unique_ptr<Kernel> all = backend->prepareTogether(runs);
  ASSERT_TRUE(all);
  StepNumbers numbers;
  setStep(numbers);
  const std::unique_ptr<Recording> recording = backend->queue().recorded([&] {
    all->run({nullptr, nullptr, step.as<StepNumbers>()});
  });
  for (const double rate : {0.5, 0.125}) {
    numbers.update.learningRate = rate;
    setStep(numbers);
    begin();
    recording->replay();
    const std::vector<std::byte> replayed = end();
    EXPECT_EQ(replayed, oneByOne(runs)) << rate;
  }
}

// The sum is exact and includes the previous contents.
TEST_P(Together, SquaresAreAddedUpExactly) {
  using enum ElementType;
  void *const sum = place(viewOf(f64, 2));
  put(sum, 1e16);
  put(static_cast<std::byte *>(sum) + sizeof(double), 0.5);
  LongSum expected{1e16, 0.5};
  std::vector<FixedRun> runs;
  for (const std::int64_t elements : kSizes)
    for (const ElementType type : {f32, bf16}) {
      const TensorView view = viewOf(type, elements);
      runs.push_back(squares(view, sum, true, elements % 2 ? 4 : 0));
      for (std::int64_t i = 0; i < elements; ++i)
        expected.addSquare(readElement(type, at(runs.back().inputs[0]), i));
    }
  runs.push_back(squares(viewOf(f32, 900), sum, false));
  auto sumIn = [&](const std::vector<std::byte> &all) {
    LongSum found;
    std::memcpy(&found, all.data() + (at(sum) - host.data()), sizeof(found));
    return found.value();
  };
  const std::vector<std::byte> ran = together(runs);
  EXPECT_EQ(sumIn(ran), expected.value());
  EXPECT_EQ(together(runs), ran);

  runs = {squares(viewOf(f64, 16391), sum), squares(viewOf(f64, 5), sum)};
  EXPECT_EQ(sumIn(together(runs)), sumIn(oneByOne(runs)));
}

TEST_P(Together, OtherKernelsAndMixedTypesAreNotBatched) {
  using enum ElementType;
  const TensorView some = viewOf(f32, 8);
  EXPECT_FALSE(backend->prepareTogether({}));
  const FixedRun copy{
      {"copy", "x", {}, {some}, {some}}, {place(some)}, {place(some)}};
  EXPECT_FALSE(backend->prepareTogether({copy, copy}));
  // A batch may not mix f32 and f64, and must add all squares to one sum.
  EXPECT_FALSE(backend->prepareTogether(
      {update(8, f32, f32, f32, true), update(8, f64, f64, f64, true)}));
  void *const sum = place(viewOf(f64, 2)), *const other = place(viewOf(f64, 2));
  EXPECT_FALSE(
      backend->prepareTogether({squares(some, sum), squares(some, other)}));
  EXPECT_FALSE(backend->prepareTogether(
      {squares(some, sum), squares(viewOf(f64, 8), sum)}));
}

TEST_P(Together, AMismatchedShapeIsRejected) {
  FixedRun wrong =
      update(8, ElementType::f32, ElementType::f32, ElementType::f32, true);
  wrong.spec.inputs[0].shape = {9};
  EXPECT_THROW(backend->prepareTogether({wrong}), std::runtime_error);
}

INSTANTIATE_TEST_SUITE_P(Orders, Together,
                         ::testing::Values(emulator::Order::ascending,
                                           emulator::Order::descending),
                         [](const auto &of) {
                           return of.param == emulator::Order::ascending
                                      ? "Ascending"
                                      : "Descending";
                         });

} // namespace
} // namespace mtplan::runtime
