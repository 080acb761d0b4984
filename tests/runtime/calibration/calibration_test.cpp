//===- calibration_test.cpp - Known costs, measured -----------------------===//

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/backend/element.h"
#include "runtime/calibration/kernel_runs.h"
#include "runtime/calibration/link_runs.h"
#include "tests/runtime/calibration/fake_machine.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre;

constexpr CalibrationShapes kSmall{.samples = 2,
                                   .sequence = 64,
                                   .hidden = 128,
                                   .words = 512,
                                   .square = 256,
                                   .spread = 1 << 18,
                                   .largestMessage = 1 << 20};

std::vector<MeasuredRun>
measured(FakeMachine &machine, int ranks = 1, int ranksOfHost = 1,
         double seconds = 0.1,
         const std::function<void(const CalibrationPart &)> &said = {}) {
  FakeWorld world(machine, ranks);
  FakeBackend backend(machine);
  return calibrate(world, backend, machine.clock(),
                   {.shapes = kSmall,
                    .types = {ElementType::f32, ElementType::bf16},
                    .seconds = seconds,
                    .ranksOfHost = ranksOfHost},
                   said);
}

TEST(Timing, IsTheMedianAndTheMiddleHalf) {
  const Timing timing = timingOf({9.0, 1.0, 3.0, 2.0, 100.0});
  EXPECT_EQ(timing.seconds, 3.0);
  EXPECT_EQ(timing.low, 2.0);
  EXPECT_EQ(timing.high, 9.0);
  EXPECT_EQ(timing.samples, 5);
  EXPECT_EQ(timingOf({1.0, 2.0}).seconds, 1.5);
}

/// Counts the zeros in its operands, and records the operands' addresses.
class Reader final : public Kernel {
public:
  explicit Reader(const KernelSpec &theSpec) : spec(theSpec) {}
  void run(const Invocation &call) override {
    for (std::size_t i = 0; i < spec.inputs.size(); ++i) {
      const TensorView &view = spec.inputs[i];
      seen.insert(call.inputs[i]);
      for (std::int64_t e = 0; e < view.elements(); ++e)
        zeros += readElement(view.type, call.inputs[i], e) == 0.0;
    }
  }

  std::set<const void *> seen;
  std::int64_t zeros = 0;

private:
  const KernelSpec spec;
};

