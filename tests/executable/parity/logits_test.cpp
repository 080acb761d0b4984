//===- logits_test.cpp - Imported weights give the original logits --------===//
//
// Imports files of tests/parity/files as `mtrun ckpt convert` does, and loads
// them into plans that mtplan compiles from the config.json beside them: for
// one rank, for two tensor ranks that shard the vocabulary, and for two stages.
// The logits must be those of Transformers. Mixed-up queries, keys and values,
// or another pairing of rotated features, would change them.
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>

#include <gtest/gtest.h>

#include "runtime/checkpoint/loader.h"
#include "runtime/exchange/import.h"
#include "runtime/plan/plan_json.h"
#include "runtime/safetensors/model_files.h"
#include "tests/executable/parity/logits.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"

namespace mtplan {
namespace {

// Errors relative to the largest logit: kBound is the limit, and wrong weights
// exceed kFar. Rounding to single precision alone gives less than 1e-6.
constexpr double kBound = 1e-5, kFar = 0.1;

const std::string kFiles =
    std::string(MTPLAN_SOURCE_DIR) + "/tests/parity/files/";

struct Layout {
  const char *name;
  std::vector<std::string> flags;
  int paddedVocabulary = 0; ///< size with padding; 0: as mtplan pads
  /// Counts the tokens of the vocabulary per rank; 0: any number.
  std::int64_t ofOneRank = 0;
};

const Layout kOneRank = {"one rank", {"--gpus", "1", "--micro-batch", "4"}};

std::vector<Layout> layouts() {
  return {
      kOneRank,
      {"tp 2", {"--gpus", "2", "--dp", "1", "--tp", "2", "--micro-batch", "4"}},
      // Rank 0 has tokens 0 to 7, rank 1 has five more and three of padding.
      {"tp 2, vocabulary cut in two",
       {"--gpus", "2", "--dp", "1", "--tp", "2", "--micro-batch", "2", "--pin",
        "wte=vocab", "--pin", "lm_head=vocab", "--pin", "loss.*=vocab", "--pin",
        "*.attn.core=head"},
       16,
       8},
      {"pp 2",
       {"--gpus", "2", "--dp", "1", "--tp", "1", "--pp", "2", "--micro-batch",
        "2"}}};
}

class ImportedLogits : public testing::TestWithParam<const char *> {
protected:
  std::string files() const { return kFiles + GetParam(); }

  /// Returns the expected logits. A folder without logits has the weights, and
  /// therefore the logits, of the folder that is named before its first '-'.
  LogitsGolden golden() const {
    std::string of = files();
    if (!std::filesystem::exists(of + "/logits.json"))
      of.resize(kFiles.size() + std::string(GetParam()).find('-'));
    return readLogitsGolden(of + "/logits.json");
  }

  runtime::Plan planFor(const Layout &layout) const {
    std::string config = contentOf(files() + "/config.json");
    if (layout.paddedVocabulary > 0)
      config.insert(config.find('{') + 1,
                    "\"padded_vocab_size\": " +
                        std::to_string(layout.paddedVocabulary) + ",");
    std::ofstream(folder / "model.json") << config;
    std::vector<std::string> arguments{
        folder / "model.json", "--hardware", "cpu", "--seq",        "8",
        "--global-batch",      "4",          "-o",  folder / "plan"};
    arguments.insert(arguments.end(), layout.flags.begin(), layout.flags.end());
    EXPECT_EQ(tools::Ran(tools::plain(arguments)).err, "");
    return runtime::readPlanFile(folder / "plan/plan.json");
  }

  static Logits made(const runtime::Plan &plan, const LogitsGolden &golden,
                     const std::string &checkpoint, MakeBackend makeBackend) {
    return logitsOf(
        plan, golden.samples, makeBackend,
        [&](runtime::World &world, runtime::RankExecutor &rank) {
          EXPECT_TRUE(runtime::loadNewest(
              plan, world, rank, checkpoint, runtime::LoadWhat::weights,
              [](const std::string &fault) { ADD_FAILURE() << fault; }));
        });
  }

