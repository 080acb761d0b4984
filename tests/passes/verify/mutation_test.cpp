//===- mutation_test.cpp - The proof notices broken collectives -----------===//
//
// Breaks each collective of some partitioned programs, in every way that
// applies, to show that the proof is not vacuous: the verifier must reject the
// mutant, or the comparison must fail.
//
//   drop       the collective is removed, its operand used instead
//   forget     a reduce_scatter slices but does not sum
//   lose       only the data of the first rank of the group arrive
//   repeat     the collective runs a second time, unused
//   twice      a second collective runs on the result
//   swap       two collectives of the same type exchange operands
//   re-group   the collective runs over the other mesh axis
//   shift      shards are cut or joined at an offset of one element
//
// `swap`, `shift` and `forget` leave out mutants that are equivalent by
// construction: an exchange of two shards of one value, and changes that reach
// only values without effect. These values are the keys' bias, which softmax
// cancels, and the maximum that the loss subtracts in the exponents.
//
//===----------------------------------------------------------------------===//

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include "ir/interpret/ranks.h"
#include "passes/verify/prove.h"
#include "tests/passes/verify/random_plan.h"

namespace mtplan::passes {
namespace {

using mlir::Operation;
using mlir::Value;

mlir::StringAttr axisOf(Operation *op) {
  return op->getAttrOfType<mlir::StringAttr>("axis");
}

std::vector<Operation *> collectivesOf(mlir::ModuleOp module) {
  std::vector<Operation *> found;
  module.walk([&](Operation *op) {
    if (axisOf(op))
      found.push_back(op);
  });
  return found;
}

// Returns the value from which a chain of collectives computes `value`.
Value rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!axisOf(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

// Returns whether `op` affects only the maximum that the loss subtracts, or the
// keys' bias.
bool hasNoEffect(Operation *op) {
  auto cause = op->getAttrOfType<mlir::StringAttr>("cause").getValue();
  if (cause == "loss.max" || cause.contains("attn.k.db") ||
      cause.contains("attn.k.bias"))
    return true;
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    if (axisOf(user))
      return hasNoEffect(user);
    auto compute = llvm::dyn_cast<ir::ComputeOp>(user);
    return compute && (llvm::isa<ir::VocabMaxOp>(user) ||
                       compute.getLabel().ends_with("attn.k.db"));
  });
}

bool isBefore(Value value, Operation *op) {
  Operation *definition = value.getDefiningOp();
  return !definition || definition->getBlock() != op->getBlock() ||
         definition->isBeforeInBlock(op);
}

//===----------------------------------------------------------------------===//
// Mutations of a collective, which return false if they do not apply
//===----------------------------------------------------------------------===//

bool drop(Operation *op) {
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

bool forget(Operation *op) {
  auto scatter = llvm::dyn_cast<ir::ReduceScatterOp>(op);
  if (!scatter || hasNoEffect(op))
    return false;
  mlir::OpBuilder builder(op);
  Value piece = builder.create<ir::SliceOp>(
      op->getLoc(), scatter.getType(), scatter.getInput(),
      scatter.getAxisAttr(), scatter.getDim(), scatter.getCauseAttr());
  op->getResult(0).replaceAllUsesWith(piece);
  op->erase();
  return true;
}

Value maskOver(mlir::OpBuilder &builder, Operation *op, Value value) {
  return builder.create<ir::MaskOp>(
      op->getLoc(), value.getType(), value, axisOf(op),
      op->getAttrOfType<mlir::StringAttr>("cause"));
}

bool lose(Operation *op) {
  mlir::OpBuilder builder(op);
  op->setOperand(0, maskOver(builder, op, op->getOperand(0)));
  return true;
}

bool repeat(Operation *op) {
  mlir::OpBuilder builder(op);
  builder.clone(*op);
  return true;
}

bool twice(Operation *op) {
  mlir::OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Value result = op->getResult(0);
  Operation *second;
  if (op->getOperand(0).getType() == result.getType())
    second = builder.clone(*op);
  else
    second = builder.create<ir::AllReduceOp>(
        op->getLoc(), result.getType(), result, axisOf(op), /*max=*/false,
        op->getAttrOfType<mlir::StringAttr>("cause"));
  second->setOperand(0, result);
  result.replaceAllUsesExcept(second->getResult(0), second);
  return true;
}

bool swap(Operation *op) {
  if (hasNoEffect(op))
    return false;
  for (Operation *other = op->getNextNode(); other;
       other = other->getNextNode()) {
    if (other->getName() != op->getName() ||
        other->getOperandTypes() != op->getOperandTypes())
      continue;
    Value mine = op->getOperand(0), yours = other->getOperand(0);
    if (rootOf(mine) == rootOf(yours) || !isBefore(yours, op))
      continue;
    op->setOperand(0, yours);
    other->setOperand(0, mine);
    return true;
  }
  return false;
}

bool regroup(Operation *op) {
  ir::MeshAttr mesh = ir::meshOf(op);
  for (mlir::StringAttr name : mesh.getNames())
    if (name != axisOf(op) && mesh.sizeOf(name.getValue()) > 1) {
      op->setAttr("axis", name);
      return true;
    }
  return false;
}

struct Mutation {
  const char *name;
  bool (*apply)(Operation *op);
};
constexpr Mutation kMutations[] = {{"drop", drop},       {"forget", forget},
                                   {"lose", lose},       {"repeat", repeat},
                                   {"twice", twice},     {"swap", swap},
                                   {"re-group", regroup}};

//===----------------------------------------------------------------------===//
// Shifts by one element, which no operator expresses
//===----------------------------------------------------------------------===//

// Returns `tensor` shifted by one along `dim`: element i is the former element
// i + 1. The last element is repeated, so that the sum changes, too.
ir::HostTensor readLate(const ir::HostTensor &tensor, std::size_t dim) {
  std::size_t inner = 1;
  for (std::size_t d = dim + 1; d < tensor.shape.size(); ++d)
    inner *= static_cast<std::size_t>(tensor.shape[d]);
  std::size_t run = static_cast<std::size_t>(tensor.shape[dim]) * inner;
  ir::HostTensor result(tensor.shape);
  for (std::size_t i = 0; i < tensor.data.size(); ++i)
    result.data[i] = tensor.data[i % run + inner < run ? i + inner : i];
  return result;
}

// Replaces `received` by the result of `op` on its input shifted by one
// element. For an all-gather, shifts the output instead.
void shiftByOne(Operation *op, const std::vector<ir::HostTensor> &passed,
                std::vector<ir::HostTensor> &received) {
  auto dim = op->getAttrOfType<mlir::IntegerAttr>("dim");
  if (!dim)
    dim = op->getAttrOfType<mlir::IntegerAttr>("split");
  std::vector<ir::HostTensor> tensors =
      llvm::isa<ir::AllGatherOp>(op) ? received : passed;
  for (ir::HostTensor &tensor : tensors)
    tensor = readLate(tensor, static_cast<std::size_t>(dim.getInt()));
  received =
      llvm::isa<ir::AllGatherOp>(op)
          ? tensors
          : *ir::runCollective(op, tensors, ir::MeshView(ir::meshOf(op)));
}

//===----------------------------------------------------------------------===//
// Every mutation of every collective
//===----------------------------------------------------------------------===//

struct Tally {
  int gates = 0, numbers = 0, census = 0, survivors = 0;
  int all() const { return gates + numbers + census + survivors; }
};

class MutationTest : public ::testing::TestWithParam<Family> {
protected:
  void judge(ProofPair &pair, const ProofOptions &options,
             const std::string &what, const std::string &text) {
    Tally &tally = tallies[what];
    mlir::ScopedDiagnosticHandler quiet(
        pair.partitioned->getContext(),
        [](mlir::Diagnostic &) { return mlir::success(); });
    mlir::PassManager gate(pair.partitioned->getContext());
    gate.addPass(createVerifyPartitionedPass());
    if (mlir::failed(gate.run(*pair.partitioned))) {
      ++tally.gates;
      return;
    }
    Proof proof = compare(pair, options);
    if (proof.holds) {
      ++tally.survivors;
      ADD_FAILURE() << what << " survived: " << text;
    } else if (proof.worstError > options.tolerance) {
      ++tally.numbers;
    } else {
      ++tally.census;
    }
  }

  void hunt(mlir::ModuleOp model, mlir::ModuleOp planned) {
    std::optional<ProofPair> pair = buildProofPair(model, planned);
    ASSERT_TRUE(pair);
    ASSERT_TRUE(compare(*pair).holds);
    mlir::OwningOpRef<mlir::ModuleOp> sound(pair->partitioned->clone());
    std::size_t count = collectivesOf(*sound).size();
    for (std::size_t i = 0; i < count; ++i) {
      for (const Mutation &mutation : kMutations) {
        pair->partitioned = sound->clone();
        Operation *op = collectivesOf(*pair->partitioned)[i];
        std::string text = textOf(op);
        if (mutation.apply(op))
          judge(*pair, {}, mutation.name, text);
      }
      pair->partitioned = sound->clone();
      shift(*pair, collectivesOf(*pair->partitioned)[i]);
    }
  }

  void shift(ProofPair &pair, Operation *op) {
    if (!llvm::isa<ir::SliceOp, ir::ReduceScatterOp, ir::AllGatherOp,
                   ir::AllToAllOp>(op) ||
        hasNoEffect(op))
      return;
    ProofOptions options;
    options.afterCollective = [&](Operation *ran, const auto &passed,
                                  std::vector<ir::HostTensor> &received) {
      if (ran == op)
        shiftByOne(op, passed, received);
    };
    judge(pair, options, "shift", textOf(op));
  }

  static std::string textOf(Operation *op) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    op->print(stream);
    return text;
  }

  // Returns one mesh per family, because all meshes take minutes;
  // MTPLAN_TEST_ALL selects all of them.
  static std::vector<std::pair<int, int>> meshes() {
    if (std::getenv("MTPLAN_TEST_ALL"))
      return {{2, 2}, {1, 4}, {2, 4}};
    if (GetParam().example == "tiny-bert")
      return {{1, 4}};
    return {{2, 2}};
  }

  std::map<std::string, Tally> tallies;
};

TEST_P(MutationTest, EveryMutantIsCaught) {
  for (auto [dp, tp] : meshes()) {
    Step step(GetParam(), dp, tp);
    ASSERT_TRUE(step.module);
    RandomPlanner planner(step.graph, step.mesh, /*splitRuns=*/true);
    SCOPED_TRACE(std::to_string(dp) + "x" + std::to_string(tp));
    hunt(*step.module, *step.planned(planner.plan(/*seed=*/7)));
  }
  int all = 0;
  for (const auto &[name, tally] : tallies) {
    std::cout << GetParam().example << ' ' << name << ": " << tally.all()
              << " mutants, caught by gates " << tally.gates << ", by numbers "
              << tally.numbers << ", by the census " << tally.census
              << ", survived " << tally.survivors << '\n';
    all += tally.all();
  }
  // A mesh with one axis has no other for `re-group`.
  bool hasOtherAxis = meshes().front().first > 1;
  EXPECT_EQ(tallies.size(), std::size(kMutations) + (hasOtherAxis ? 1 : 0));
  EXPECT_GT(all, 1000);
}

std::vector<Family> mutated() {
  std::vector<Family> some;
  for (Family &family : families())
    if (family.example == "tiny-gpt2" || family.example == "tiny-bert" ||
        family.example == "tiny-llama" || family.example == "tiny-mixtral")
      some.push_back(std::move(family));
  return some;
}

INSTANTIATE_TEST_SUITE_P(Families, MutationTest,
                         ::testing::ValuesIn(mutated()));

} // namespace
} // namespace mtplan::passes
