//===- table_loops.h - Loops over tables of tensors -------------*- C++ -*-===//
//
// Calls that repeat, and differ only in their tensors and sizes, become a loop
// over a table with a row for each repetition.
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H
#define MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Describes an array of structs that a loop reads.
class LoopTable {
public:
  /// Unites the expressions that the rows have in one place.
  /// \param hint  the name of a column, if one is added
  /// \return the expression by which the loop reads a row's value. If all rows
  ///         have the same value, it is that value. Nothing if the values
  ///         differ by more than buffers and sizes.
  std::optional<std::string> unite(const std::vector<std::string> &values,
                                   const std::string &hint);
  /// Unites texts of the same items. Comments that differ become their
  /// summaries.
  std::optional<Text> unite(const std::vector<std::vector<TextItem>> &rows);
  /// Writes the table as a static member of struct `buf`.
  void write(const std::string &name, const std::string &comment,
             Text &text) const;
  bool isEmpty() const { return columns.empty(); }

private:
  struct Column {
    std::string type, name;
    std::vector<std::string> values; ///< by row
  };
  std::string column(const std::string &type, const std::string &hint,
                     const std::vector<std::string> &values);
  std::optional<std::string>
  uniteBuffers(const std::vector<std::string> &values, const std::string &hint);
  std::optional<std::string> uniteCalls(const std::vector<std::string> &values,
                                        const std::string &hint);

  std::vector<Column> columns;
};

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
  /// \param taken  names of members of struct `buf`; receives those of tables
  explicit TableLoops(std::set<std::string> &theTaken) : taken(theTaken) {}

  /// Says which calls loops may have. In the forward and backward of a layer
  /// only collectives are alike for the reader.
  enum class Calls { all, collectives };
  /// Returns the text with loops. Quadratic in its items.
  Text withLoops(const Text &text, const std::string &function, Calls which);
  /// Unites the texts of functions, each of which runs for `layers` layers, as
  /// one text that reads a row of a table.
  /// \return nothing if the functions differ by more than buffers and sizes
  std::optional<UnitedFunction> united(const std::vector<Text> &functions,
                                       const std::vector<std::string> &layers,
                                       const std::string &name);

  const Text &tables() const { return written; }

private:
  std::set<std::string> &taken;
  Text written;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_TABLE_LOOPS_H
