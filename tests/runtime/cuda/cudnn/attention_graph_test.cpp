//===- attention_graph_test.cpp - Attention graphs that cuDNN supports ----===//

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cudnn/attention_graph.h"

namespace mtplan::runtime::cuda {
namespace {

namespace fe = cudnn_frontend;

struct Model {
  const char *name;
  AttentionShape shape;
};

void PrintTo(const Model &model, std::ostream *to) { *to << model.name; }

constexpr ElementType kBf16 = ElementType::bf16;

/// The numbers of a model are batch, queries, heads, keys, keyRows, keyHeads,
/// width, causal, scale and type.
const std::vector<Model> &models() {
  static const std::vector<Model> kModels = {
      {"gpt2_1_2b", {8, 1024, 24, 1024, 1024, 24, 64, true, 0.125, kBf16}},
      {"gpt2_of_tp_8", {4, 1024, 3, 1024, 1024, 3, 64, true, 0.125, kBf16}},
      {"bert_large", {8, 512, 16, 512, 512, 16, 64, false, 0.125, kBf16}},
      {"llama_3_8b", {1, 4096, 32, 4096, 4096, 8, 128, true, 0.0884, kBf16}},
      {"llama_1b", {8, 2048, 32, 2048, 2048, 8, 64, true, 0.125, kBf16}},
      {"multi_query", {2, 1024, 16, 1024, 1024, 1, 128, true, 0.0884, kBf16}},
      {"phi_width_80", {2, 512, 32, 512, 512, 32, 80, true, 0.1118, kBf16}},
      {"fp16", {2, 256, 12, 256, 256, 12, 64, true, 0.125, ElementType::f16}},
      // A rank has the first, middle or last queries of a sequence.
      {"first_queries", {2, 256, 8, 256, 1024, 8, 64, true, 0.125, kBf16}},
      {"later_queries", {2, 256, 8, 768, 1024, 8, 64, true, 0.125, kBf16}},
      {"last_queries", {2, 256, 8, 1024, 1024, 8, 64, true, 0.125, kBf16}},
      {"cross", {2, 100, 8, 37, 37, 8, 64, false, 0.125, kBf16}},
      {"odd_length", {3, 77, 12, 77, 77, 12, 64, true, 0.125, kBf16}},
  };
  return kModels;
}

/// Returns the properties of a device as cuDNN serialises them. Members that do
/// not depend on the arguments have plausible values.
std::shared_ptr<fe::DeviceProperties> described(int capability, int processors,
                                                int sharedMemory) {
  std::string text = R"({"deviceName": "", "cudaDeviceId": 0,
    "driverVer": 13000, "totalGlobalMem": 85017493504,
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152, "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048, "pciDeviceId": 0, "isTccDriver": 0,
    "supportCoopLaunch": 1, "smClockRateKHz": 1410000,
    "memClockRateKHz": 1593000, "l2CacheSize": 41943040)";
  text +=
      ", \"deviceVer\": " + std::to_string(capability * 10) +
      ", \"multiProcessorCount\": " + std::to_string(processors) +
      ", \"maxSharedMemoryPerBlockOptin\": " + std::to_string(sharedMemory) +
      "}";
  auto properties = std::make_shared<fe::DeviceProperties>();
  const fe::error_t said = properties->deserialize(
      std::vector<std::uint8_t>(text.begin(), text.end()));
  EXPECT_TRUE(said.is_good()) << said.err_msg;
  return properties;
}

struct Chip {
  const char *name;
  int capability, processors, sharedMemory;
};

constexpr Chip kA100{"A100", 80, 108, 166912}, kA10{"A10", 86, 72, 101376},
    kL40{"L40", 89, 142, 101376}, kH100{"H100", 90, 132, 232448};

void PrintTo(const Chip &chip, std::ostream *to) { *to << chip.name; }

Taken takenBy(const Chip &chip, const AttentionShape &shape,
              void (*add)(const AttentionShape &, Graph &)) {
  Graph graph;
  graph
      .set_device_properties(
          described(chip.capability, chip.processors, chip.sharedMemory))
      .set_sm_version(chip.capability);
  add(shape, graph);
  return offer(graph, nullptr);
}

class Attention : public ::testing::TestWithParam<std::tuple<Chip, Model>> {};

/// Returns the bytes of scores that cuDNN stores to sum gradients in a fixed
/// order.
std::int64_t storedBy(const AttentionShape &shape) {
  return 2 * shape.batch * shape.heads * shape.queries * shape.keys;
}

TEST_P(Attention, IsSupportedUnlessItStoresTooMuch) {
  const auto &[chip, model] = GetParam();
  const Taken forward = takenBy(chip, model.shape, addAttention);
  EXPECT_TRUE(forward.taken) << forward.why;
  const Taken backward = takenBy(chip, model.shape, addAttentionGrad);
  EXPECT_EQ(backward.taken, storedBy(model.shape) < kMostScratch)
      << backward.why;
}

INSTANTIATE_TEST_SUITE_P(OfModels, Attention,
                         ::testing::Combine(::testing::Values(kA100, kA10, kL40,
                                                              kH100),
                                            ::testing::ValuesIn(models())),
                         [](const auto &of) {
                           return std::string(std::get<0>(of.param).name) +
                                  "_" + std::get<1>(of.param).name;
                         });

// 8 samples of 2048 positions store 2 GiB of scores. 4 samples store 1 GiB,
// which is the limit, so their other scratch memory exceeds the limit.
TEST(AttentionGraph, SplitsBatchesThatAreTooLarge) {
  const AttentionShape llama = models()[4].shape;
  const auto takes = [](const AttentionShape &shape) {
    return takenBy(kH100, shape, addAttentionGrad).taken;
  };
  ASSERT_FALSE(takes(llama));
  const std::optional<AttentionShape> some = mostSamples(llama, takes);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->batch, 2);
  AttentionShape same = llama;
  same.batch = 2;
  EXPECT_EQ(*some, same);
}

