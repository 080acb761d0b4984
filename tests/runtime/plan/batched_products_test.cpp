//===- batched_products_test.cpp - Batches of products are checked --------===//

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/program_runs.h"
#include "tests/runtime/plan/two_replicas.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre, testing::IsEmpty;
using Numbers = std::vector<std::int64_t>;
using Found = std::vector<std::string>;

constexpr std::int64_t kUnit = 256; ///< bytes of a tensor

const std::string kHere = "/stages/0/programs/0/batches/0: ";
const std::string kNotShared =
    kHere + "does not share exactly one of its first two operands";

std::string uneven(int instruction, int copy = 0) {
  return kHere + "has uneven distances before instruction " +
         std::to_string(instruction) + ", in copy " + std::to_string(copy);
}
std::string unlike(int instruction) {
  return kHere + "has instruction " + std::to_string(instruction) +
         ", which is no product like the first";
}
std::string late(int instruction) {
  return kHere + "has instruction " + std::to_string(instruction) +
         ", which needs what comes after the first";
}

/// Builds a stage with one program of products. Each tensor has kUnit bytes.
struct Products {
  Products() {
    stage.arenas = {{MemoryClass::activations, 1000 * kUnit},
                    {MemoryClass::workspace, 1000 * kUnit}};
    stage.programs.resize(1);
    stage.programs[0].name = "h.forward";
    stage.schedule = {{.program = 0}};
  }
  /// \param place  offset of the tensor in its arena, in units
  Tensor at(std::int64_t place, int arena = 0) {
    stage.buffers.push_back({"x", arena, place * kUnit, kUnit});
    Tensor tensor;
    tensor.buffer = static_cast<int>(stage.buffers.size()) - 1;
    tensor.shape = {8, 8};
    return tensor;
  }
  Instruction &add(const std::string &kernel, std::vector<Tensor> inputs,
                   std::vector<Tensor> outputs) {
    Instruction instruction;
    instruction.what =
        KernelCall{kernel, {{"equation", std::string("si,io->so")}}};
    instruction.inputs = std::move(inputs);
    instruction.outputs = std::move(outputs);
    return all().emplace_back(instruction);
  }
  /// Adds a product of activations and a weight. The offsets are in units.
  Instruction &product(std::int64_t x, std::int64_t w, std::int64_t y) {
    return add("einsum", {at(x), at(w)}, {at(y)});
  }
  /// Adds a product that accumulates the gradient of a weight in `sum`.
  Instruction &gradient(std::int64_t x, std::int64_t above,
                        std::int64_t between, std::int64_t sum) {
    return then(add("einsum", {at(x), at(above)}, {at(between), at(sum)}),
                "accumulate");
  }
  static Instruction &then(Instruction &instruction, const char *what) {
    std::get<KernelCall>(instruction.what)
        .settings.push_back({"then", std::string(what)});
    return instruction;
  }
  std::vector<Instruction> &all() { return stage.programs[0].instructions; }

  Found faultsOf(std::vector<int> instructions,
                 bool ofAllCopies = false) const {
    return faultsOfBatches({}, stage, {{std::move(instructions), ofAllCopies}});
  }
  Found faultsOfBoth(std::vector<int> some, std::vector<int> others) const {
    return faultsOfBatches(
        {}, stage, {{std::move(some), false}, {std::move(others), false}});
  }
  BatchSteps steps(std::vector<int> instructions) const {
    return stepsOf(stage, 0, {std::move(instructions), false});
  }

  Stage stage;
};

/// Returns the products of queries, keys and values. They share the activations
/// at offset 0. Their weights are two units apart, their results one unit.
Products threeOfOne() {
  Products some;
  some.product(0, 10, 20);
  some.product(0, 12, 21);
  some.product(0, 14, 22);
  return some;
}

TEST(BatchedProducts, HaveTheDistancesOfTheirTensors) {
  const Products three = threeOfOne();
  EXPECT_THAT(three.faultsOf({0, 1, 2}), IsEmpty());
  EXPECT_EQ(three.steps({0, 1, 2}).inputs, (Numbers{0, 2 * kUnit}));
  EXPECT_EQ(three.steps({0, 1, 2}).outputs, (Numbers{kUnit}));
  EXPECT_EQ(three.steps({0, 2}).inputs, (Numbers{0, 4 * kUnit}));
}

TEST(BatchedProducts, AreAtLeastTwo) {
  Products one;
  one.product(0, 10, 20);
  EXPECT_THAT(one.faultsOf({0}),
              ElementsAre(kHere + "has 1 instructions, needs at least 2"));
  EXPECT_THAT(one.faultsOf({}),
              ElementsAre(kHere + "has 0 instructions, needs at least 2"));
}

