//===- parity.cpp - Compares a plan with the model on one rank ------------===//

#include "tests/executable/parity/parity.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "passes/schedule/stage_contents.h"
#include "passes/verify/prove.h"
#include "runtime/backend/element.h"
#include "runtime/backend/followed.h"
#include "tests/executable/run_plan.h"

namespace mtplan {

namespace {

using namespace runtime;
using passes::Drawn;

constexpr int kSteps = 5;
// Router logits that differ by less than kTie count as equal. After five steps
// in fp32, their rounding error is about 3e-7.
constexpr double kTie = 1e-6;

class ObservedGate : public Kernel {
public:
  ObservedGate(const KernelSpec &spec, MadeKernel theKernel, double &theMargin)
      : logits(spec.inputs.front()), topK(spec.integer("top_k", 1)),
        kernel(std::move(theKernel)), margin(theMargin) {}

  void run(const Invocation &call) override {
    const std::int64_t experts = logits.shape.back();
    std::vector<double> token(static_cast<std::size_t>(experts));
    for (std::int64_t first = 0; first < logits.elements(); first += experts) {
      for (std::int64_t e = 0; e < experts; ++e)
        token[static_cast<std::size_t>(e)] =
            readElement(logits.type, call.inputs[0], first + e);
      std::ranges::sort(token, std::greater());
      for (std::int64_t k = 1; k <= std::min(topK, experts - 1); ++k)
        margin = std::min(margin, token[static_cast<std::size_t>(k - 1)] -
                                      token[static_cast<std::size_t>(k)]);
    }
    kernel->run(call);
  }

private:
  const TensorView logits; ///< [batch, sequence, experts]
  const std::int64_t topK;
  MadeKernel kernel;
  double &margin;
};

/// Runs reference kernels and lowers `margin` to the smallest difference
/// between two router logits of one token whose order decides which experts the
/// token goes to. A difference below the rounding error of a precision is a tie
/// in that precision: rounding picks the expert, and runs in two precisions
/// diverge. The backend must run on one thread.
class RoutingObserver : public Backend {
public:
  explicit RoutingObserver(double &theMargin) : margin(theMargin) {}

