//===- joint_products_test.cpp - Products that may be one -----------------===//

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/plan/joint_products.h"

namespace mtplan::runtime {
namespace {

using testing::ElementsAre, testing::IsEmpty, testing::SizeIs;
using Numbers = std::vector<std::int64_t>;

constexpr std::int64_t kUnit = 256; ///< bytes of a tensor, and to the next

/// A stage with one program, of products of tensors that are a unit each.
struct Products {
  Products() {
    stage.arenas = {{MemoryClass::activations, 1000 * kUnit},
                    {MemoryClass::workspace, 1000 * kUnit}};
    stage.programs = {{"h.forward", {}}};
    stage.schedule = {{.program = 0}};
  }
  /// \param place  in units
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
  /// Of activations and a weight, at these places.
  Instruction &product(std::int64_t x, std::int64_t w, std::int64_t y) {
    return add("einsum", {at(x), at(w)}, {at(y)});
  }
  /// The gradient of a weight, which is added to a sum.
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
  std::vector<std::vector<std::size_t>> joints() const {
    std::vector<std::vector<std::size_t>> found;
    for (const JointProducts &one : jointProducts(stage))
      found.push_back(one.instructions);
    return found;
  }

  Stage stage;
};

/// Queries, keys and values of activations at 0, whose weights lie two units
/// apart, and they themselves one.
Products threeOfOne() {
  Products some;
  some.product(0, 10, 20);
  some.product(0, 12, 21);
  some.product(0, 14, 22);
  return some;
}

TEST(JointProducts, LieEvenlyApart) {
  const Products three = threeOfOne();
  const std::vector<JointProducts> joints = jointProducts(three.stage);
  ASSERT_THAT(joints, SizeIs(1));
  EXPECT_THAT(joints[0].instructions, ElementsAre(0, 1, 2));
  EXPECT_EQ(joints[0].inputs, (Numbers{0, 2 * kUnit}));
  EXPECT_EQ(joints[0].outputs, (Numbers{kUnit}));
  EXPECT_EQ(joints[0].program, 0);
  EXPECT_EQ(joints[0].earliest(), 0U);
  Products one;
  one.product(0, 10, 20);
  EXPECT_THAT(one.joints(), IsEmpty());
}

TEST(JointProducts, AreThoseThatDo) {
  Products uneven;
  uneven.product(0, 10, 20);
  uneven.product(0, 12, 21);
  uneven.product(0, 15, 22);
  EXPECT_THAT(uneven.joints(), ElementsAre(ElementsAre(0, 1)));
  uneven.product(0, 18, 23);
  EXPECT_THAT(uneven.joints(),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3)));
  Products five = threeOfOne();
  five.product(0, 17, 23);
  five.product(0, 20, 24);
  EXPECT_THAT(five.joints(),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4)));
  // Weights the other way round, in another arena, nothing shared, and both.
  Products back;
  back.product(0, 12, 20);
  back.product(0, 10, 21);
  EXPECT_THAT(back.joints(), IsEmpty());
  Products elsewhere;
  elsewhere.product(0, 10, 20);
  elsewhere.product(0, 12, 21).outputs = {elsewhere.at(21, 1)};
  EXPECT_THAT(elsewhere.joints(), IsEmpty());
  Products apart;
  apart.product(0, 10, 20);
  apart.product(1, 11, 21);
  EXPECT_THAT(apart.joints(), IsEmpty());
  Products same;
  same.product(0, 10, 20);
  same.product(0, 10, 21);
  EXPECT_THAT(same.joints(), IsEmpty());
  Products second;
  second.product(10, 0, 20);
  second.product(12, 0, 21);
  EXPECT_THAT(second.joints(), ElementsAre(ElementsAre(0, 1)));
}

// Whoever is queued first.
TEST(JointProducts, AreInTheOrderOfMemory) {
  Products back;
  back.product(0, 14, 22);
  back.product(0, 12, 21);
  back.product(0, 10, 20);
  ASSERT_THAT(back.joints(), ElementsAre(ElementsAre(2, 1, 0)));
  EXPECT_EQ(jointProducts(back.stage)[0].earliest(), 0U);
}

TEST(JointProducts, HaveTheirBiasesEvenlyApart) {
  Products biased = threeOfOne();
  for (const auto &[i, bias] : {std::pair(0U, 30), {1U, 33}, {2U, 36}})
    biased.all()[i].inputs.push_back(biased.at(bias));
  ASSERT_THAT(biased.joints(), ElementsAre(SizeIs(3)));
  EXPECT_EQ(jointProducts(biased.stage)[0].inputs,
            (Numbers{0, 2 * kUnit, 3 * kUnit}));
  biased.all()[2].inputs[2] = biased.at(37);
  EXPECT_THAT(biased.joints(), ElementsAre(ElementsAre(0, 1)));
}

TEST(JointProducts, AreOfOneKind) {
  const auto joints = [](auto change) {
    Products some = threeOfOne();
    change(some.all()[2]);
    return some.joints();
  };
  const auto both = ElementsAre(ElementsAre(0, 1));
  EXPECT_THAT(joints([](Instruction &) {}), ElementsAre(SizeIs(3)));
  EXPECT_THAT(joints([](Instruction &one) { one.stream = 1; }), both);
  EXPECT_THAT(joints([](Instruction &one) {
                one.inputs[1].shape = {8, 4};
              }),
              both);
  EXPECT_THAT(
      joints([](Instruction &one) { one.outputs[0].type = ElementType::bf16; }),
      both);
  EXPECT_THAT(joints([](Instruction &one) {
                one.inputs[1].split = {{0}, {}};
              }),
              both);
  EXPECT_THAT(joints([](Instruction &one) {
                std::get<KernelCall>(one.what).settings[0].value =
                    std::string("si,oi->so");
              }),
              both);
  EXPECT_THAT(joints([](Instruction &one) {
                std::get<KernelCall>(one.what).kernel = "mul";
              }),
              both);
}