TEST(BatchedProducts, AreInstructionsOfTheProgramInAscendingOrder) {
  const Products three = threeOfOne();
  const std::string fault =
      kHere + "needs ascending instructions of the program, which has 3, got ";
  EXPECT_THAT(three.faultsOf({0, 3}), ElementsAre(fault + "3 after 0"));
  EXPECT_THAT(three.faultsOf({-1, 0}), ElementsAre(fault + "-1"));
  EXPECT_THAT(three.faultsOf({1, 0}), ElementsAre(fault + "0 after 1"));
  EXPECT_THAT(three.faultsOf({0, 0, 1}), ElementsAre(fault + "0 after 0"));
}

TEST(BatchedProducts, AreInOneBatchEach) {
  Products four = threeOfOne();
  four.product(0, 16, 23);
  EXPECT_THAT(four.faultsOfBoth({0, 1}, {2, 3}), IsEmpty());
  EXPECT_THAT(four.faultsOfBoth({0, 1}, {1, 2}),
              ElementsAre("/stages/0/programs/0/batches/1: has instruction 1, "
                          "which is in another batch, too"));
}

TEST(BatchedProducts, DistancesMustBeEven) {
  Products some;
  some.product(0, 10, 20);
  some.product(0, 12, 21);
  some.product(0, 15, 22);
  EXPECT_THAT(some.faultsOf({0, 1}), IsEmpty());
  EXPECT_THAT(some.faultsOf({0, 1, 2}), ElementsAre(uneven(2)));
  some.product(0, 18, 23);
  EXPECT_THAT(some.faultsOfBoth({0, 1}, {2, 3}), IsEmpty());
  EXPECT_THAT(some.faultsOf({0, 1, 2, 3}), ElementsAre(uneven(2)));
  Products five = threeOfOne();
  five.product(0, 40, 23);
  five.product(0, 43, 24);
  EXPECT_THAT(five.faultsOfBoth({0, 1, 2}, {3, 4}), IsEmpty());
  EXPECT_THAT(five.faultsOf({0, 1, 2, 3}), ElementsAre(uneven(3)));
  EXPECT_THAT(five.faultsOf({0, 1, 2, 3, 4}), ElementsAre(uneven(3)));
  Products elsewhere;
  elsewhere.product(0, 10, 20);
  elsewhere.product(0, 12, 21).outputs = {elsewhere.at(21, 1)};
  EXPECT_THAT(elsewhere.faultsOf({0, 1}), ElementsAre(uneven(1)));
}

TEST(BatchedProducts, ShareOneOfTwoOperands) {
  Products first;
  first.product(0, 10, 20);
  first.product(0, 12, 21);
  EXPECT_THAT(first.faultsOf({0, 1}), IsEmpty());
  Products second;
  second.product(10, 0, 20);
  second.product(12, 0, 21);
  EXPECT_THAT(second.faultsOf({0, 1}), IsEmpty());
  Products neither;
  neither.product(0, 10, 20);
  neither.product(1, 11, 21);
  EXPECT_THAT(neither.faultsOf({0, 1}), ElementsAre(kNotShared));
  Products both;
  both.product(0, 10, 20);
  both.product(0, 10, 21);
  EXPECT_THAT(both.faultsOf({0, 1}), ElementsAre(kNotShared));
}

TEST(BatchedProducts, AscendInMemoryAsInTheProgram) {
  Products weights; // the weights' offsets descend, the results' ascend
  weights.product(0, 12, 20);
  weights.product(0, 10, 21);
  EXPECT_THAT(weights.faultsOf({0, 1}), ElementsAre(uneven(1)));
  Products back;
  back.product(0, 14, 22);
  back.product(0, 12, 21);
  back.product(0, 10, 20);
  EXPECT_THAT(back.faultsOf({0, 1, 2}), ElementsAre(uneven(1)));
  EXPECT_THAT(back.faultsOf({2, 1, 0}),
              ElementsAre(kHere + "needs ascending instructions of the "
                                  "program, which has 3, got 1 after 2"));
}

TEST(BatchedProducts, HaveTheirBiasesAtEvenDistances) {
  Products biased = threeOfOne();
  for (const auto &[i, bias] : {std::pair(0U, 30), {1U, 33}, {2U, 36}})
    biased.all()[i].inputs.push_back(biased.at(bias));
  EXPECT_THAT(biased.faultsOf({0, 1, 2}), IsEmpty());
  EXPECT_EQ(biased.steps({0, 1, 2}).inputs, (Numbers{0, 2 * kUnit, 3 * kUnit}));
  biased.all()[2].inputs[2] = biased.at(37);
  EXPECT_THAT(biased.faultsOf({0, 1}), IsEmpty());
  EXPECT_THAT(biased.faultsOf({0, 1, 2}), ElementsAre(uneven(2)));
}

