//===- loop_table.h - The table that a loop reads ---------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H
#define MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H

#include <optional>
#include <string>
#include <vector>

#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Returns the words at the end that all names have in common, without the
/// numbers that make them different: "exp_avg"; "" if there are none.
std::string commonEnd(const std::vector<std::string> &names);

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
  /// summaries. The table is unusable if the result is nothing.
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

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H
