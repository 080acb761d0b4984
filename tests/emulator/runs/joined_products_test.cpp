//===- joined_products_test.cpp - Products that are one, on a GPU ---------===//
//
// Plans on the CUDA backend over the emulator, whose cuBLASLt gives of several
// matrices the bits of each alone.
//
//===----------------------------------------------------------------------===//

#include <atomic>
#include <fstream>

#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "runtime/plan/plan_json.h"
#include "tests/emulator/streams.h"
#include "tests/executable/run_plan.h"
#include "tests/executable/run_process.h"

namespace mtplan {
namespace {

using namespace runtime;
using emulator::Pace;

std::atomic<int> joined{0};
bool mayJoin = true; // set between runs

/// A GPU's, but for who decides what is joined.
class Watched : public Backend {
public:
  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    return own->prepare(spec);
  }
  std::unique_ptr<Kernel>
  prepareTogether(const std::vector<FixedRun> &runs) override {
    return own->prepareTogether(runs);
  }
  std::unique_ptr<Kernel> prepareEven(const KernelSpec &spec,
                                      const EvenRuns &runs) override {
    if (!mayJoin)
      return nullptr;
    std::unique_ptr<Kernel> all = own->prepareEven(spec, runs);
    joined += all ? static_cast<int>(runs.count) : 0;
    return all;
  }
  Memory &memory() override { return own->memory(); }
  Backend *host() override { return own->host(); }
  Queue &queue() override { return own->queue(); }
  std::unique_ptr<World> carrier(World &host) override {
    return own->carrier(host);
  }

private:
  const std::unique_ptr<Backend> own = makeCudaBackend();
};

std::unique_ptr<Backend> makeWatched() { return std::make_unique<Watched>(); }

/// Products joined of a model of these members, which trains to the same bits
/// with and without. The first step is queued, the second recorded, the third
/// replayed.
int joinedOf(const std::string &members, Pace pace) {
  TestFolder folder;
  const std::string model = folder / "model.json";
  std::ofstream(model) << "{" << members << "}";
  EXPECT_EQ(compileExample(model, folder / "run",
                           {"--gpus", "1", "--precision", "bf16"}),
            "");
  const Plan plan = readPlanFile(folder / "run/plan.json");
  const ir::RunOptions options;
  mayJoin = false;
  const Gathered expected = runPlan(plan, options, makeWatched, 0.0, 3);
  mayJoin = true;
  joined = 0;
  emulator::setPace(pace);
  const Gathered ran = runPlan(plan, options, makeWatched, 0.0, 3);
  emulator::setPace(Pace::first);
  std::string worst;
  EXPECT_EQ(worstDifference(ran, expected, worst), 0.0) << worst;
  EXPECT_EQ(ran.gradientNorm, expected.gradientNorm);
  return joined;
}

// Queries, keys and values, and the gradients of their weights and biases.
TEST(JoinedProducts, OfGpt2GiveTheSameBits) {
  EXPECT_EQ(joinedOf(R"("model_type": "gpt2", "n_layer": 2, "n_embd": 16,
                        "n_head": 2, "n_positions": 8, "vocab_size": 64)",
                     Pace::last),
            6);
}

// Keys and values are narrower: gradients of theirs, and both of a gated MLP.
TEST(JoinedProducts, OfLlamaGiveTheSameBits) {
  EXPECT_EQ(joinedOf(R"("model_type": "llama", "num_hidden_layers": 2,
                  "hidden_size": 16, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "intermediate_size": 32,
                  "max_position_embeddings": 8, "vocab_size": 64,
                  "hidden_act": "silu", "rms_norm_eps": 1e-05,
                  "rope_theta": 10000.0, "tie_word_embeddings": false)",
                     Pace::asked),
            6);
}

} // namespace
} // namespace mtplan