TEST(BatchedProducts, DifferInTheirTensorsAlone) {
  const auto faults = [](auto change) {
    Products some = threeOfOne();
    change(some.all()[2]);
    EXPECT_THAT(some.faultsOf({0, 1}), IsEmpty());
    return some.faultsOf({0, 1, 2});
  };
  EXPECT_THAT(faults([](Instruction &) {}), IsEmpty());
  EXPECT_THAT(faults([](Instruction &one) { one.stream = 1; }),
              ElementsAre(kHere + "is on several streams: instruction 2 is on "
                                  "stream 1, the first on 0"));
  const auto last = ElementsAre(unlike(2));
  EXPECT_THAT(faults([](Instruction &one) {
                one.inputs[1].shape = {8, 4};
              }),
              last);
  EXPECT_THAT(
      faults([](Instruction &one) { one.outputs[0].type = ElementType::bf16; }),
      last);
  EXPECT_THAT(faults([](Instruction &one) {
                one.inputs[1].split = {{0}, {}};
              }),
              last);
  EXPECT_THAT(faults([](Instruction &one) {
                std::get<KernelCall>(one.what).settings[0].value =
                    std::string("si,oi->so");
              }),
              last);
  EXPECT_THAT(faults([](Instruction &one) {
                std::get<KernelCall>(one.what).kernel = "mul";
              }),
              last);
}

TEST(BatchedProducts, ConflictsWithInstructionsBetweenAreRejected) {
  // The result of the first product is an operand of the second.
  Products chain;
  chain.product(0, 20, 21);
  chain.product(0, 21, 22);
  EXPECT_THAT(chain.faultsOf({0, 1}), ElementsAre(late(1)));
  const auto faults = [](std::int64_t from, std::int64_t to) {
    Products some;
    some.product(0, 10, 20);
    some.add("copy", {some.at(from)}, {some.at(to)});
    some.product(0, 12, 21);
    return some.faultsOf({0, 2});
  };
  EXPECT_THAT(faults(40, 41), IsEmpty());
  EXPECT_THAT(faults(20, 41), IsEmpty()); // reads the first result
  EXPECT_THAT(faults(12, 41), IsEmpty()); // reads what the second reads
  EXPECT_THAT(faults(40, 12), ElementsAre(late(2))); // overwrites the weight
  EXPECT_THAT(faults(40, 0), ElementsAre(late(2)));
  EXPECT_THAT(faults(40, 21), ElementsAre(late(2))); // writes the second result
  EXPECT_THAT(faults(21, 41), ElementsAre(late(2))); // reads the second result
}

// An instruction of another stream counts as earlier than a product only if the
// product waits for the instruction.
TEST(BatchedProducts, KeepTheOrderOfStreams) {
  Products some;
  some.add("copy", {some.at(40)}, {some.at(12)}).stream = 1;
  some.product(0, 10, 20);
  some.product(0, 12, 21);
  EXPECT_THAT(some.faultsOf({1, 2}), IsEmpty());
  Products waits = some;
  waits.all()[2].waits = {0};
  EXPECT_THAT(waits.faultsOf({1, 2}), ElementsAre(late(2)));
  waits.all()[1].waits = {0};
  EXPECT_THAT(waits.faultsOf({1, 2}), IsEmpty());
  // The copy accesses no bytes of the product that waits for it.
  waits.all()[1].waits = {};
  waits.all()[0].outputs[0] = waits.at(13);
  EXPECT_THAT(waits.faultsOf({1, 2}), IsEmpty());
  // Between the products, their stream waits for the copy.
  Products through = some;
  Instruction between = through.all()[0];
  between.inputs[0] = through.at(41);
  between.outputs[0] = through.at(42);
  between.stream = 0;
  between.waits = {0};
  through.all().insert(through.all().begin() + 2, between);
  EXPECT_THAT(through.faultsOf({1, 3}), ElementsAre(late(3)));
}

