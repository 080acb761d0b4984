//===- calibrate_test.cpp - Machine files of mtrun calibrate --------------===//
//
// The planner's cost model generates the measurements of a known machine, and
// the written file must describe that machine. No time is measured.
//
//===----------------------------------------------------------------------===//

#include <filesystem>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/fit/fit_machine.h"
#include "planner/fit/measurements_json.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "runtime/calibration/kernel_runs.h"
#include "runtime/calibration/link_runs.h"
#include "runtime/plan/plan_queries.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"
#include "tests/tools/planning.h"
#include "tools/exchange/prediction.h"
#include "tools/run/calibrate.h"
#include "tools/text/text_file.h"

namespace mtplan::tools {
namespace {

using runtime::ElementType;
using runtime::MeasuredAs;
using runtime::MeasuredRun;
using testing::HasSubstr;

constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

// Returns a machine whose device differs from that of every preset, with one
// link.
planner::Machine truth() {
  planner::Machine machine = planner::loadMachine("cpu");
  planner::Device &device = machine.device;
  device.fp32 = planner::FlopsPerSec{0.2e12};
  device.bf16 = planner::FlopsPerSec{0.5e12};
  device.bandwidth = planner::BytesPerSec{40e9};
  device.bandwidthEfficiency = 1.0;
  device.elementwiseEfficiency = 0.75;
  device.gemmEfficiency = 0.9;
  device.ownGemmEfficiency[planner::storedAs(planner::Precision::bf16)] = 0.7;
  device.tiles = {{256, 16, 1.0}, {64, 16, 0.8}, {16, 16, 0.4}};
  device.launch = planner::Seconds{4e-6};
  device.wave = planner::Seconds{2e-6};
  device.products.batched = 0.8;
  device.products.unaligned64 = 0.9;
  device.products.unaligned8 = 0.6;
  device.kernels.software = "mtplan";
  device.kernels.attention[0] = {0.25, 0.375};
  device.kernels.attention[2] = {0.125, 0.1};
  device.kernels.droppingAttention[0] = {0.2, 0.3};
  device.kernels.fusions[2] = {"activation.gelu_tanh", "add", "dropout+add"};
  for (const auto &[kernel, rate] :
       {std::pair("adamw", 20e9), std::pair("dropout", 5e9),
        std::pair("activation.gelu", 4e9),
        std::pair("activation_grad.gelu_tanh", 6e9)})
    device.kernels.passes[kernel] = {planner::BytesPerSec{rate},
                                     planner::BytesPerSec{},
                                     planner::BytesPerSec{rate / 2}};
  machine.levels[0].bandwidth = planner::BytesPerSec{6e9};
  machine.levels[0].latency = planner::Seconds{3e-6};
  machine.levels[0].base = planner::Seconds{7e-6};
  return machine;
}

std::vector<MeasuredRun> runsOf(const planner::Machine &machine, int ranks) {
  runtime::CalibrationShapes shapes;
  std::vector<MeasuredRun> runs{runtime::smallestRun().run};
  for (ElementType type : {ElementType::f32, ElementType::bf16})
    for (const runtime::KernelRun &one : runtime::kernelRunsOf(shapes, type))
      if (one.run.as != MeasuredAs::followed ||
          planner::isFused(planner::defaultSoftware(), machine.device,
                           planner::fusionName(one.run.after, one.run.kernel,
                                               one.run.variant),
                           type == ElementType::f32 ? planner::Precision::fp32
                                                    : planner::Precision::bf16))
        runs.push_back(one.run);
  if (ranks > 1)
    for (const char *kernel :
         {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"})
      for (int group = 2; group <= ranks; group *= 2)
        for (std::int64_t size : runtime::messageSizes(64 << 20)) {
          MeasuredRun &run = runs.emplace_back();
          run.as = MeasuredAs::collective;
          run.kernel = kernel;
          run.bytes = size;
          run.ranks = group;
        }
  for (MeasuredRun &run : runs) {
    run.timing.seconds = predictedSeconds(run, machine);
    run.timing.low = run.timing.high = run.timing.seconds;
    run.timing.samples = 9;
  }
  return runs;
}

CalibratedOn place(int ranks) {
  CalibratedOn on;
  on.name = "ours";
  on.device = "a device of ours";
  on.source = "a test";
  on.like = "cpu core";
  on.memory = 12 * kGiB;
  on.ranks = on.ranksOfHost = ranks;
  return on;
}

TEST(Calibrate, RecoversAKnownMachine) {
  const planner::Machine known = truth();
  const Calibrated made = calibratedMachine(place(4), runsOf(known, 4));
  EXPECT_THAT(made.undetermined, testing::IsEmpty());
  const planner::Machine found = planner::parseMachine(made.machineText);
  const planner::Device &device = found.device;
  const auto near = [](double value, double wanted) {
    EXPECT_NEAR(value, wanted, 0.01 * wanted);
  };
  EXPECT_EQ(found.name, "ours");
  EXPECT_EQ(device.name, "a device of ours");
  EXPECT_EQ(found.devicesPerNode, 4);
  EXPECT_EQ(device.memory.value, 12 * kGiB);
  near(device.launch.value, 4e-6);
  near(device.streamRate().value, 40e9);
  near(device.passRate().value, 30e9);
  // The file states the best measured rate as the peak, and other rates
  // relative to the peak.
  near(device.fp32->value * device.gemmEfficiency, 0.9 * 0.2e12);
  near(device.bf16->value * device.ownGemmEfficiency[2], 0.7 * 0.5e12);
  near(device.wave.value, 2e-6);
  near(device.products.batched, 0.8);
  near(device.products.unaligned64, 0.9);
  near(device.products.unaligned8, 0.6);
  near(device.tiles[1].rate, 0.8);
  near(device.tiles[2].rate, 0.4);
  near(device.fp32->value * device.kernels.attention[0].forward, 0.25 * 0.2e12);
  near(device.bf16->value * device.kernels.attention[2].backward, 0.1 * 0.5e12);
  near(device.fp32->value * device.kernels.droppingAttention[0].forward,
       0.2 * 0.2e12);
  near(device.fp32->value * device.kernels.droppingAttention[0].backward,
       0.3 * 0.2e12);
  near(device.kernels.passes.at("activation.gelu")[0].value, 4e9);
  near(device.kernels.passes.at("activation_grad.gelu_tanh")[2].value, 3e9);
  near(device.kernels.passes.at("adamw")[0].value, 20e9);
  EXPECT_EQ(device.kernels.fusions, known.device.kernels.fusions);
  near(device.kernels.passes.at("dropout")[2].value, 2.5e9);
  ASSERT_EQ(found.levels.size(), 1U);
  near(found.levels[0].bandwidth.value, 6e9);
  near(found.levels[0].latency.value, 3e-6);
  near(found.levels[0].base.value, 7e-6);
  // The printed prediction equals the measurement.
  EXPECT_THAT(tableOf(runsOf(known, 4), made),
              testing::AllOf(HasSubstr("all_reduce 4.00 KiB over 4"),
                             HasSubstr("activation.gelu f32"),
                             HasSubstr("768x3072 bf16 and add"),
                             HasSubstr("dropout bf16 and add"),
                             HasSubstr("attention.dropout of 48 heads")));
}

// A fused add reads only its other operand from memory.
TEST(Calibrate, PredictsFusedKernels) {
  const planner::Machine machine = truth();
  std::map<std::string, double> seconds;
  for (const MeasuredRun &run : runsOf(machine, 1))
    if (run.type == ElementType::bf16 &&
        (run.as == MeasuredAs::pass || run.as == MeasuredAs::followed))
      seconds[planner::fusionName(run.after, run.kernel, run.variant)] =
          predictedSeconds(run, machine);
  const std::int64_t elements = runtime::CalibrationShapes().samples *
                                runtime::CalibrationShapes().sequence *
                                runtime::CalibrationShapes().hidden;
  EXPECT_NEAR(seconds.at("dropout"), 4e-6 + 2 * 2 * elements / 2.5e9, 1e-9);
  EXPECT_NEAR(seconds.at("dropout+add"),
              seconds.at("dropout") + 2 * elements / 30e9, 1e-9);
}

// The stored measurement file gives the same machine to mtplan fit-hardware,
// and every figure in it has a source.
TEST(Calibrate, MeasurementsGiveTheSameMachine) {
  const Calibrated made = calibratedMachine(place(2), runsOf(truth(), 2));
  std::vector<std::string> errors;
  const auto fit = planner::fitMachine(
      planner::parseMeasurements(made.measurementsText), errors);
  ASSERT_TRUE(fit) << testing::PrintToString(errors);
  EXPECT_EQ(planner::fittedMachineText(made.measurementsText, *fit),
            made.machineText);
  EXPECT_THAT(made.machineText, HasSubstr("a test: adamw, median of 9"));
  EXPECT_EQ(calibratedMachine(place(2), runsOf(truth(), 2)).machineText,
            made.machineText);
}

// Without runs of small or batched products, no run uses the smaller tiles. One
// rank uses no link.
TEST(Calibrate, UnmeasuredFiguresAreReported) {
  std::vector<MeasuredRun> runs = runsOf(truth(), 1);
  std::erase_if(runs, [](const MeasuredRun &run) {
    return run.as == MeasuredAs::product && (run.m < 256 || run.batch > 1);
  });
  const Calibrated made = calibratedMachine(place(1), runs);
  EXPECT_THAT(made.undetermined, testing::Contains(HasSubstr("batched_rate")));
  const planner::Machine found = planner::parseMachine(made.machineText);
  EXPECT_LT(found.device.tiles.size(), 3U);
  EXPECT_EQ(found.device.products.batched, 1.0);
  EXPECT_EQ(found.levels[0].bandwidth,
            planner::loadMachine("cpu").levels[0].bandwidth);
  EXPECT_THAT(made.machineText, HasSubstr("not measured with one rank"));
}

TEST(Calibrate, PresetDeviceKeepsItsPeaks) {
  CalibratedOn on = place(1);
  on.like = "A100-SXM4-80GB";
  on.hasKnownPeaks = true;
  planner::Machine known = planner::loadMachine("dgx-a100-80g");
  const Calibrated made = calibratedMachine(on, runsOf(known, 1));
  const planner::Machine found = planner::parseMachine(made.machineText);
  EXPECT_EQ(found.device.bf16, known.device.bf16);
  EXPECT_EQ(found.device.bandwidth, known.device.bandwidth);
  EXPECT_NEAR(found.device.gemmEfficiency, known.device.gemmEfficiency, 0.01);
  EXPECT_EQ(found.device.tiles.size(), known.device.tiles.size());
}

TEST(Calibrate, MtplanReadsTheFile) {
  TestFolder folder("");
  const std::string file = folder / "ours.json";
  std::vector<std::string> errors;
  ASSERT_TRUE(writeTextFile(
      file, calibratedMachine(place(2), runsOf(truth(), 2)).machineText,
      errors));
  const tools::Ran planned({examplePath("tiny-gpt2"), "--hardware", file,
                            "--gpus", "2", "-o", folder / "run"});
  EXPECT_EQ(planned.err, "");
  EXPECT_THAT(planned.out, HasSubstr("ours  2 x a device of ours"));
  EXPECT_TRUE(std::filesystem::exists(folder / "run/plan.json"));
  // The gradient norm, measured as square_sum, has a prediction of its own.
  const tools::Prediction predicted =
      tools::parsePrediction(contentOf(folder / "run/predicted.json"));
  std::map<std::string, double> classes(predicted.classes.begin(),
                                        predicted.classes.end());
  EXPECT_GT(classes[runtime::kGradientNorm], 0.0);
  EXPECT_LT(classes[runtime::kGradientNorm], classes[runtime::kOptimizer]);
  double sum = 0.0;
  for (const auto &[name, seconds] : classes)
    sum += seconds;
  EXPECT_NEAR(sum, predicted.step, 1e-9 * predicted.step);
}

// Calibration and the cost model count the same bytes per element of an update.
TEST(Calibrate, UpdatesArePricedByTheBytesThatWereMeasured) {
  const std::pair<ElementType, planner::Precision> kinds[] = {
      {ElementType::f32, planner::Precision::fp32},
      {ElementType::f16, planner::Precision::fp16},
      {ElementType::bf16, planner::Precision::bf16}};
  for (const auto &[type, precision] : kinds) {
    SCOPED_TRACE(planner::nameOf(precision));
    PlanRequest request = exampleRequest("tiny-gpt2", 1);
    request.precision = precision;
    request.output = "compiled";
    const PlanOutcome outcome = planned(request);
    const Problem &problem = *outcome.problem;
    const planner::Setting setting = planner::settingOf(
        problem.options, problem.machine, outcome.best()->config);
    const planner::StateBytes priced = planner::stateBytesOf(setting);

    std::map<std::string, double> measured; ///< bytes per element, by kernel
    for (const runtime::KernelRun &one :
         runtime::kernelRunsOf(runtime::CalibrationShapes{}, type)) {
      double elements = 1;
      for (const std::int64_t size : one.spec.inputs.front().shape)
        elements *= static_cast<double>(size);
      measured[one.run.kernel] = static_cast<double>(one.run.bytes) / elements;
    }
    EXPECT_EQ(priced.traffic, measured["adamw"]);
    EXPECT_NEAR(priced.gradient * problem.software.parameters.normReads,
                measured["square_sum"], 1e-3); // plus one written sum
  }
}

TEST(Calibrate, ReportsProgressAndDuration) {
  EXPECT_EQ(partText({"kernels that do almost nothing", 1, 1, 271}, 60.0),
            "measuring 271 runs in about 60.0 s, each at least 5 times "
            "whatever that takes\n"
            "measuring run 1 of 271: kernels that do almost nothing\n");
  EXPECT_EQ(partText({"products, f32", 2, 34, 271}, 60.0),
            "measuring runs 2 to 34 of 271: products, f32\n");
  EXPECT_EQ(lateText(65.0, 60.0), "");
  EXPECT_EQ(lateText(95.0, 60.0),
            "note: measuring took 95.0 s, not the 60.0 s of --seconds: every "
            "run is timed at least 5 times, beside two runs before\n");
}

TEST(Calibrate, RejectsWithMessages) {
  TestFolder folder("");
  const std::string there = folder / "there.json";
  std::vector<std::string> errors;
  ASSERT_TRUE(writeTextFile(there, "kept", errors));
  const auto refusal = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "calibrate");
    const mtplan::Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2);
    return ran.err;
  };
  EXPECT_THAT(refusal({}), HasSubstr("-o FILE is needed"));
  EXPECT_THAT(refusal({"-o", there}),
              HasSubstr("is there already; --replace writes over it"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--measurements", there}),
              HasSubstr("is there already"));
  EXPECT_EQ(contentOf(there), "kept");
  EXPECT_THAT(refusal({"-o", folder / "new", "--backend", "tpu"}),
              HasSubstr("--backend tpu: must be cpu or cuda"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--backend", "cuda"}),
              HasSubstr("needs --like DEVICE, whose peaks and tiles it has: "));
  EXPECT_THAT(refusal({"-o", folder / "new", "--ranks", "0"}),
              HasSubstr("--ranks 0: must be 1 to 1024"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--threads", "0"}),
              HasSubstr("--threads 0: must be 1 to 1024"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--seconds", "0"}),
              HasSubstr("--seconds 0: must be above 0"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--precisions", "fp32,bf15"}),
              HasSubstr("nearest is bf16"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--precisions", "bf16"}),
              HasSubstr("fp32 is missing"));
  EXPECT_THAT(refusal({"-o", folder / "new", "--like", "H101"}),
              HasSubstr("no preset has a device \"H101\""));
  EXPECT_THAT(refusal({"-o", folder / "none/new"}), HasSubstr("none"));
}

} // namespace
} // namespace mtplan::tools
