//===- loop_table.h - The table that a loop reads ---------------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H
#define MTPLAN_CODEGEN_SOURCE_LOOP_TABLE_H

#include <optional>
#include <string>
#include <vector>

#include "codegen/source/text.h"

namespace mtplan::codegen {

/// Returns the ending that all names share, in whole words and without the
/// numbers after it: "exp_avg". Returns "" if there is none.
std::string commonEnd(const std::vector<std::string> &names);

/// Describes the array of structs over which a loop runs.
class LoopTable {
public:
  /// Unites the values that one expression has in each row.
  /// \param hint  the name of the column, if a column is added
  /// \return the loop's expression for a row's value: the value itself if all
  ///         rows have the same one. Returns nothing if the values differ in
  ///         more than buffers and sizes.
  std::optional<std::string> unite(const std::vector<std::string> &values,
                                   const std::string &hint);
  /// Unites the texts of all rows. A comment that differs between rows becomes
  /// its summary. Returns nothing if the calls differ in more than buffers and
  /// sizes. The table must not be used then.
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