TEST(AttentionGraph, TensorsHaveTheLayoutOfOtherKernels) {
  Graph graph;
  addAttentionGrad({3, 16, 4, 48, 64, 2, 8, true, 1.0, kBf16}, graph);
  const auto of = [&](AttentionTensor name) {
    fe::graph::Tensor_attributes tensor;
    EXPECT_TRUE(graph
                    .query_tensor_attributes_of_uid(
                        static_cast<std::int64_t>(name), tensor)
                    .is_good());
    return std::pair(tensor.get_dim(), tensor.get_stride());
  };
  using Numbers = std::vector<std::int64_t>;
  const std::pair query(Numbers{3, 4, 16, 8}, Numbers{512, 8, 32, 1});
  const std::pair key(Numbers{3, 2, 48, 8}, Numbers{1024, 8, 16, 1});
  for (auto name : {AttentionTensor::query, AttentionTensor::result,
                    AttentionTensor::above, AttentionTensor::queryGrad})
    EXPECT_EQ(of(name), query);
  for (auto name : {AttentionTensor::key, AttentionTensor::value,
                    AttentionTensor::keyGrad, AttentionTensor::valueGrad})
    EXPECT_EQ(of(name), key);
  EXPECT_EQ(of(AttentionTensor::sums),
            std::pair(Numbers({3, 4, 16, 1}), Numbers({64, 16, 1, 1})));
}

TEST(AttentionGraph, UnsupportedGraphsHaveAReason) {
  AttentionShape odd = models()[0].shape;
  odd.width = 12;
  const Taken said = takenBy(kH100, odd, addAttention);
  EXPECT_FALSE(said.taken);
  EXPECT_THAT(said.why, ::testing::HasSubstr("multiple of 8"));
  AttentionShape tall = models()[0].shape;
  tall.queries = tall.keys = tall.keyRows = 4096;
  const Taken much = takenBy(kH100, tall, addAttentionGrad);
  EXPECT_FALSE(much.taken);
  EXPECT_THAT(much.why, ::testing::HasSubstr("workspace violation"));
  AttentionShape wide = models()[0].shape;
  wide.width = 256;
  EXPECT_FALSE(takenBy(kA100, wide, addAttentionGrad).taken);
  EXPECT_TRUE(takenBy(kH100, wide, addAttentionGrad).taken);
}

} // namespace
} // namespace mtplan::runtime::cuda