TEST(BatchedProducts, WriteOnlyTheirSums) {
  // A batch does not write the values that it adds to accumulators. The bytes
  // of such a value may therefore be those of an operand of the other products.
  Products some;
  some.gradient(0, 10, 30, 20);
  some.product(5, 6, 31);
  some.product(31, 6, 32);
  some.gradient(0, 11, 31, 21);
  EXPECT_THAT(some.faultsOf({0, 3}), IsEmpty());
  EXPECT_EQ(some.steps({0, 3}).inputs, (Numbers{0, kUnit}));
  EXPECT_EQ(some.steps({0, 3}).outputs, (Numbers{0, kUnit}));
  // The same holds for products with a fused `add`. Products with a fused
  // activation cannot be batched.
  Products added = some, activated = some;
  for (const std::size_t i : {0U, 3U}) {
    const auto word = [i](Products &products) -> Setting & {
      return std::get<KernelCall>(products.all()[i].what).settings[1];
    };
    word(added).value = std::string("add");
    word(activated).value = std::string("activation");
  }
  EXPECT_THAT(added.faultsOf({0, 3}), IsEmpty());
  EXPECT_THAT(activated.faultsOf({0, 3}), ElementsAre(unlike(0)));
  // An accumulator is written, so its bytes must not be those of the operand.
  some.all()[3].outputs[1] = some.at(31);
  EXPECT_THAT(some.faultsOf({0, 3}), ElementsAre(late(3)));
}

TEST(BatchedProducts, DistancesMustBeEvenInEveryRun) {
  Products copies = threeOfOne();
  Stage &stage = copies.stage;
  stage.schedule[0].count = 3;
  for (Instruction &one : copies.all()) {
    Tensor &result = one.outputs[0];
    result.entryStep = 1;
    Buffer &buffer = stage.buffers[static_cast<std::size_t>(result.buffer)];
    buffer.entries = 3;
    buffer.entryStride = 10 * kUnit;
  }
  EXPECT_THAT(copies.faultsOf({0, 1, 2}), IsEmpty());
  auto buffer = [&](std::size_t i) -> Buffer & {
    return stage
        .buffers[static_cast<std::size_t>(copies.all()[i].outputs[0].buffer)];
  };
  buffer(2).entryStride = 11 * kUnit;
  EXPECT_THAT(copies.faultsOf({0, 1}), IsEmpty());
  EXPECT_THAT(copies.faultsOf({0, 1, 2}), ElementsAre(uneven(2, 1)));
  buffer(2).entryStride = 10 * kUnit;
  buffer(1).entries = 2; // copy (layer) 2 wraps to entry 0
  EXPECT_THAT(copies.faultsOf({0, 1}), ElementsAre(uneven(1, 2)));
  EXPECT_THAT(copies.faultsOf({1, 2}), ElementsAre(uneven(2, 2)));
  EXPECT_THAT(copies.faultsOf({0, 1, 2}), ElementsAre(uneven(1, 2)));
  // The same holds for micro-batches.
  buffer(1).entries = 3;
  stage.schedule.push_back(stage.schedule[0]);
  stage.schedule[1].microBatch = 1;
  EXPECT_THAT(copies.faultsOf({0, 1, 2}), IsEmpty());
  buffer(0).slots = 2;
  buffer(0).slotStride = 100 * kUnit;
  EXPECT_THAT(copies.faultsOf({1, 2}), IsEmpty());
  EXPECT_THAT(copies.faultsOf({0, 1}), ElementsAre(uneven(1)));
  EXPECT_THAT(copies.faultsOf({0, 1, 2}), ElementsAre(uneven(1)));
}

TEST(BatchedProducts, AreOfOneCopy) {
  EXPECT_THAT(threeOfOne().faultsOf({0, 1, 2}, true),
              ElementsAre(kHere + "is of all copies, which only kernels of "
                                  "/apply may be"));
}

TEST(BatchedProducts, AreNotOfTheUpdateNorTheHosts) {
  Products some = threeOfOne();
  some.stage.apply = some.stage.schedule;
  EXPECT_THAT(some.faultsOf({0, 1, 2}),
              ElementsAre(kHere + "is in \"h.forward\", which does not run by "
                                  "one entry of /apply alone"));
  // In the update, a batch of products is checked like a batch of any kernels:
  // only its first kernel may wait for other instructions.
  some.stage.schedule.clear();
  some.all()[2].waits = {0};
  EXPECT_THAT(some.faultsOf({0, 1, 2}),
              ElementsAre(kHere + "waits at instruction 2; only the first may "
                                  "wait"));
  some.stage.schedule.swap(some.stage.apply);
  EXPECT_THAT(some.faultsOf({0, 1, 2}), IsEmpty());
  some.stage.schedule.swap(some.stage.reduce);
  const auto reduces =
      ElementsAre(kHere + "is in \"h.forward\" of /reduce, where only "
                          "collectives are grouped");
  EXPECT_THAT(some.faultsOf({0, 1, 2}), reduces);
  some.stage.schedule = some.stage.reduce;
  EXPECT_THAT(some.faultsOf({0, 1, 2}), reduces);
  Products hosts = threeOfOne();
  hosts.stage.arenas[0].memoryClass = MemoryClass::host;
  EXPECT_THAT(hosts.faultsOf({0, 1, 2}), ElementsAre(unlike(0)));
}

} // namespace
} // namespace mtplan::runtime
