//===- native_names.h - Declarations of a native model ----------*- C++ -*-===//

#ifndef MTPLAN_IR_MODEL_NATIVE_NAMES_H
#define MTPLAN_IR_MODEL_NATIVE_NAMES_H

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mlir/IR/BuiltinTypes.h"

#include "ir/model/fields.h"
#include "ir/model/load.h"

namespace mtplan::ir {

enum class DimRole { batch, sequence, vocabulary, expert, feature };

/// Describes a named dimension. All uses of one name refer to one object.
struct NamedDim {
  std::string name;
  std::int64_t size = 1;
  std::int64_t used = 1; ///< size without padding
  DimRole role = DimRole::feature;
};

using NamedDims = std::vector<const NamedDim *>;

/// Declares a tensor that no operator makes: an input or a parameter.
struct Declaration {
  std::string name, pointer;
  bool parameter = false;
  bool valid = true; ///< whether all dimensions are known
  NamedDims dims;
  mlir::Type element;
  std::string init = "normal";       ///< initialisation of a parameter
  std::optional<std::int64_t> limit; ///< integer inputs are below this limit
  mutable bool isUsed = false;
};

class NativeNames {
public:
  /// Reads `dimensions`, `inputs` and `parameters` of the root object.
  NativeNames(mlir::MLIRContext &context, Fields &root,
              const ShapeOverrides &overrides);

  const NamedDim *findDim(std::string_view name) const;
  const Declaration *find(std::string_view name) const;
  std::vector<std::string> allNames() const;
  std::vector<std::string> dimNames() const;
  void rejectUnused() const;

  /// Returns the dimensions that the array `key` names. Adds an error and
  /// returns nothing if a name is unknown.
  std::optional<NamedDims> readDims(Fields &fields, std::string_view key);

  std::int64_t sequence = 1;
  std::optional<std::int64_t> globalBatch;
  std::deque<Declaration> declarations; ///< kept in file order

private:
  Findings &findings;
  std::map<std::string, NamedDim, std::less<>> dims;
  std::map<std::string, const Declaration *, std::less<>> byName;
  mlir::Type element;
  mlir::Type integers, singles;

  void readDimensions(Fields &root, const ShapeOverrides &overrides);
  void readInput(Fields &fields, Declaration &declared);
  void readParameter(Fields &fields, Declaration &declared,
                     const ShapeOverrides &overrides);
};

} // namespace mtplan::ir

#endif // MTPLAN_IR_MODEL_NATIVE_NAMES_H