  std::unique_ptr<Kernel> prepare(const KernelSpec &spec) override {
    if (isOfTwo(spec))
      return makeSequential(*this, spec);
    MadeKernel kernel = reference->prepare(spec);
    if (spec.kernel != "moe_gate")
      return kernel;
    return std::make_unique<ObservedGate>(spec, std::move(kernel), margin);
  }

private:
  std::unique_ptr<Backend> reference = makeReferenceBackend();
  double &margin;
};

std::unique_ptr<runtime::Backend> makeOneThread() {
  return runtime::makeCpuBackend(1);
}

// Returns the interpreter's counts of collectives, without the counts of
// operators that send nothing.
std::map<CollectiveCount, std::int64_t> census(const ir::RunResult &result) {
  std::map<CollectiveCount, std::int64_t> counts;
  for (const auto &[key, count] : result.collectives) {
    if (key.op == "slice" || key.op == "mask" || count == 0)
      continue;
    const char *phase = key.phase == ir::Phase::forward    ? "forward"
                        : key.phase == ir::Phase::backward ? "backward"
                                                           : "update";
    counts[{phase, key.op, key.axis}] = count;
  }
  return counts;
}

// Returns the counts of collectives per rank, as the interpreter counts them:
// it counts all ranks of a stage as one, while in a run every rank counts its
// own calls.
std::map<CollectiveCount, std::int64_t> ofOneRank(const Gathered &ran,
                                                  int ranksOfStage) {
  std::map<CollectiveCount, std::int64_t> counts;
  for (const auto &[key, count] : ran.collectives)
    counts[{key.phase, key.kind, key.group.substr(0, key.group.find(' '))}] +=
        count;
  for (auto &[key, count] : counts)
    count /= ranksOfStage;
  return counts;
}

template <typename Expected>
void expectWithin(const Gathered &ran, const Expected &expected, double bound,
                  const char *what, double least = 1e-3) {
  EXPECT_EQ(ran.faults, std::vector<std::string>()) << what;
  std::string worst;
  double difference = worstDifference(ran, expected, worst, least);
  EXPECT_LE(difference, bound) << what << ": " << worst;
}

} // namespace

void expectParity(const passes::Family &family, const Drawn &drawn) {
  passes::DrawnStep made(family, drawn);
  std::optional<passes::ProofPair> pair =
      passes::buildProofPair(*made.step.module, *made.planned);
  if (!pair) {
    ADD_FAILURE() << "the plan has no proof";
    return;
  }
  const planner::ScheduleKind schedule = drawn.config.schedule;
  mlir::OwningOpRef<mlir::ModuleOp> narrow(pair->partitioned->clone());
  mlir::MLIRContext *context = narrow->getContext();
  setElementType(*narrow, mlir::Float32Type::get(context));
  for (mlir::ModuleOp step : {*pair->partitioned, *pair->logical})
    setElementType(step, mlir::Float64Type::get(context));

  ir::RunOptions options;
  options.seed = drawn.seed;
  options.microBatches = drawn.microBatches;
  // A smaller epsilon would magnify rounding near zero.
  options.adam.epsilon = 1e-3;
  auto *plain = runtime::makeReferenceBackend;
  auto run = [&](const runtime::Plan &plan, const MakeBackend &backend,
                 double tolerance, int steps) {
    return runPlan(plan, options, backend, tolerance, steps);
  };

  const runtime::Plan model = alone(*pair->logical, drawn.microBatches);
  Gathered whole;
  double margin = 0.0;
  for (int seeds = 0; margin < kTie; ++seeds) {
    ASSERT_LT(seeds, 4) << "experts tie at every seed, within " << margin;
    options.seed = drawn.seed + static_cast<std::uint64_t>(seeds);
    margin = HUGE_VAL;
    whole = run(
        model, [&] { return std::make_unique<RoutingObserver>(margin); }, 0.0,
        kSteps);
  }

  auto expected = ir::interpret(*pair->logical, options);
  options.order =
      passes::tasksOf(*pair->partitioned, schedule, drawn.microBatches);
  auto partitioned = ir::interpret(*pair->partitioned, options);
  if (mlir::failed(expected) || mlir::failed(partitioned)) {
    ADD_FAILURE() << "a module cannot be interpreted";
    return;
  }

  runtime::Plan plan =
      compiled(*pair->partitioned, schedule, drawn.microBatches);
  Gathered once = run(plan, plain, 1e-12, 1);
  expectWithin(once, *expected, 1e-10, "fp64, one step");
  EXPECT_EQ(ofOneRank(once, plan.ranks / drawn.config.pp),
            census(*partitioned));
  expectWithin(run(plan, plain, 1e-12, kSteps), whole, 1e-10,
               "fp64, five steps");

  mlir::OwningOpRef<mlir::ModuleOp> narrowModel(pair->logical->clone());
  setElementType(*narrowModel, mlir::Float32Type::get(context));
  const runtime::Plan single = alone(*narrowModel, drawn.microBatches);
  const runtime::Plan fast = compiled(*narrow, schedule, drawn.microBatches);
  auto expectRounding = [&](const auto &exact, int steps, double tolerance,
                            double bound, const char *what) {
    std::string worst;
    constexpr double kLeast = 1e-2;
    double own = worstDifference(run(single, makeOneThread, 0.0, steps), exact,
                                 worst, kLeast);
    EXPECT_LE(own, 20.0 * bound) << what << ", one rank: " << worst;
    expectWithin(run(fast, makeOneThread, tolerance, steps), exact,
                 std::max(bound, 4.0 * own), what, kLeast);
  };
  expectRounding(*expected, 1, 1e-6, 1e-5, "fp32, one step");
  expectRounding(whole, kSteps, 1e-5, 1e-4, "fp32, five steps");
}

} // namespace mtplan
