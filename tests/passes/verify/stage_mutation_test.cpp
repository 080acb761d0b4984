//===- stage_mutation_test.cpp - The proof notices broken messages --------===//
//
// Breaks the sends, receives and sums between the stages of some programs, one
// at a time, in each way that applies. The run itself must notice every fault:
// it fails, numbers differ, or an operator runs another number of times. The
// verifier, which checks a program before it runs, is counted separately.
//
//   drop       a send is left out
//   twice      a message is sent twice
//   late       a send and the previous one are exchanged
//   astray     a message is sent to, or expected from, a wrong stage
//   unsummed   one stage does not use the all-reduced gradient of a tied weight
//   unmatched  one stage does not take part in the all-reduce
//   unshared   no stage all-reduces the gradient
//   summed on  every stage all-reduces the gradient twice
//   all        one stage all-reduces over all stages, not only the gradient's
//   kept       one stage does not update its tied weight
//   swap       two ranks receive each other's tensors
//   shift      received tensors are shifted by one element
//   stale      a rank receives its previous tensor again
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <iostream>
#include <map>

#include "passes/schedule/stages.h"
#include "passes/verify/prove.h"
#include "planner/search/search.h"
#include "tests/passes/verify/random_plan.h"

namespace mtplan::passes {
namespace {

using mlir::Operation;
using planner::ScheduleKind;

struct Case {
  const char *example;
  int pp;
  std::vector<int> layers; ///< layers of each virtual stage
};
void PrintTo(const Case &c, std::ostream *out) {
  *out << c.example << " pp " << c.pp << " of " << c.layers.size();
}

//===----------------------------------------------------------------------===//
// Mutations of an operator, which return false where they do not apply
//===----------------------------------------------------------------------===//

bool drop(Operation *op) {
  if (!llvm::isa<ir::SendOp>(op))
    return false;
  op->erase();
  return true;
}

bool twice(Operation *op) {
  if (llvm::isa<ir::SendOp>(op))
    mlir::OpBuilder(op).clone(*op);
  return llvm::isa<ir::SendOp>(op);
}

bool late(Operation *op) {
  if (!llvm::isa<ir::SendOp>(op) ||
      !llvm::isa_and_nonnull<ir::SendOp>(op->getPrevNode()))
    return false;
  op->moveBefore(op->getPrevNode());
  return true;
}

bool astray(Operation *op) {
  const char *name = llvm::isa<ir::SendOp>(op) ? "to" : "from";
  auto peer = op->getAttrOfType<mlir::IntegerAttr>(name);
  auto segment = op->getParentOfType<ir::SegmentOp>();
  std::int64_t stages = stagesOf(op->getParentOfType<mlir::ModuleOp>());
  if (!peer || stages < 3)
    return false;
  std::int64_t third = 3 - peer.getInt() - *segment.getStage();
  op->setAttr(name, mlir::IntegerAttr::get(peer.getType(), third));
  return true;
}

bool unsummed(Operation *op) {
  if (!sumsOverStages(op))
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  return true;
}

bool unmatched(Operation *op) {
  if (!unsummed(op))
    return false;
  op->erase();
  return true;
}

// Returns the all-reduces of all stages that have the cause of `op`.
std::vector<Operation *> allOf(Operation *op) {
  std::vector<Operation *> found;
  op->getParentOfType<mlir::ModuleOp>().walk([&](ir::AllReduceOp sum) {
    if (sumsOverStages(sum) && sum->getAttr("cause") == op->getAttr("cause"))
      found.push_back(sum);
  });
  return found;
}

bool unshared(Operation *op) {
  if (!sumsOverStages(op))
    return false;
  for (Operation *sum : allOf(op))
    unmatched(sum);
  return true;
}

bool summedOn(Operation *op) {
  if (!sumsOverStages(op))
    return false;
  for (Operation *sum : allOf(op)) {
    mlir::OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(sum);
    Operation *again = builder.clone(*sum);
    sum->getResult(0).replaceAllUsesWith(again->getResult(0));
    again->setOperand(0, sum->getResult(0));
  }
  return true;
}

bool all(Operation *op) {
  auto sum = llvm::dyn_cast<ir::AllReduceOp>(op);
  if (!sum || static_cast<std::int64_t>(sum.getAmong()->size()) ==
                  stagesOf(op->getParentOfType<mlir::ModuleOp>()))
    return false;
  sum->removeAttr("among");
  return true;
}

// Drops the update of a tied parameter on one of its stages.
bool kept(Operation *op) {
  if (!sumsOverStages(op))
    return false;
  for (Operation *user : op->getUsers())
    if (llvm::isa<ir::AdamwOp>(user) && user->getNumResults() == 0) {
      user->erase();
      return true;
    }
  return false;
}

struct Mutation {
  const char *name;
  bool (*apply)(Operation *op);
};
constexpr Mutation kMutations[] = {
    {"drop", drop},         {"twice", twice},        {"late", late},
    {"astray", astray},     {"unsummed", unsummed},  {"unmatched", unmatched},
    {"unshared", unshared}, {"summed on", summedOn}, {"all", all},
    {"kept", kept}};

//===----------------------------------------------------------------------===//
// Received tensors that are wrong or stale
//===----------------------------------------------------------------------===//

using Pieces = std::vector<ir::HostTensor>;

Pieces swapped(Pieces pieces) {
  for (std::size_t rank = 0; rank + 1 < pieces.size(); rank += 2)
    std::swap(pieces[rank], pieces[rank + 1]);
  return pieces;
}

Pieces shifted(Pieces pieces) {
  for (ir::HostTensor &piece : pieces)
    std::rotate(piece.data.begin(), piece.data.begin() + 1, piece.data.end());
  return pieces;
}

bool differ(const Pieces &one, const Pieces &other) {
  for (auto [a, b] : llvm::zip_equal(one, other))
    if (a.data != b.data)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Every mutation of every target
//===----------------------------------------------------------------------===//

struct Tally {
  int mutants = 0, gate = 0, refused = 0, numbers = 0, census = 0;
};

class StageMutation : public ::testing::TestWithParam<Case> {
protected:
  void judge(const std::string &what, const std::string &text,
             const ProofOptions &options) {
    Tally &tally = tallies[what];
    ++tally.mutants;
    mlir::ScopedDiagnosticHandler quiet(
        pair->partitioned->getContext(),
        [](mlir::Diagnostic &) { return mlir::success(); });
    mlir::PassManager gate(pair->partitioned->getContext());
    gate.addPass(createVerifyStagesPass());
    tally.gate += mlir::failed(gate.run(*pair->partitioned));
    Proof proof = compare(*pair, options);
    if (proof.holds)
      ADD_FAILURE() << what << " survived: " << text;
    else if (proof.tensors == 0)
      ++tally.refused;
    else if (proof.worstError > options.tolerance)
      ++tally.numbers;
    else
      ++tally.census;
  }

  static std::vector<Operation *> targetsOf(mlir::ModuleOp module) {
    std::vector<Operation *> found;
    module.walk([&](Operation *op) {
      if (llvm::isa<ir::SendOp, ir::ReceiveOp>(op) || sumsOverStages(op))
        found.push_back(op);
    });
    return found;
  }

  static std::string textOf(Operation *op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    op->print(stream);
    return text;
  }

  // Changes the tensors that `op` receives. A change without effect, such as a
  // swap of equal tensors, is no fault.
  void divert(Operation *op, const char *name, Pieces (*change)(Pieces)) {
    bool changed = false;
    ProofOptions options = sound;
    options.afterCollective = [&](Operation *ran, const Pieces &passed,
                                  Pieces &received) {
      if (ran != op)
        return;
      received = change(passed);
      changed |= differ(received, passed);
    };
    (void)compare(*pair, options);
    if (changed)
      judge(name, textOf(op), options);
  }

  void delay(Operation *op) {
    Pieces before;
    ProofOptions options = sound;
    options.afterCollective = [&](Operation *ran, const Pieces &passed,
                                  Pieces &received) {
      if (ran != op)
        return;
      if (!before.empty())
        received = before;
      before = passed;
    };
    judge("stale", textOf(op), options);
  }

  void hunt() {
    mlir::OwningOpRef<mlir::ModuleOp> whole(pair->partitioned->clone());
    std::size_t count = targetsOf(*whole).size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const Mutation &mutation : kMutations) {
        pair->partitioned = whole->clone();
        Operation *op = targetsOf(*pair->partitioned)[i];
        std::string text = textOf(op);
        if (mutation.apply(op))
          judge(mutation.name, text, sound);
      }
      pair->partitioned = whole->clone();
      Operation *op = targetsOf(*pair->partitioned)[i];
      if (!llvm::isa<ir::ReceiveOp>(op))
        continue;
      divert(op, "swap", swapped);
      divert(op, "shift", shifted);
      delay(op);
    }
  }

