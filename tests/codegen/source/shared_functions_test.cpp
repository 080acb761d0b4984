//===- shared_functions_test.cpp - Functions that stages share ------------===//

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "codegen/source/shared_functions.h"

namespace mtplan::codegen {
namespace {

StageFunction function(const std::string &name, const std::string &statement) {
  StageFunction one;
  one.name = name;
  one.arguments = "const Run &now";
  one.body.line(statement);
  return one;
}

TEST(SharedFunctions, EqualFunctionsOfTwoStagesAreOneTemplate) {
  std::vector<std::vector<StageFunction>> all = {
      {function("h_forward", "norm(now[buf::a], buf::layers);")},
      {function("h_4_forward", "norm(now[buf::b], buf::layers);")}};
  FunctionSharing sharing(2);
  sharing.share(all);
  EXPECT_TRUE(all[0][0].isTemplate);
  EXPECT_TRUE(all[1][0].isShared);
  EXPECT_EQ(all[0][0].callee(), "h_forward<buf>");
  EXPECT_EQ(all[1][0].callee(), "h_forward<h_4_forward_buf>");
  Text structs;
  sharing.writeStructs(1, "buf", structs);
  EXPECT_NE(structs.text().find("struct h_4_forward_buf : buf {\n"
                                "  static constexpr const auto &a = buf::b;\n"
                                "};"),
            std::string::npos)
      << structs.text();
}

TEST(SharedFunctions, OneNameForTwoTensorsIsNotShared) {
  std::vector<std::vector<StageFunction>> all = {
      {function("f", "add(now[buf::a], now[buf::a]);")},
      {function("f", "add(now[buf::b], now[buf::c]);")}};
  FunctionSharing(2).share(all);
  EXPECT_TRUE(all[0][0].isPlain());
  EXPECT_TRUE(all[1][0].isPlain());
}

TEST(SharedFunctions, FunctionsOfAPartShareOneStructUnlessNamesConflict) {
  std::vector<std::vector<StageFunction>> all = {
      {function("f", "f(now[buf::a]);"), function("g", "g(now[buf::a]);"),
       function("k", "k(now[buf::a]);")},
      {function("f", "f(now[buf::b]);"), function("g", "g(now[buf::b]);"),
       function("k", "k(now[buf::c]);")}};
  for (std::vector<StageFunction> &stage : all)
    for (StageFunction &one : stage)
      one.part = 2;
  FunctionSharing sharing(2);
  sharing.share(all);
  EXPECT_EQ(sharing.structOf(0, 2), "buf");
  EXPECT_EQ(all[1][0].callee(), "f<part2>");
  EXPECT_EQ(all[1][1].callee(), "g<part2>");
  EXPECT_EQ(all[1][2].callee(), "k<k_buf>");
}

TEST(SharedFunctions, ATemplateAvoidsTheNamesOfOtherFunctions) {
  std::vector<std::vector<StageFunction>> all = {
      {function("f", "one(now[buf::a]);")},
      {function("g", "one(now[buf::a]);"), function("f", "other(now);")}};
  FunctionSharing(2).share(all);
  EXPECT_EQ(all[1][1].callee(), "f");
  EXPECT_EQ(all[0][0].callee(), "f_2<buf>");
  EXPECT_EQ(all[1][0].callee(), "f_2<buf>");
}

TEST(SharedFunctions, ACallerIsSharedOnlyIfItsTemplatesReadTheSameBuffers) {
  // Stage 1 reads b where stage 0 reads a, but only in f. If one caller passed
  // both f and g the struct of the virtual stage, g would read b, too.
  std::vector<std::vector<StageFunction>> functions = {
      {function("f", "f(now[buf::a]);"), function("g", "g(now[buf::a]);")},
      {function("f", "f(now[buf::b]);"), function("g", "g(now[buf::a]);")}};
  for (std::vector<StageFunction> &stage : functions)
    for (StageFunction &one : stage)
      one.part = 0;
  FunctionSharing sharing(2);
  sharing.share(functions);
  std::vector<std::vector<StageFunction>> callers(2);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    StageFunction &caller = callers[stage].emplace_back();
    caller.name = "forward";
    caller.arguments = "Rank &rank";
    caller.part = 0;
    for (const StageFunction &callee : functions[stage])
      caller.body.line(callee.calleeFor(caller) + "({rank});");
  }
  sharing.share(callers);
  EXPECT_TRUE(callers[0][0].isPlain());
  EXPECT_TRUE(callers[1][0].isPlain());
}

TEST(SharedFunctions, AFunctionThatCallsItsStagesOwnIsNoTemplate) {
  std::vector<std::vector<StageFunction>> all = {{function("f", "own(now);")},
                                                 {function("f", "own(now);")}};
  for (std::vector<StageFunction> &stage : all)
    stage[0].callsOwn = true;
  FunctionSharing(2).share(all);
  EXPECT_TRUE(all[0][0].isPlain());
}

} // namespace
} // namespace mtplan::codegen