  TestFolder folder;
};

std::unique_ptr<runtime::Backend> makeCpu() {
  return runtime::makeCpuBackend(1);
}

TEST_P(ImportedLogits, EqualTheOriginals) {
  const std::string model = files() + "/model.bin"; // in llm.c format
  runtime::importWeights(std::filesystem::exists(model) ? model : files(),
                         folder / "kept");
  const LogitsGolden expected = golden();
  for (const Layout &layout : layouts()) {
    SCOPED_TRACE(layout.name);
    const runtime::Plan plan = planFor(layout);
    for (auto *backend : {&runtime::makeReferenceBackend, &makeCpu}) {
      const Logits logits = made(plan, expected, folder / "kept", backend);
      EXPECT_LE(apart(logits, expected.logits), kBound)
          << (backend == &makeCpu ? "cpu" : "reference");
      if (layout.ofOneRank > 0) {
        EXPECT_EQ(logits.ofOneRank, layout.ofOneRank);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Files, ImportedLogits,
    testing::Values("gpt2", "gpt2-f16", "gpt2-sharded", "gpt2-published",
                    "gpt2-older", "gpt2-head", "gpt2-order", "gpt2-metadata",
                    "gpt2-bare", "gpt2-llmc", "gpt2-llmc-bf16", "gptj",
                    "gptj-older", "llama", "llama-bf16", "llama-sharded",
                    "llama-biased", "llama-deep", "llama-older", "mistral",
                    "qwen2", "qwen2-tied", "bert", "bert-published"),
    [](const auto &each) {
      std::string name = each.param;
      std::ranges::replace(name, '-', '_');
      return name;
    });

//===----------------------------------------------------------------------===//
// Files with permuted tensors
//===----------------------------------------------------------------------===//

using Order = std::vector<std::int64_t>;

/// Holds a file of float32 tensors and permutes their contents.
class OtherFile {
public:
  explicit OtherFile(const std::string &path)
      : bytes(contentOf(path)), header(runtime::ModelFile(path).header) {}

  /// Permutes every tensor whose name contains `part`, along its last dimension
  /// if `columns`, else along its first. Row or column i gets the contents of
  /// row or column order(extent)[i].
  void reorder(const std::string &part, bool columns,
               const std::function<Order(std::int64_t extent)> &order) {
    for (const runtime::SafeTensor &tensor : header.tensors) {
      if (tensor.name.find(part) == tensor.name.npos)
        continue;
      ++changed;
      const std::int64_t extent =
          columns ? tensor.shape.back() : tensor.shape.front();
      const Order from = order(extent);
      ASSERT_EQ(static_cast<std::int64_t>(from.size()), extent);
      const std::int64_t inner = columns ? 4 : tensor.bytes() / extent;
      std::string moved = of(tensor);
      for (std::int64_t at = 0; at < tensor.bytes(); at += extent * inner)
        for (std::int64_t i = 0; i < extent; ++i)
          bytes.replace(place(tensor) + size(at + i * inner), size(inner),
                        moved, size(at + from[size(i)] * inner), size(inner));
    }
  }

  /// Exchanges the contents of every tensor whose name contains `one` with
  /// those of the tensor that has `other` in its name instead.
  void exchange(const std::string &one, const std::string &other) {
    for (const runtime::SafeTensor &tensor : header.tensors) {
      const std::size_t at = tensor.name.find(one);
      if (at == tensor.name.npos)
        continue;
      ++changed;
      std::string name = tensor.name;
      const runtime::SafeTensor *second =
          header.find(name.replace(at, one.size(), other));
      ASSERT_TRUE(second && second->shape == tensor.shape) << name;
      const std::string kept = of(tensor);
      bytes.replace(place(tensor), kept.size(), of(*second));
      bytes.replace(place(*second), kept.size(), kept);
    }
  }

  void write(const std::string &path) const {
    EXPECT_GT(changed, 0);
    std::ofstream(path, std::ios::binary) << bytes;
  }

private:
  static std::size_t size(std::int64_t number) {
    return static_cast<std::size_t>(number);
  }
  std::size_t place(const runtime::SafeTensor &tensor) const {
    return size(header.dataStart + tensor.begin);
  }
  std::string of(const runtime::SafeTensor &tensor) const {
    return bytes.substr(place(tensor), size(tensor.bytes()));
  }

  std::string bytes;
  runtime::SafetensorsHeader header;
  int changed = 0; ///< number of changed tensors
};

/// Returns 0, 1, 2, ...
Order inPlace(std::int64_t extent) {
  Order order(static_cast<std::size_t>(extent));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// Names the tensors of attention in the files of a family.
struct Family {
  /// Parts of the tensors' names; "": all three are columns of one tensor.
  std::string query, key, value;
  std::int64_t head = 4; ///< features per head, of which four are rotated
  bool turns = true;
};

Family familyOf(const std::string &name) {
  if (name == "gpt2")
    return {"", "", "", 4, false};
  if (name == "bert")
    return {"self.query", "self.key", "self.value", 4, false};
  return {"q_proj", "k_proj", "v_proj", name == "gptj" ? 8 : 4};
}

class WrongOrder : public ImportedLogits {
protected:
  /// Returns the error of the logits of the changed file.
  double apartNow() {
    std::filesystem::create_directories(folder / "wrong");
    std::filesystem::copy(files() + "/config.json", folder / "wrong");
    file.write(folder / "wrong/model.safetensors");
    runtime::importWeights(folder / "wrong", folder / "kept");
    const LogitsGolden expected = golden();
    return apart(made(planFor(kOneRank), expected, folder / "kept", &makeCpu),
                 expected.logits);
  }

  OtherFile file{files() + "/model.safetensors"};
  const Family family = familyOf(GetParam());
};

TEST_P(WrongOrder, KeysInPlaceOfValuesChangeLogits) {
  if (family.query.empty())
    file.reorder("c_attn", true, [](std::int64_t extent) {
      Order order = inPlace(extent);
      std::rotate(order.begin() + extent / 3, order.begin() + extent / 3 * 2,
                  order.end());
      return order;
    });
  else
    file.exchange(family.key, family.value);
  EXPECT_GT(apartNow(), kFar);
}

// Reorders heads: a fused tensor is stored head by head, as in GPT-NeoX; in
// separate tensors, the queries are shifted by one head.
TEST_P(WrongOrder, OrderOfHeadsChangesLogits) {
  const std::int64_t head = family.head;
  if (family.query.empty())
    file.reorder("c_attn", true, [&](std::int64_t extent) {
      Order order;
      for (std::int64_t first = 0; first < extent / 3; first += head)
        for (std::int64_t part = 0; part < 3; ++part)
          for (std::int64_t i = 0; i < head; ++i)
            order.push_back(part * extent / 3 + first + i);
      return order;
    });
  else // separate tensors: shifts the queries by one head
    file.reorder(family.query, false, [&](std::int64_t extent) {
      Order order = inPlace(extent);
      std::rotate(order.begin(), order.begin() + head, order.end());
      return order;
    });
  EXPECT_GT(apartNow(), kFar);
}

// Four features are rotated. A pair is two neighbours, or one feature of each
// half; the two orders differ in the middle two features. Without rotation,
// attention does not depend on the order if queries and keys have the same
// order.
TEST_P(WrongOrder, OrderOfRotatedFeaturesChangesLogits) {
  const auto middle = [&](std::int64_t extent) {
    Order order = inPlace(extent);
    // Permutes all queries and keys, but not the values that follow them in the
    // same tensor.
    const std::int64_t end = family.query.empty() ? extent / 3 * 2 : extent;
    for (std::int64_t i = 0; i < end; i += family.head)
      std::swap(order[static_cast<std::size_t>(i + 1)],
                order[static_cast<std::size_t>(i + 2)]);
    return order;
  };
  if (family.query.empty()) {
    file.reorder("c_attn", true, middle);
  } else {
    file.reorder(family.query, false, middle);
    file.reorder(family.key, false, middle);
  }
  const double far = apartNow();
  EXPECT_TRUE(family.turns ? far > kFar : far <= kBound) << far;
}

INSTANTIATE_TEST_SUITE_P(Families, WrongOrder,
                         testing::Values("gpt2", "gptj", "llama", "mistral",
                                         "qwen2", "bert"),
                         [](const auto &each) {
                           return std::string(each.param);
                         });

} // namespace
} // namespace mtplan
