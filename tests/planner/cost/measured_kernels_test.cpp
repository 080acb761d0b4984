//===- measured_kernels_test.cpp - Measured rates of kernels --------------===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "planner/cost/compute_cost.h"
#include "planner/cost/kernel_cost.h"
#include "planner/machine/machine_json.h"
#include "planner/machine/software_json.h"
#include "tests/planner/plain_times.h"

namespace mtplan::planner {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json quantity(json value) {
  return {{"value", std::move(value)}, {"source", "a test"}};
}

json fileWith(const json &kernels) {
  json file = json::parse(machineText("cpu"));
  file["device"]["kernels"] = kernels;
  return file;
}

json someKernels() {
  return {
      {"software", "mtplan"},
      {"attention",
       {{"fp32_forward", quantity(0.5)}, {"fp32_backward", quantity(0.75)}}},
      {"passes",
       {{"layer_norm",
         {{"fp32_GBps", quantity(20)}, {"bf16_GBps", quantity(5)}}},
        {"dropout", {{"fp32_GBps", quantity(4)}}}}}};
}

std::string errorOf(const json &file) {
  try {
    parseMachine(file.dump());
  } catch (const MachineError &error) {
    return error.what();
  }
  return "";
}

// Holds a memory-bound operator with one operand and one result, [1000][64] in
// elements of `width` bytes.
struct OnePass {
  explicit OnePass(const std::string &kind, int width = 4) {
    op.kind = kind;
    op.pass = kind == "layer_norm" ? PassKind::layerNorm
              : kind == "dropout"  ? PassKind::dropout
                                   : PassKind::activation;
    op.opClass = OpClass::memory;
    Factor rows, columns;
    rows.name = "b", rows.size = 1000;
    columns.name = "h", columns.size = 64;
    op.factors = {rows, columns};
    for (int tensor : {0, 1}) {
      Tensor one;
      one.shape = {1000, 64};
      one.elementBytes = width;
      tensors.push_back(one);
      Use use;
      use.tensor = tensor;
      use.factors = {0, 1};
      (tensor == 0 ? op.operands : op.results).push_back(use);
    }
  }
  double seconds(const Machine &machine, const Software &software,
                 Precision precision) const {
    return computeTime(op, Strategy{}, tensors, Mesh{}, machine, software,
                       precision)
        .value;
  }
  Op op;
  std::vector<Tensor> tensors;
};

TEST(MeasuredKernels, AreWrittenAndRead) {
  Machine machine = parseMachine(fileWith(someKernels()).dump());
  const MeasuredKernels &kernels = machine.device.kernels;
  EXPECT_EQ(kernels.software, "mtplan");
  EXPECT_EQ(kernels.attention[storedAs(Precision::fp32)].backward, 0.75);
  EXPECT_EQ(kernels.passes.at("layer_norm")[storedAs(Precision::bf16)].value,
            5e9);
  std::string text = formatMachine(machine, "a test");
  EXPECT_EQ(formatMachine(parseMachine(text), "a test"), text);
  EXPECT_THAT(text, HasSubstr("bf16_GBps"));
}

TEST(MeasuredKernels, MistakesAreReportedWithTheirPointer) {
  json kernels = someKernels();
  kernels["attention"].erase("fp32_backward");
  kernels["passes"]["layer_norm"]["fp32_GBps"] = quantity(-1);
  kernels["passes"]["dropout"]["fp64_GBps"] = quantity(1);
  kernels.erase("software");
  const std::string errors = errorOf(fileWith(kernels));
  EXPECT_THAT(errors, HasSubstr("/device/kernels/attention/fp32_backward: is "
                                "missing, but fp32_forward is given"));
  EXPECT_THAT(errors,
              HasSubstr("/device/kernels/passes/layer_norm/fp32_GBps/value"));
  EXPECT_THAT(errors, HasSubstr("/device/kernels/passes/dropout/fp64_GBps"));
  EXPECT_THAT(errors, HasSubstr("/device/kernels/software"));
  EXPECT_THAT(errorOf(fileWith({{"software", "x"}, {"passes", 3}})),
              HasSubstr("/device/kernels/passes: must be an object"));
}

TEST(MeasuredKernels, ApplyToTheirSoftwareAndPrecisionAlone) {
  const Machine plain = loadMachine("cpu");
  const Machine machine = parseMachine(fileWith(someKernels()).dump());
  const Software own = loadSoftware("mtplan"), other = loadSoftware("llm.c");
  const double launch = machine.device.launch.value;
  const OnePass norm("layer_norm");
  EXPECT_DOUBLE_EQ(norm.seconds(machine, own, Precision::fp32),
                   2 * 64000 * 4 / 20e9 + launch);
  EXPECT_DOUBLE_EQ(
      OnePass("layer_norm", 2).seconds(machine, own, Precision::bf16),
      2 * 64000 * 2 / 5e9 + launch);
  EXPECT_EQ(norm.seconds(machine, own, Precision::fp16),
            norm.seconds(plain, own, Precision::fp16));
  EXPECT_EQ(norm.seconds(machine, other, Precision::fp32),
            norm.seconds(plain, other, Precision::fp32));
  // The software's file gives dropout no bytes, but the measured rate applies.
  Software within = own;
  within.passes.dropout = {0, 0, 0, 0};
  const OnePass dropout("dropout");
  EXPECT_EQ(dropout.seconds(plain, within, Precision::fp32), 0.0);
  EXPECT_DOUBLE_EQ(dropout.seconds(machine, within, Precision::fp32),
                   2 * 64000 * 4 / 4e9 + launch);
}

// One kind of operator may have kernels of different speed.
TEST(MeasuredKernels, MayHaveVariants) {
  json kernels = someKernels();
  kernels["passes"]["activation"] = {{"fp32_GBps", quantity(16)},
                                     {"bf16_GBps", quantity(12)}};
  kernels["passes"]["activation.gelu"] = {{"fp32_GBps", quantity(8)}};
  const Machine machine = parseMachine(fileWith(kernels).dump());
  const Software own = loadSoftware("mtplan");
  const double launch = machine.device.launch.value;
  const auto rate = [&](const std::string &variant, Precision precision) {
    OnePass activation("activation", bytesOf(precision));
    activation.op.variant = variant;
    return 2 * 64000 * bytesOf(precision) /
           (activation.seconds(machine, own, precision) - launch);
  };
  EXPECT_NEAR(rate("gelu", Precision::fp32), 8e9, 1);
  EXPECT_NEAR(rate("relu", Precision::fp32), 16e9, 1);
  EXPECT_NEAR(rate("", Precision::fp32), 16e9, 1);
  // The variant is not measured in bf16, so the rate of its kind applies.
  EXPECT_NEAR(rate("gelu", Precision::bf16), 12e9, 1);
  // Machines without measurements of a variant price it like its kind.
  OnePass plain("activation"), erf("activation");
  erf.op.variant = "gelu";
  for (const char *name : {"cpu", "dgx-h100"})
    EXPECT_EQ(plain.seconds(loadMachine(name), own, Precision::bf16),
              erf.seconds(loadMachine(name), own, Precision::bf16));
}

TEST(MeasuredKernels, MayBeFusedWithTheirProducer) {
  json kernels = someKernels();
  kernels["joins"] = {{"bf16", {"dropout+add", "add", "activation.gelu_tanh"}}};
  const Machine machine = parseMachine(fileWith(kernels).dump());
  const auto isJoined = [&](const char *software, const std::string &name,
                            Precision precision) {
    return isFused(loadSoftware(software), machine.device, name, precision);
  };
  for (const std::string &name :
       {fusionName("", "add", ""), fusionName("", "activation", "gelu_tanh"),
        fusionName("dropout", "add", "")}) {
    EXPECT_TRUE(isJoined("mtplan", name, Precision::bf16)) << name;
    EXPECT_FALSE(isJoined("mtplan", name, Precision::fp32)) << name;
    EXPECT_FALSE(isJoined("llm.c", name, Precision::bf16)) << name;
  }
  for (const std::string &name : {fusionName("", "activation", "gelu"),
                                  fusionName("layer_norm_grad", "add", "")})
    EXPECT_FALSE(isJoined("mtplan", name, Precision::bf16)) << name;
  const std::string text = formatMachine(machine, "a test");
  EXPECT_EQ(formatMachine(parseMachine(text), "a test"), text);
  EXPECT_THAT(text, HasSubstr("activation.gelu_tanh"));

  kernels["joins"] = {{"bf16", {"add", 3}}, {"fp64", {"add"}}};
  const std::string errors = errorOf(fileWith(kernels));
  EXPECT_THAT(errors,
              HasSubstr("/device/kernels/joins/bf16/1: must be the name "
                        "of a kernel"));
  EXPECT_THAT(errors, HasSubstr("/device/kernels/joins/fp64"));
}

TEST(MeasuredKernels, AttentionWithDropoutMayHaveItsOwnShare) {
  json kernels = someKernels();
  kernels["attention.dropout"] = {{"fp32_forward", quantity(0.25)},
                                  {"fp32_backward", quantity(0.375)}};
  const Machine machine = parseMachine(fileWith(kernels).dump());
  const Device &device = machine.device;
  const Software own = loadSoftware("mtplan");
  EXPECT_EQ(attentionRateOf(own, device, Precision::fp32, true).forward, 0.25);
  EXPECT_EQ(attentionRateOf(own, device, Precision::fp32, true).backward,
            0.375);
  EXPECT_EQ(attentionRateOf(own, device, Precision::fp32).forward, 0.5);
  EXPECT_EQ(attentionRateOf(own, device, Precision::bf16, true).forward,
            device.attentionEfficiency);
  // Dropout without a measurement of its own has the rate of plain attention.
  const Machine without = parseMachine(fileWith(someKernels()).dump());
  EXPECT_EQ(
      attentionRateOf(own, without.device, Precision::fp32, true).backward,
      0.75);
  const std::string text = formatMachine(machine, "a test");
  EXPECT_EQ(formatMachine(parseMachine(text), "a test"), text);
  EXPECT_THAT(text, HasSubstr("attention.dropout"));

  kernels["attention.dropout"].erase("fp32_forward");
  EXPECT_THAT(errorOf(fileWith(kernels)),
              HasSubstr("/device/kernels/attention.dropout/fp32_forward: is "
                        "missing, but fp32_backward is given"));
}

TEST(MeasuredKernels, AttentionHasASharePerDirection) {
  const Machine machine = parseMachine(fileWith(someKernels()).dump());
  const Software own = loadSoftware("mtplan");
  const AttentionRate rate =
      attentionRateOf(own, machine.device, Precision::fp32);
  EXPECT_EQ(rate.forward, 0.5);
  EXPECT_EQ(rate.backward, 0.75);
  EXPECT_EQ(attentionRateOf(own, machine.device, Precision::bf16).forward,
            machine.device.attentionEfficiency);
  EXPECT_EQ(
      attentionRateOf(loadSoftware("llm.c"), machine.device, Precision::fp32)
          .forward,
      machine.device.attentionEfficiency);
}

TEST(MeasuredKernels, ProductsMayHaveAShareByPrecision) {
  json file = json::parse(machineText("cpu"));
  file["device"]["gemm_efficiency_bf16"] = quantity(0.5);
  const Machine machine = parseMachine(file.dump());
  const Device &device = machine.device;
  EXPECT_EQ(productRate(device, Precision::bf16).value,
            0.5 * device.bf16->value);
  EXPECT_EQ(productRate(device, Precision::fp32).value,
            device.gemmEfficiency * device.fp32->value);
  const std::string text = formatMachine(machine, "a test");
  EXPECT_EQ(formatMachine(parseMachine(text), "a test"), text);
  EXPECT_THAT(text, HasSubstr("gemm_efficiency_bf16"));
}

} // namespace
} // namespace mtplan::planner