// Nothing is joined that another waits for between.
TEST(JointProducts, DoNotReadNorOverwriteWhatComesBetween) {
  // One is an operand of the next.
  Products chain;
  chain.product(0, 20, 21);
  chain.product(0, 21, 22);
  EXPECT_THAT(chain.joints(), IsEmpty());
  const auto joints = [](std::int64_t from, std::int64_t to) {
    Products some;
    some.product(0, 10, 20);
    some.add("copy", {some.at(from)}, {some.at(to)});
    some.product(0, 12, 21);
    return some.joints();
  };
  const auto both = ElementsAre(ElementsAre(0, 2));
  EXPECT_THAT(joints(40, 41), both);
  EXPECT_THAT(joints(20, 41), both);      // reads what the first has made
  EXPECT_THAT(joints(12, 41), both);      // and what the second reads
  EXPECT_THAT(joints(40, 12), IsEmpty()); // makes what that reads
  EXPECT_THAT(joints(40, 0), IsEmpty());
  EXPECT_THAT(joints(40, 21), IsEmpty()); // or what is where it writes
  EXPECT_THAT(joints(21, 41), IsEmpty());
}

// What others do on other streams comes before only if it is waited for.
TEST(JointProducts, KeepTheOrderOfStreams) {
  Products some;
  some.add("copy", {some.at(40)}, {some.at(12)}).stream = 1;
  some.product(0, 10, 20);
  some.product(0, 12, 21);
  EXPECT_THAT(some.joints(), ElementsAre(ElementsAre(1, 2)));
  Products waits = some;
  waits.all()[2].waits = {0};
  EXPECT_THAT(waits.joints(), IsEmpty());
  waits.all()[1].waits = {0};
  EXPECT_THAT(waits.joints(), ElementsAre(ElementsAre(1, 2)));
  // It has to do with neither.
  waits.all()[1].waits = {};
  waits.all()[0].outputs[0] = waits.at(13);
  EXPECT_THAT(waits.joints(), ElementsAre(ElementsAre(1, 2)));
  // Through another that waits for it.
  Products through = some;
  Instruction between = through.all()[0];
  between.inputs[0] = through.at(41);
  between.outputs[0] = through.at(42);
  between.stream = 0;
  between.waits = {0};
  through.all().insert(through.all().begin() + 2, between);
  EXPECT_THAT(through.joints(), IsEmpty());
}

TEST(JointProducts, WriteOnlyWhatIsAddedUp) {
  // What lies between is where another's operand was.
  Products some;
  some.gradient(0, 10, 30, 20);
  some.product(5, 6, 31);
  some.product(31, 6, 32);
  some.gradient(0, 11, 31, 21);
  ASSERT_THAT(some.joints(), ElementsAre(ElementsAre(0, 3)));
  EXPECT_EQ(jointProducts(some.stage)[0].outputs, (Numbers{0, kUnit}));
  // Which it would be if it were read.
  Products sum = some;
  for (Instruction &one : sum.all())
    if (one.outputs.size() == 2)
      std::get<KernelCall>(one.what).settings[1].value =
          std::string("activation");
  EXPECT_THAT(sum.joints(), IsEmpty());
  // And the sum is.
  some.all()[3].outputs[1] = some.at(31);
  EXPECT_THAT(some.joints(), IsEmpty());
}

TEST(JointProducts, AreEvenInEveryRun) {
  Products copies = threeOfOne();
  Stage &stage = copies.stage;
  stage.schedule[0].count = 3;
  // A unit on by copy: results of the others lie where that of the next copy
  // does, which is another run's.
  for (Instruction &one : copies.all()) {
    Tensor &result = one.outputs[0];
    result.entryStep = 1;
    Buffer &buffer = stage.buffers[static_cast<std::size_t>(result.buffer)];
    buffer.entries = 3;
    buffer.entryStride = 10 * kUnit;
  }
  EXPECT_THAT(copies.joints(), ElementsAre(SizeIs(3)));
  auto buffer = [&](std::size_t i) -> Buffer & {
    return stage
        .buffers[static_cast<std::size_t>(copies.all()[i].outputs[0].buffer)];
  };
  buffer(2).entryStride = 11 * kUnit;
  EXPECT_THAT(copies.joints(), ElementsAre(ElementsAre(0, 1)));
  buffer(2).entryStride = 10 * kUnit;
  buffer(1).entries = 2; // which the third copy finds taken from its start
  EXPECT_THAT(copies.joints(), IsEmpty());
  // Likewise by micro-batch.
  buffer(1).entries = 3;
  stage.schedule.push_back(stage.schedule[0]);
  stage.schedule[1].microBatch = 1;
  EXPECT_THAT(copies.joints(), ElementsAre(SizeIs(3)));
  buffer(0).slots = 2;
  buffer(0).slotStride = 100 * kUnit;
  EXPECT_THAT(copies.joints(), ElementsAre(ElementsAre(1, 2)));
}

TEST(JointProducts, AreNotOfTheUpdateNorTheHosts) {
  Products some = threeOfOne();
  some.stage.apply = some.stage.schedule;
  EXPECT_THAT(some.joints(), IsEmpty());
  some.stage.schedule.clear();
  EXPECT_THAT(some.joints(), IsEmpty());
  Products hosts = threeOfOne();
  hosts.stage.arenas[0].memoryClass = MemoryClass::host;
  EXPECT_THAT(hosts.joints(), IsEmpty());
}

} // namespace
} // namespace mtplan::runtime
