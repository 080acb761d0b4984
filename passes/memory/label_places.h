//===- label_places.h - Memory of parameters and gradients ------*- C++ -*-===//

#ifndef MTPLAN_PASSES_MEMORY_LABEL_PLACES_H
#define MTPLAN_PASSES_MEMORY_LABEL_PLACES_H

#include <map>
#include <set>
#include <string>
#include <vector>

#include "llvm/ADT/DenseMap.h"

#include "passes/memory/arenas.h"
#include "passes/schedule/stage_contents.h"

namespace mtplan::passes {

/// Assigns memory to the tensors that have labels: parameters, and the
/// accumulators of gradients and of reported scalars.
class LabelPlaces {
public:
  /// Identifies an array by its label and, if the label has a `*`, its segment.
  using Key = std::pair<mlir::Operation *, std::string>;

  /// Both references must outlive the object.
  /// \param gradientType  type of the accumulators of gradients that have a
  /// narrower type; null if each accumulator has the type of its gradient
  LabelPlaces(const StageContents &stageContents, Arenas &stageArenas,
              mlir::Type gradientType);

  /// Assigns memory to the labels of a segment. Adds the segment's parameters
  /// to `places` and writes the attribute `mtp.places` of each mtp.accumulate.
  void place(ir::SegmentOp segment,
             llvm::DenseMap<mlir::Value, ir::PlaceAttr> &places);

  Key keyOf(ir::SegmentOp segment, mlir::StringAttr label) const;
  /// These methods return the array that place() has assigned to a label.
  const Array &parameter(const Key &key) const { return parameters.at(key); }
  const Array &accumulator(const Key &key) const {
    return accumulators.at(key);
  }
  /// Returns all accumulators of a label's gradient except the first.
  std::vector<Array> otherSumsOf(llvm::StringRef label) const;

  mlir::Type keptAs(mlir::Value value) const;
  /// Returns the element type of an accumulator to which values with elements
  /// of type `element` are added.
  mlir::Type accumulated(llvm::StringRef label, mlir::Type element) const;

private:
  ir::PlaceAttr placeOfLabel(std::map<Key, Array> &arrays,
                             llvm::StringRef arena, ir::SegmentOp segment,
                             mlir::StringAttr label, mlir::Type type,
                             mlir::Type element);
  ir::PlaceAttr placeOfSum(ir::SegmentOp segment, ir::AccumulateOp op);
  std::int64_t bytesBehind(ir::SegmentOp segment, mlir::StringAttr label,
                           mlir::Type element) const;

  const StageContents &contents;
  Arenas &arenas;
  mlir::Type wider;
  /// Holds the labels of parameters; all other labels belong to reported
  /// scalars.
  std::set<std::string> trained;
  std::map<Key, Array> parameters, accumulators;
  /// Maps labels to the gradient accumulators after the first, with their
  /// segments.
  std::map<std::string, std::vector<std::pair<mlir::Operation *, Array>>>
      otherSums;
};

} // namespace mtplan::passes

#endif // MTPLAN_PASSES_MEMORY_LABEL_PLACES_H