TEST(Operands, AreFilledInEveryCopy) {
  const KernelSpec spec{
      "embedding",
      "embedding",
      {},
      {{ElementType::i32, {2, 3}, {}}, {ElementType::bf16, {100, 200}, {}}},
      {{ElementType::bf16, {2, 3, 200}, {}}}};
  Operands operands(hostMemory(), spec, 100'000);
  Reader reader(spec);
  for (int number = 0; number < 4; ++number)
    operands.run(reader, number);
  EXPECT_EQ(reader.seen.size(), 2U * 3); // 2 operands, 3 copies of 43 kB
  EXPECT_LE(reader.zeros, 4 * 100);
}

// The first run takes longer than the others, and so does every fourth run. The
// result includes neither.
TEST(Stopwatch, LeavesTheFirstRunAndStragglersOut) {
  FakeMachine machine;
  FakeWorld world(machine, 3);
  Queue queue;
  Stopwatch watch(world, queue, machine.clock());
  int number = 0;
  const Timing timing = watch.time(0.5, [&](std::int64_t run) {
    EXPECT_EQ(run, number);
    machine.now += number == 0 ? 7.0 : number % 4 == 3 ? 0.5 : 0.01;
    ++number;
  });
  EXPECT_NEAR(timing.seconds, 0.01, 1e-12);
  EXPECT_EQ(timing.samples, 50);
}

// A short kernel runs many times between two readings of the clock, whose ticks
// may be coarse.
TEST(Stopwatch, RepeatsWhatIsShort) {
  FakeMachine machine;
  FakeWorld world(machine, 2);
  const SecondsClock coarse = [&] {
    return 1e-5 * std::floor(machine.now / 1e-5);
  };
  Queue queue;
  Stopwatch watch(world, queue, coarse);
  const Timing timing =
      watch.time(0.1, [&](std::int64_t) { machine.now += 1e-6; });
  EXPECT_NEAR(timing.seconds, 1e-6, 2e-8);
}

/// Makes recordings that take a microsecond per run when they are replayed.
class RecordingQueue final : public Queue {
public:
  explicit RecordingQueue(FakeMachine &theMachine) : machine(theMachine) {}

  bool records() const override { return true; }
  std::unique_ptr<Recording>
  recorded(const std::function<void()> &work) override {
    class Replayed final : public Recording {
    public:
      Replayed(FakeMachine &theMachine, double theSeconds)
          : machine(theMachine), seconds(theSeconds) {}
      void replay() override { machine.now += seconds; }

    private:
      FakeMachine &machine;
      const double seconds;
    };
    isRecording = true;
    runs = 0;
    work();
    isRecording = false;
    return std::make_unique<Replayed>(machine, 1e-6 * runs);
  }

  FakeMachine &machine;
  bool isRecording = false;
  int runs = 0;
};

// A step on a GPU replays its kernels, without a launch by the host for each.
TEST(Stopwatch, ReplaysWhatMayBeRecorded) {
  FakeMachine machine;
  FakeWorld world(machine, 1);
  RecordingQueue queue(machine);
  Stopwatch watch(world, queue, machine.clock());
  const auto launch = [&](std::int64_t) {
    if (queue.isRecording)
      ++queue.runs;
    else
      machine.now += 4e-6;
  };
  EXPECT_NEAR(watch.time(0.1, launch, true).seconds, 1e-6, 1e-12);
  EXPECT_NEAR(watch.time(0.1, launch).seconds, 4e-6, 1e-12);
}

// A device that only multiplies lowers its clock more than a step does.
TEST(Stopwatch, DoesNotTimeTheWorkBetweenSamples) {
  FakeMachine machine;
  FakeWorld world(machine, 1);
  Queue queue;
  Stopwatch watch(world, queue, machine.clock());
  int pauses = 0;
  const Timing timing = watch.time(
      0.031, [&](std::int64_t) { machine.now += 1e-4; }, false,
      [&](double seconds) {
        EXPECT_NEAR(seconds, 2e-3, 1e-9);
        machine.now += seconds / 2;
        ++pauses;
      });
  EXPECT_NEAR(timing.seconds, 1e-4, 1e-12);
  EXPECT_EQ(timing.samples, 10);
  EXPECT_EQ(pauses, timing.samples - 1);
}

TEST(Stopwatch, LongKernelsHaveFiveSamples) {
  FakeMachine machine;
  FakeWorld world(machine, 1);
  Queue queue;
  Stopwatch watch(world, queue, machine.clock());
  EXPECT_EQ(
      watch.time(0.001, [&](std::int64_t) { machine.now += 2.0; }).samples, 5);
}

/// Records work, and replays it in the time that it takes.
class RepeatingQueue final : public Queue {
public:
  bool records() const override { return true; }
  std::unique_ptr<Recording>
  recorded(const std::function<void()> &work) override {
    class Repeated final : public Recording {
    public:
      explicit Repeated(std::function<void()> theWork)
          : work(std::move(theWork)) {}
      void replay() override { work(); }

    private:
      const std::function<void()> work;
    };
    return std::make_unique<Repeated>(work);
  }
};

class DeviceBackend final : public FakeBackend {
public:
  using FakeBackend::FakeBackend;
  Queue &queue() override { return device; }

private:
  RepeatingQueue device;
};

// On a device, copies run between samples of products and attention, and change
// no result.
TEST(Calibration, CopiesMemoryBetweenProducts) {
  FakeMachine host, device;
  const std::vector<MeasuredRun> alone = measured(host);
  FakeWorld world(device, 1);
  DeviceBackend backend(device);
  const std::vector<MeasuredRun> beside =
      calibrate(world, backend, device.clock(),
                {.shapes = kSmall,
                 .types = {ElementType::f32, ElementType::bf16},
                 .seconds = 0.1});
  ASSERT_EQ(beside.size(), alone.size());
  double ofProducts = 0.0;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    EXPECT_NEAR(beside[i].timing.seconds / alone[i].timing.seconds, 1.0, 1e-9)
        << alone[i].kernel;
    if (alone[i].as == MeasuredAs::product)
      ofProducts += beside[i].timing.seconds * (beside[i].timing.samples - 1);
  }
  // A copy reads and writes `spread` bytes. Half the time of all samples but
  // the first is at least half the time of one run of each.
  const double ofCopy =
      device.launch + 2.0 * static_cast<double>(kSmall.spread) / device.stream;
  EXPECT_GT((device.ran["copy"] - host.ran["copy"]) * ofCopy, ofProducts / 2);
}

