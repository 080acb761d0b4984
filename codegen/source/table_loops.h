//===- table_loops.h - Loops over tables of tensors -------------*- C++ -*-===//
//
// Replaces repeated calls that differ only in tensors and sizes by a loop over
// a table. The table has one row for each repetition.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H
#define MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H

#include <set>
#include <string>
#include <vector>

#include "codegen/source/loop_table.h"
#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Returns a function's statements with short event names, which do not depend
/// on tensors: "gathered" for "h_attn_q_bias_gathered".
Text withShortEvents(const Text &body);

/// Holds one function that replaces several functions, which differ only in
/// tensors and sizes.
struct UnitedFunction {
  Text body;          ///< reads `row`
  std::string table;  ///< name of the table
  std::string layers; ///< a row's number of layers: "row.layers"
};

class TableLoops {
public:
  /// \param theTaken  names of members of struct `buf`; receives the tables'
  ///                  names
  explicit TableLoops(std::set<std::string> &theTaken) : taken(theTaken) {}

  /// Selects the calls that loops may contain. Only collectives are in loops in
  /// the forward and backward of a layer, because a reader expects a line for
  /// every other operator.
  enum class Calls { all, collectives };
  /// Returns the text with loops. The time is at most cubic in the number of
  /// items.
  Text withLoops(const Text &text, const std::string &function, Calls which);
  /// Replaces several functions by one text that reads a row of a table.
  /// Function i runs for `layers[i]` layers.
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
