//===- written_function.h - Equal functions of two stages -------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_WRITTEN_FUNCTION_H
#define MTPLAN_CODEGEN_SOURCE_WRITTEN_FUNCTION_H

#include <string>
#include <vector>

namespace mtplan::codegen {

/// A function of a stage, for comparison with those of other stages.
struct WrittenFunction {
  std::string name;                 ///< "stage0::h_forward"
  std::string body;                 ///< without buffers, layers and layout
  std::vector<std::string> buffers; ///< in the order of their uses
};

/// Returns a function without its first line, its comments and its spaces,
/// and with its buffers apart.
WrittenFunction comparable(const std::string &function);

/// Returns the buffers in which two functions with equal bodies differ:
/// ", with carried_1_0 for embed_drop".
std::string differencesOf(const WrittenFunction &own,
                          const WrittenFunction &other);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_WRITTEN_FUNCTION_H
