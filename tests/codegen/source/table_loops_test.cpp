//===- table_loops_test.cpp - Calls that repeat become loops --------------===//

#include <set>
#include <string>

#include <gtest/gtest.h>

#include "codegen/source/table_loops.h"

namespace mtplan::codegen {
namespace {

std::string tensorOf(const std::string &name) {
  return "now[buf::" + name + "]";
}
std::string waitFor(const std::string &event) {
  return "now.wait(kStream_tensor, " + event + ");";
}

/// Returns the body of a function that reduces these tensors.
Text reductions(const std::vector<std::string> &tensors) {
  Text body(1);
  for (const std::string &tensor : tensors) {
    body.comment(tensor + ": all_reduce over dp", "", "all_reduce over dp");
    body.call("allReduce", {"now", "kGroup_dp", tensorOf(tensor),
                            tensorOf(tensor), "C * " + tensor, "ncclSum"});
  }
  return body;
}

TEST(TableLoops, CallsThatDifferInTensorsAndSizesAreOneLoop) {
  std::set<std::string> taken;
  TableLoops loops(taken);
  EXPECT_EQ(loops
                .withLoops(reductions({"a", "b", "c"}), "reduce",
                           TableLoops::Calls::all)
                .text(),
            "  // For the tensors of each row: all_reduce over dp.\n"
            "  for (const auto &row : buf::reduce_rows)\n"
            "    allReduce(now, kGroup_dp, now[row.tensor], now[row.tensor], "
            "row.elements,\n"
            "              ncclSum);\n");
  EXPECT_EQ(loops.tables().text(), "\n"
                                   "// A loop in reduce() reads these rows.\n"
                                   "static constexpr struct {\n"
                                   "  Buffer tensor; std::int64_t elements;\n"
                                   "} reduce_rows[] = {\n"
                                   "    {buf::a, C * a},\n"
                                   "    {buf::b, C * b},\n"
                                   "    {buf::c, C * c},\n"
                                   "};\n");
}

TEST(TableLoops, TwoShortCallsStayAsTheyAre) {
  std::set<std::string> taken;
  TableLoops loops(taken);
  const Text two = reductions({"a", "b"});
  EXPECT_EQ(loops.withLoops(two, "reduce", TableLoops::Calls::all).text(),
            two.text());
}

TEST(TableLoops, EventsOfARowAreLocalToTheLoop) {
  std::set<std::string> taken;
  TableLoops loops(taken);
  Text body(1);
  body.event("x_reduced", "now.done(kStream_data)");
  for (const char *tensor : {"a", "b", "c"}) {
    const std::string event = std::string(tensor) + "_reduced";
    body.call("allReduce", {"now", tensorOf(tensor)});
    body.event(event, "now.done(kStream_data)");
    body.line(waitFor(event));
  }
  body.line("now.wait(kStream_compute, x_reduced);");
  EXPECT_EQ(loops.withLoops(body, "reduce", TableLoops::Calls::all).text(),
            "  cudaEvent_t x_reduced = now.done(kStream_data);\n"
            "  for (const auto &row : buf::reduce_rows) {\n"
            "    allReduce(now, now[row.tensor]);\n"
            "    cudaEvent_t reduced = now.done(kStream_data);\n"
            "    now.wait(kStream_tensor, reduced);\n"
            "  }\n"
            "  now.wait(kStream_compute, x_reduced);\n");
}

TEST(TableLoops, AnEventThatIsUsedLaterKeepsItsRowOutOfTheLoop) {
  std::set<std::string> taken;
  TableLoops loops(taken);
  Text body(1);
  for (const char *tensor : {"a", "b", "c"}) {
    body.call("allReduce", {"now", tensorOf(tensor)});
    body.event(std::string(tensor) + "_reduced", "now.done(kStream_data)");
  }
  body.line("now.wait(kStream_compute, c_reduced);");
  const std::string text =
      loops.withLoops(body, "reduce", TableLoops::Calls::all).text();
  EXPECT_NE(text.find("cudaEvent_t c_reduced = now.done(kStream_data);\n"
                      "  now.wait(kStream_compute, c_reduced);"),
            std::string::npos)
      << text;
}

TEST(TableLoops, InLayersOnlyCollectivesAreLoops) {
  std::set<std::string> taken;
  TableLoops loops(taken);
  Text body(1);
  for (const char *tensor : {"a", "b", "c", "d"})
    body.call("norm<float>", {"now.stream()", tensorOf(tensor)});
  EXPECT_EQ(
      loops.withLoops(body, "h_forward", TableLoops::Calls::collectives).text(),
      body.text());
}

TEST(TableLoops, FunctionsOfSeveralParametersAreOneThatReadsARow) {
  std::set<std::string> taken;
  TableLoops loops(taken);
  const UnitedFunction united = loops.united(
      {reductions({"a"}), reductions({"b"})}, {"1", "buf::layers"}, "reduce_h");
  EXPECT_EQ(united.table, "reduce_h_rows");
  EXPECT_EQ(united.layers, "row.layers");
  EXPECT_EQ(united.body.text(),
            "  // all_reduce over dp\n"
            "  allReduce(now, kGroup_dp, now[row.tensor], now[row.tensor], "
            "row.elements,\n"
            "            ncclSum);\n");
}

TEST(LoopTable, ExpressionsThatCallOtherFunctionsAreNotUnited) {
  LoopTable table;
  EXPECT_FALSE(table.unite({"first(a)", "second(a)"}, ""));
  EXPECT_FALSE(table.unite({"now.at(kAxis_tp)", "now.at(kAxis_dp) + 1"}, ""));
  EXPECT_TRUE(table.isEmpty());
}

TEST(LoopTable, ArgumentsOfOneFunctionAreUnitedOneByOne) {
  LoopTable table;
  EXPECT_EQ(table.unite({"contiguous(now.at(kAxis_tp) * (F / tp), F / tp)",
                         "contiguous(now.at(kAxis_tp) * (C / tp), C / tp)"},
                        ""),
            "contiguous(now.at(kAxis_tp) * row.size, row.size_2)");
}

} // namespace
} // namespace mtplan::codegen