  std::optional<Step> step; // has the MLIR context of `pair`
  std::optional<ProofPair> pair;
  ProofOptions sound;
  std::map<std::string, Tally> tallies;
};

TEST_P(StageMutation, EveryMutantIsCaught) {
  const Case &c = GetParam();
  Family family;
  for (const Family &one : families())
    if (one.example == c.example)
      family = one;
  family.layers = 4;
  planner::Parallelism config;
  config.dp = config.tp = 2;
  config.pp = c.pp;
  config.layers = c.layers;
  config.virtualStages = static_cast<int>(c.layers.size()) / c.pp;
  planner::SearchOptions options;
  options.precision = planner::Precision::fp16;
  options.tensorSplits = {planner::Split::batch, planner::Split::column,
                          planner::Split::row, planner::Split::head,
                          planner::Split::vocab};
  planner::Machine machine = planner::loadMachine("dgx-1");
  planner::Setting setting = planner::settingOf(options, machine, config);
  setting.microBatches = 2;
  step.emplace(family, setting.mesh, /*samples=*/8);
  ASSERT_TRUE(step->module);
  std::vector<planner::PipelinePart> parts =
      planner::pipelineParts(step->graph, config.layers);
  RandomPlanner planner(step->graph, setting, parts);
  mlir::OwningOpRef<mlir::ModuleOp> planned =
      step->planned(planner.plan(/*seed=*/5));
  placeOnStages(*planned, parts, config.pp);
  sound.schedule = config.virtualStages > 1
                       ? ScheduleKind::interleaved
                       : ScheduleKind::oneForwardOneBackward;
  pair = buildProofPair(*step->module, *planned);
  ASSERT_TRUE(pair);
  ASSERT_TRUE(compare(*pair, sound).holds);
  hunt();

  int mutants = 0;
  for (const auto &[name, tally] : tallies) {
    std::cout << ::testing::PrintToString(c) << ' ' << name << ": "
              << tally.mutants << " mutants, caught by the gate " << tally.gate
              << "; run, refused " << tally.refused << ", by numbers "
              << tally.numbers << ", by the census " << tally.census << '\n';
    mutants += tally.mutants;
  }
  for (const char *name : {"drop", "twice", "swap", "shift", "stale"})
    EXPECT_GT(tallies[name].mutants, 0) << name;
  EXPECT_EQ(tallies["drop"].gate, tallies["drop"].mutants);
  if (std::string(c.example) == "tiny-gpt2") {
    for (const char *name : {"unmatched", "unshared", "kept"})
      EXPECT_EQ(tallies[name].gate, tallies[name].mutants) << name;
    EXPECT_GT(tallies["unshared"].numbers, 0);
  }
  EXPECT_GT(mutants, 20);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, StageMutation,
                         ::testing::Values(Case{"tiny-gpt2", 3, {1, 2, 1}},
                                           Case{"tiny-gpt2", 2, {1, 1, 1, 1}},
                                           Case{"tiny-t5", 3, {3, 3, 2}},
                                           Case{"tiny-mixtral", 3, {2, 1, 1}}));

} // namespace
} // namespace mtplan::passes
