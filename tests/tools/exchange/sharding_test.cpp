//===- sharding_test.cpp - Layouts in other notations ---------------------===//

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/sharding_notation.h"
#include "tools/exchange/shardy.h"

namespace {

using namespace mtplan::tools;
using mtplan::planner::Layout;
using mtplan::planner::Mesh;
using mtplan::planner::Reduction;
using testing::ElementsAre;
using testing::IsEmpty;

const Mesh kMesh{{{"dp", 2}, {"cp", 2}, {"tp", 4}, {"ep", 3}}};
const NamedMesh kNamed{"mesh", kMesh};

TEST(ExchangeSharding, WritesEveryNotation) {
  Layout layout{{{0}, {}, {2, 1}}, {3}, Reduction::sum};
  Errors errors;
  EXPECT_EQ(writePartitionSpec(layout, kMesh, errors),
            "P('dp', None, ('tp', 'cp'), unreduced={'ep'})");
  EXPECT_EQ(writeShardy(layout, kMesh, "mesh", errors),
            R"(#sdy.sharding<@mesh, [{"dp"}, {}, {"tp", "cp"}], )"
            R"(unreduced={"ep"}>)");
  EXPECT_EQ(writeDTensor(layout, kMesh),
            "(Shard(dim=0), _StridedShard(dim=2, split_factor=4), "
            "Shard(dim=2), Partial('sum'))");
  EXPECT_EQ(writeShardyMesh(kMesh, "mesh"),
            R"(sdy.mesh @mesh = <["dp"=2, "cp"=2, "tp"=4, "ep"=3]>)");
  Layout plain{{{0}, {}, {2}}, {}, Reduction::sum};
  std::vector<NamedDim> dims = {{"batch", 8}, {"seq", 16}, {"hidden", 64}};
  EXPECT_EQ(writeMeshTensorflow(plain, dims, kMesh, errors),
            "batch:dp;hidden:tp");
  EXPECT_EQ(writeDTensor(Layout{{{}}, {0}, Reduction::max}, Mesh{{{"x", 2}}}),
            "(Partial('max'),)");
  EXPECT_THAT(errors, IsEmpty());
}

TEST(ExchangeSharding, ReportsWhatANotationCannotExpress) {
  Layout maximum{{{0}}, {2}, Reduction::max};
  Errors errors;
  EXPECT_EQ(writePartitionSpec(maximum, kMesh, errors), "");
  EXPECT_EQ(writeShardy(maximum, kMesh, "mesh", errors), "");
  EXPECT_EQ(writeMeshTensorflow(maximum, {{"n", 8}}, kMesh, errors), "");
  EXPECT_EQ(writeMeshTensorflow(Layout{{{0, 1}}, {}, Reduction::sum},
                                {{"n", 8}}, kMesh, errors),
            "");
  EXPECT_THAT(errors,
              ElementsAre("PartitionSpec has no word for a partial maximum",
                          "Shardy has no word for a partial maximum",
                          "Mesh-TensorFlow has no word for partial values",
                          "Mesh-TensorFlow splits a dimension over one axis, "
                          "but n is split over 2"));
}

TEST(ExchangeSharding, ReadsOtherSpellings) {
  Errors errors;
  Layout expected{{{0}, {}, {2, 1}}, {}, Reduction::sum};
  for (const char *text :
       {"PartitionSpec(\"dp\", None, [\"tp\", \"cp\"],)",
        " jax.sharding.PartitionSpec( ('dp',),None , ('tp','cp',) ) "})
    EXPECT_EQ(readPartitionSpec(text, 3, kMesh, errors), expected) << text;
  EXPECT_EQ(readPartitionSpec("P()", 2, kMesh, errors), Layout::replicated(2));
  EXPECT_EQ(readPartitionSpec("P('dp', unreduced=frozenset({'tp', 'cp'}))", 2,
                              kMesh, errors),
            (Layout{{{0}, {}}, {1, 2}, Reduction::sum}));
  auto sharding =
      readShardy(R"(#sdy.sharding<@mesh, [{"dp", ?}p2, {?}, {"tp","cp"}p1], )"
                 R"(replicated={"ep"}>)",
                 kNamed, errors);
  ASSERT_TRUE(sharding);
  EXPECT_EQ(sharding->layout, expected);
  EXPECT_THAT(sharding->open, ElementsAre(true, true, false));
  EXPECT_THAT(sharding->priorities, ElementsAre(2, 0, 1));
  EXPECT_EQ(readDTensor("[Replicate(), Shard(1), Partial(), Replicate()]", 2,
                        kMesh, errors),
            (Layout{{{}, {1}}, {2}, Reduction::sum}));
  auto mesh = readShardyMesh(R"(sdy.mesh @m = <["a"=2,"b"=4]>)", errors);
  ASSERT_TRUE(mesh);
  EXPECT_EQ(writeShardyMesh(mesh->mesh, mesh->name),
            R"(sdy.mesh @m = <["a"=2, "b"=4]>)");
  EXPECT_THAT(errors, IsEmpty());
}

TEST(ExchangeSharding, RefusesByColumn) {
  Errors errors;
  for (const char *text :
       {"P('dp', 'dp')", "P('xp')", "P('dp', None, None)", "P('dp'", "Q()",
        "P(None None)", "P(UNCONSTRAINED)", "P('dp') x", "P(3)"})
    EXPECT_FALSE(readPartitionSpec(text, 2, kMesh, errors)) << text;
  EXPECT_THAT(
      errors,
      ElementsAre("column 13: axis \"dp\" is used twice",
                  "column 7: no axis \"xp\"; the mesh has dp, cp, tp and ep",
                  "column 19: more entries than the tensor's 2 dimensions",
                  "column 7: expected \",\" or \")\"",
                  "column 2: expected P(...) or PartitionSpec(...)",
                  "column 8: expected \",\" or \")\"",
                  "column 16: UNCONSTRAINED is no layout; name the axes, or "
                  "None",
                  "column 9: expected the end",
                  "column 4: expected None, an axis or a tuple of axes"));
  errors.clear();
  for (const char *text :
       {R"(#sdy.sharding<@other, []>)",
        R"(#sdy.sharding<@mesh, [{"tp":(2)2}]>)",
        R"(#sdy.sharding<@mesh, [{}p1]>)",
        R"(#sdy.sharding<@mesh, [{"tp"}], replicated={"tp"}>)",
        R"(#sdy.sharding<@mesh, [{"tp"}], unreduced>)"})
    EXPECT_FALSE(readShardy(text, kNamed, errors)) << text;
  EXPECT_THAT(errors,
              ElementsAre("column 21: mesh @other, but the mesh given is @mesh",
                          "column 29: a layout splits by whole axes; split the "
                          "mesh's axis in two and name the part",
                          "column 27: an empty closed dimension has no "
                          "priority",
                          "column 48: axis \"tp\" is used twice",
                          "column 41: expected \"=\""));
  errors.clear();
  EXPECT_FALSE(readDTensor("(Shard(0),)", 1, kMesh, errors));
  EXPECT_FALSE(readDTensor("(Shard(2),)", 2, Mesh{{{"x", 2}}}, errors));
  EXPECT_FALSE(readDTensor("(_StridedShard(dim=0, split_factor=3), Shard(0))",
                           1, Mesh{{{"x", 2}, {"y", 2}}}, errors));
  EXPECT_THAT(errors,
              ElementsAre("column 12: 1 placements for a mesh of 4 axes",
                          "column 8: expected a whole number from 0 to 1",
                          "column 49: split_factor 3 of axis \"x\" is no "
                          "product of later axes of its dimension"));
}

TEST(ExchangeSharding, MeshTensorflowRefusesItsTwoIllegalCases) {
  std::vector<NamedDim> dims = {{"batch", 8}, {"hidden", 6}};
  Errors errors;
  EXPECT_EQ(
      readMeshTensorflow("batch:dp; vocab:dp; hidden:ep", dims, kMesh, errors),
      (Layout{{{0}, {3}}, {}, Reduction::sum}));
  EXPECT_THAT(errors, IsEmpty());
  EXPECT_FALSE(readMeshTensorflow("batch:dp;hidden:dp", dims, kMesh, errors));
  EXPECT_FALSE(readMeshTensorflow("hidden:tp;x;batch:q", dims, kMesh, errors));
  EXPECT_THAT(errors,
              ElementsAre("rule \"hidden:dp\": axis dp would split two "
                          "dimensions of one tensor, batch and hidden",
                          "rule \"hidden:tp\": hidden 6 does not divide by the "
                          "4 ranks of tp; nearest that do: 4 and 8",
                          "rule \"x\": expected dimension:axis",
                          "rule \"batch:q\": no axis \"q\"; the mesh has dp, "
                          "cp, tp and ep"));
}

// Returns a random legal layout: each axis splits one dimension, is partial or
// neither, with axes of a dimension in any order.
Layout randomLayout(const Mesh &mesh, std::mt19937_64 &random, bool sums) {
  Layout layout = Layout::replicated(random() % 5);
  std::vector<int> axes(mesh.axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i)
    axes[i] = static_cast<int>(i);
  std::ranges::shuffle(axes, random);
  for (int axis : axes) {
    std::size_t place = random() % (layout.dims.size() + 2);
    if (place < layout.dims.size())
      layout.dims[place].push_back(axis);
    else if (place == layout.dims.size())
      layout.partial.push_back(axis);
  }
  std::ranges::sort(layout.partial);
  if (!sums && !layout.partial.empty() && random() % 2)
    layout.reduction = Reduction::max;
  return layout;
}

TEST(ExchangeSharding, EveryLayoutSurvivesEveryNotation) {
  std::mt19937_64 random(17);
  for (int i = 0; i < 5000; ++i) {
    Mesh mesh;
    for (std::size_t a = random() % 5; a-- > 0;)
      mesh.axes.push_back(
          {"a'x\"\\" + std::to_string(a), 2 + static_cast<int>(random() % 3)});
    Layout layout = randomLayout(mesh, random, true);
    std::size_t rank = layout.dims.size();
    Errors errors;
    std::string spec = writePartitionSpec(layout, mesh, errors);
    EXPECT_EQ(readPartitionSpec(spec, rank, mesh, errors), layout) << spec;
    std::string shardy = writeShardy(layout, mesh, "m", errors);
    auto sharding = readShardy(shardy, {"m", mesh}, errors);
    ASSERT_TRUE(sharding) << shardy;
    EXPECT_EQ(sharding->layout, layout) << shardy;
    auto again = readShardyMesh(writeShardyMesh(mesh, "m"), errors);
    ASSERT_TRUE(again);
    EXPECT_EQ(writeShardyMesh(again->mesh, "m"), writeShardyMesh(mesh, "m"));
    // A layout that is written as a DTensor and read back has the same spec.
    auto back = readDTensor(writeDTensor(layout, mesh), rank, mesh, errors);
    ASSERT_TRUE(back) << writeDTensor(layout, mesh);
    EXPECT_EQ(writePartitionSpec(*back, mesh, errors), spec);
    Layout any = randomLayout(mesh, random, false);
    EXPECT_EQ(
        readDTensor(writeDTensor(any, mesh), any.dims.size(), mesh, errors),
        any);
    EXPECT_THAT(errors, IsEmpty());
  }
}

TEST(ExchangeSharding, SurvivesBrokenText) {
  std::mt19937_64 random(23);
  const std::string seeds[] = {
      "P('dp', None, ('tp', 'cp'), unreduced={'ep'})",
      R"(#sdy.sharding<@mesh, [{"dp"}, {?}p1, {"tp"}], unreduced={"ep"}>)",
      "(Shard(dim=0), _StridedShard(dim=1, split_factor=4), Partial('sum'))",
      R"(sdy.mesh @mesh = <["dp"=2, "tp"=4]>)", "batch:dp;hidden:tp"};
  auto readAll = [&](const std::string &text) {
    Errors errors;
    readPartitionSpec(text, 3, kMesh, errors);
    readShardy(text, kNamed, errors);
    readDTensor(text, 3, kMesh, errors);
    readDTensor(text, 0, kMesh, errors);
    readShardyMesh(text, errors);
    readMeshTensorflow(text, {{"batch", 8}}, kMesh, errors);
  };
  const std::string letters = "(){}[]<>,'\"\\@?:;=p0123456789 -\xfe";
  for (const std::string &seed : seeds) {
    for (std::size_t length = 0; length <= seed.size(); ++length)
      readAll(seed.substr(0, length));
    for (int i = 0; i < 2000; ++i) {
      std::string text = seed;
      for (int k = 0; k < 3; ++k)
        text[random() % text.size()] = letters[random() % letters.size()];
      readAll(text);
    }
  }
  for (char c : std::string("(['{P;:,"))
    readAll("P(" + std::string().append(10'000'000, c));
}

} // namespace
