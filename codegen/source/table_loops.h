//===- table_loops.h - Loops over tables of tensors -------------*- C++ -*-===//
//
// Calls that repeat, and differ only in their tensors and sizes, become a loop
// over a table with a row for each repetition.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H
#define MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/loop_table.h"
#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Returns a function's statements with names of events that do not depend on
/// tensors: "gathered" for "h_attn_q_bias_gathered".
Text withShortEvents(const Text &body);

/// Holds one function in place of several that differ in tensors and sizes.
struct UnitedFunction {
  Text body;          ///< reads `row`
  std::string table;  ///< name of the table
  std::string layers; ///< layers of a row: "row.layers"
};

/// Replaces repeated items of functions by loops over tables.
class TableLoops {
public:
  /// \param theTaken  names of members of struct `buf`; receives those of
  /// tables
  explicit TableLoops(std::set<std::string> &theTaken) : taken(theTaken) {}

  /// Says which calls loops may have. In the forward and backward of a layer
  /// only collectives are alike for the reader.
  enum class Calls { all, collectives };
  /// Returns the text with loops. Cubic in its items at worst.
  Text withLoops(const Text &text, const std::string &function, Calls which);
  /// Unites the texts of functions, each of which runs for `layers` layers, as
  /// one text that reads a row of a table.
  /// \pre LoopTable::unite() can unite the functions
  UnitedFunction united(const std::vector<Text> &functions,
                        const std::vector<std::string> &layers,
                        const std::string &name);

  const Text &tables() const { return written; }

private:
  std::set<std::string> &taken;
  Text written;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H
