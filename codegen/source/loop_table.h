//===- loop_table.h - The table that a loop reads ---------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H
#define MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H

#include <optional>
#include <string>
#include <vector>

#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Returns the longest ending of whole words that all names share, such as
/// "exp_avg". The number at the end of a name is ignored. Returns "" if the
/// names share no ending.
std::string commonEnd(const std::vector<std::string> &names);

/// Describes the array of structs over which a loop runs.
class LoopTable {
public:
  /// Replaces the values that an expression has in the rows by one expression.
  /// \param hint  the name of the column, if a column is added
  /// \return the expression for the value in a row of the loop, which is the
  ///         value itself if all rows have the same value. Returns nothing if
  ///         the values differ in more than buffers and sizes.
  std::optional<std::string> unite(const std::vector<std::string> &values,
                                   const std::string &hint);
  /// Replaces the texts of all rows by one text. A comment that differs between
  /// rows is replaced by its summary, or omitted if it has none. Returns
  /// nothing if the calls differ in more than buffers and sizes. In this case
  /// the table must not be used.
  std::optional<Text> unite(const std::vector<std::vector<TextItem>> &rows);
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