TEST(Calibration, FindsWhatEveryRunCosts) {
  FakeMachine machine;
  std::set<std::string> kernels;
  for (const MeasuredRun &run : measured(machine, 4, 2)) {
    kernels.insert(run.kernel);
    double seconds = machine.launch;
    const auto bytes = static_cast<double>(run.bytes);
    switch (run.as) {
    case MeasuredAs::launches:
      seconds += 3 * 16 * 4 / machine.stream;
      break;
    case MeasuredAs::pass:
      continue; // bytes differ by kernel: see ReportsBytesOfTraffic
    case MeasuredAs::followed:
      if (!run.after.empty()) {
        // Compared with the first kernel alone, the pair reads another operand
        // and writes a second result.
        seconds += static_cast<double>(run.bytesAfter + 2 * run.bytes) /
                   machine.stream;
        break;
      }
      [[fallthrough]];
    case MeasuredAs::product:
      seconds += 2.0 * static_cast<double>(run.m * run.n * run.k * run.batch) /
                 machine.product;
      break;
    case MeasuredAs::attention:
      seconds += static_cast<double>(run.batch * run.m * run.n * run.k) /
                 machine.attention;
      break;
    case MeasuredAs::collective:
    case MeasuredAs::message:
      seconds = machine.latency + bytes / machine.link;
      break;
    }
    EXPECT_NEAR(run.timing.seconds, seconds, 1e-6 * seconds)
        << run.kernel << ' ' << run.what;
    EXPECT_GE(run.timing.samples, 5);
  }
  EXPECT_TRUE(kernels.contains("einsum"));
  EXPECT_TRUE(kernels.contains("adamw"));
  EXPECT_TRUE(kernels.contains("all_to_all"));
  EXPECT_TRUE(kernels.contains("send"));
}

// Attention is slow here: five samples take longer than an even share of the
// time that the calibration is given.
TEST(Calibration, TakesTheTimeThatItIsGiven) {
  FakeMachine machine;
  machine.attention = 1e7;
  const double seconds = 60.0;
  double attention = 0.0;
  std::size_t shortest = 1000;
  const std::vector<MeasuredRun> runs = measured(machine, 4, 2, seconds);
  for (const MeasuredRun &run : runs) {
    if (run.as == MeasuredAs::attention)
      attention = std::max(attention, run.timing.seconds);
    shortest = std::min(shortest, std::size_t(run.timing.samples));
  }
  EXPECT_GT(5 * attention, 1.5 * seconds / double(runs.size()));
  EXPECT_NEAR(machine.now, seconds, 0.02 * seconds);
  EXPECT_EQ(shortest, 5U);
}

// Short kernels have samples of two milliseconds even when all time is spent.
TEST(Calibration, LeavesTimeForFiveSamples) {
  FakeMachine machine;
  machine.product = 1e9;
  measured(machine, 1, 1, 3.0);
  EXPECT_GT(machine.now, 6.0);
  // The kernel "copy" has five samples of 2 ms, and each sample has many runs.
  const double copy = 2.0 * 2 * 64 * 512 * 4 / machine.stream;
  EXPECT_GT(machine.ran["copy"], 0.01 / copy);
}

