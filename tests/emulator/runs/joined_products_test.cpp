//===- joined_products_test.cpp - Plans with batched products -------------===//
//
// Runs plans with batched products on the CUDA backend over the emulator, whose
// cuBLASLt computes the same bits for a product in a batch and alone.
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
using emulator::StreamOrder;

std::atomic<int> joined{0};
bool mayJoin = true; // whether Watched batches products

/// Counts the batched products of a CUDA backend, or refuses them.
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

/// Returns the number of batched products of a model with these JSON members,
/// and expects the same bits without batching. The first step is queued, the
/// second recorded, the third replayed.
int joinedOf(const std::string &members, StreamOrder pace) {
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
  emulator::setStreamOrder(pace);
  const Gathered ran = runPlan(plan, options, makeWatched, 0.0, 3);
  emulator::setStreamOrder(StreamOrder::first);
  std::string worst;
  EXPECT_EQ(worstDifference(ran, expected, worst), 0.0) << worst;
  EXPECT_EQ(ran.gradientNorm, expected.gradientNorm);
  return joined;
}

// Batches are the query, key and value projections and their weight and bias
// gradients.
TEST(JoinedProducts, OfGpt2GiveTheSameBits) {
  EXPECT_EQ(joinedOf(R"("model_type": "gpt2", "n_layer": 2, "n_embd": 16,
                        "n_head": 2, "n_positions": 8, "vocab_size": 64)",
                     StreamOrder::last),
            6);
}

// Batches are the key and value projections, which are narrower than the
// query's, and the two projections of a gated MLP.
TEST(JoinedProducts, OfLlamaGiveTheSameBits) {
  EXPECT_EQ(joinedOf(R"("model_type": "llama", "num_hidden_layers": 2,
                  "hidden_size": 16, "num_attention_heads": 4,
                  "num_key_value_heads": 2, "intermediate_size": 32,
                  "max_position_embeddings": 8, "vocab_size": 64,
                  "hidden_act": "silu", "rms_norm_eps": 1e-05,
                  "rope_theta": 10000.0, "tie_word_embeddings": false)",
                     StreamOrder::asked),
            6);
}

} // namespace
} // namespace mtplan