TEST(Calibration, ReportsItsParts) {
  FakeMachine machine;
  std::vector<CalibrationPart> parts;
  const std::size_t runs =
      measured(machine, 4, 2, 0.1, [&](const CalibrationPart &part) {
        parts.push_back(part);
      }).size();
  std::vector<std::string> names;
  std::size_t past = 1;
  for (const CalibrationPart &part : parts) {
    names.push_back(part.what);
    EXPECT_EQ(part.first, past);
    EXPECT_EQ(part.runs, runs);
    past = part.last + 1;
  }
  EXPECT_EQ(past, runs + 1);
  EXPECT_THAT(names,
              ElementsAre("kernels that do almost nothing", "products, f32",
                          "attention, f32", "passes, f32", "products, bf16",
                          "attention, bf16", "passes, bf16",
                          "collectives over 2 ranks",
                          "collectives over 2 ranks, every 2th",
                          "collectives over 4 ranks", "messages to rank + 1",
                          "messages to rank + 2"));
}

TEST(Calibration, ReportsBytesOfTraffic) {
  FakeMachine machine;
  std::map<std::pair<std::string, ElementType>, std::int64_t> bytes;
  for (const MeasuredRun &run : measured(machine))
    if (run.as == MeasuredAs::pass)
      bytes[{run.kernel, run.type}] = run.bytes;
  const std::int64_t x = 2 * 64 * 128, table = 512 * 128;
  constexpr ElementType kF32 = ElementType::f32, kBf16 = ElementType::bf16;
  EXPECT_EQ((bytes[{"add", kF32}]), 3 * 4 * x);
  EXPECT_EQ((bytes[{"add", kBf16}]), 3 * 2 * x);
  // A look-up counts the rows that it reads and writes, and 4 bytes per index.
  EXPECT_EQ((bytes[{"embedding", kBf16}]), 2 * 2 * x + 4 * 2 * 64);
  EXPECT_EQ((bytes[{"vocab_pick", kF32}]), (4 + 4 + 4) * 2 * 64);
  // The update moves the gradient, the weight and two moments, and in bf16 also
  // a master weight.
  EXPECT_EQ((bytes[{"adamw", kF32}]), (4 + 3 * 8) * table);
  EXPECT_EQ((bytes[{"adamw", kBf16}]), (4 + 2 + 3 * 8) * table);
  EXPECT_EQ((bytes[{"accumulate", kBf16}]), (2 + 8) * table);
}

// The reported variant is the variant that runs.
TEST(Calibration, ReportsVariants) {
  std::map<std::string, std::set<std::string>> variants;
  for (const KernelRun &one : kernelRunsOf(kSmall, ElementType::f32)) {
    const KernelSpec &spec = one.spec;
    variants[spec.kernel].insert(one.run.variant);
    const bool drops =
        spec.kernel.starts_with("attention") && spec.number("rate", 0.0) > 0.0;
    EXPECT_EQ(one.run.variant, drops ? "dropout" : spec.text("kind", ""));
  }
  EXPECT_THAT(
      variants["activation_grad"],
      ElementsAre("gelu", "gelu_tanh", "relu", "sigmoid", "silu", "tanh"));
  EXPECT_THAT(variants["attention_grad"], ElementsAre("", "dropout"));
  EXPECT_THAT(variants["layer_norm"], ElementsAre(""));
}

// The fake backend fuses all pairs of kernels. The CPU backend does not, see
// RunsOnTheCpu.
TEST(Calibration, ReportsFusedKernels) {
  FakeMachine machine;
  std::set<std::string> followers;
  for (const MeasuredRun &run : measured(machine))
    if (run.as == MeasuredAs::followed) {
      followers.insert(run.after + ' ' + run.kernel + ' ' + run.variant);
      EXPECT_EQ(run.bytes,
                bytesOf(run.type) *
                    (run.after.empty() ? run.m * run.n : 2 * 64 * 128));
    }
  EXPECT_EQ(followers.size(), 16U);
  for (const char *name :
       {" add ", " activation_grad gelu_tanh", "dropout add ",
        "layer_norm_grad add ", "rms_norm_grad add "})
    EXPECT_TRUE(followers.contains(name)) << name;
}

TEST(Calibration, LeavesOutWhatABackendLacks) {
  FakeMachine machine;
  machine.lacks = "rope";
  const std::vector<MeasuredRun> runs = measured(machine);
  EXPECT_TRUE(std::ranges::none_of(
      runs, [](const MeasuredRun &run) { return run.kernel == "rope"; }));
  EXPECT_TRUE(std::ranges::any_of(
      runs, [](const MeasuredRun &run) { return run.kernel == "swiglu"; }));
}

TEST(Calibration, OfOneRankHasNoCollectives) {
  FakeMachine machine;
  for (const MeasuredRun &run : measured(machine)) {
    EXPECT_NE(run.as, MeasuredAs::collective);
    EXPECT_NE(run.as, MeasuredAs::message);
  }
}

TEST(Calibration, GroupsLieInsideHostsAndAcross) {
  EXPECT_THAT(groupShapesOf(1, 1), ElementsAre());
  EXPECT_THAT(groupShapesOf(6, 6),
              ElementsAre(GroupShape{2, 1}, GroupShape{6, 1}));
  EXPECT_THAT(groupShapesOf(8, 4),
              ElementsAre(GroupShape{2, 1}, GroupShape{4, 1}, GroupShape{2, 4},
                          GroupShape{8, 1}));
  EXPECT_THAT(groupShapesOf(3, 1), ElementsAre(GroupShape{3, 1}));
  EXPECT_THAT(groupOf({2, 1}, 5), ElementsAre(4, 5));
  EXPECT_THAT(groupOf({2, 4}, 6), ElementsAre(2, 6));
  EXPECT_THAT(groupOf({3, 2}, 9), ElementsAre(7, 9, 11));
}

// Two ranks that share a machine run all kernels of the real backend. Their
// times are not checked.
TEST(Calibration, RunsOnTheCpu) {
  CalibrationShapes tiny = kSmall;
  tiny.square = 64;
  tiny.spread = 1 << 12;
  tiny.largestMessage = 1 << 13;
  const std::vector<ElementType> types{ElementType::f32, ElementType::bf16,
                                       ElementType::f16};
  std::size_t wanted = 1;
  for (const ElementType type : types)
    for (const KernelRun &one : kernelRunsOf(tiny, type))
      wanted += one.run.as != MeasuredAs::followed;
  std::vector<std::vector<MeasuredRun>> all(2);
  runOnThreads(2, {}, [&](World &world) {
    const std::unique_ptr<Backend> backend = makeCpuBackend(1);
    all[static_cast<std::size_t>(world.rank())] = calibrate(
        world, *backend, steadySeconds(),
        {.shapes = tiny, .types = types, .seconds = 0.01, .ranksOfHost = 2});
  });
  ASSERT_EQ(all[0].size(), all[1].size());
  std::size_t kernels = 0;
  for (std::size_t i = 0; i < all[0].size(); ++i) {
    EXPECT_GT(all[0][i].timing.seconds, 0.0) << all[0][i].kernel;
    EXPECT_EQ(all[0][i].timing.seconds, all[1][i].timing.seconds);
    EXPECT_NE(all[0][i].as, MeasuredAs::followed);
    kernels += all[0][i].as < MeasuredAs::collective ? 1 : 0;
  }
  EXPECT_EQ(kernels, wanted);
  const DeviceFacts facts = makeCpuBackend(1)->facts();
  EXPECT_FALSE(facts.name.empty());
  EXPECT_THAT(facts.libraries, testing::StartsWith("oneDNN "));
  EXPECT_GT(facts.memory, std::int64_t{1} << 28);
}

} // namespace
} // namespace mtplan::runtime
