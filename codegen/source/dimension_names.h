//===- dimension_names.h - Names for the sizes in a program -----*- C++ -*-===//
//
// An emitted program writes a size as `B / dp * T * C` and not as 512. A name
// depends on the meaning of a dimension and not on its size. Two dimensions
// share a name if an operator requires their sizes to be equal. Some operators
// also fix the meaning of a dimension: token ids are [B, T], and an embedding's
// table is [V, C].
//===----------------------------------------------------------------------===//

#ifndef MTPLAN_CODEGEN_SOURCE_DIMENSION_NAMES_H
#define MTPLAN_CODEGEN_SOURCE_DIMENSION_NAMES_H

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/plan/plan.h"

namespace mtplan::codegen {

struct Dimension {
  std::string name; ///< "T"
  std::int64_t size = 1;
  std::string meaning; ///< "positions of a sequence"
};

/// Holds a size and its expression in the program ("B / dp").
struct Extent {
  std::int64_t value = 1;
  std::string text = "1";
};

class DimensionNames {
public:
  explicit DimensionNames(const runtime::Plan &thePlan);

  const std::vector<Dimension> &all() const { return dimensions; }

  Extent local(std::size_t stage, const runtime::Tensor &tensor,
               std::size_t dimension) const;
  Extent global(std::size_t stage, const runtime::Tensor &tensor,
                std::size_t dimension) const;

  /// Returns the constant with this value whose name is `name`, or `name` and a
  /// number ("V2"). If there is no such constant, returns the value as a
  /// literal.
  std::string known(const std::string &name, std::int64_t value) const;

  /// Returns the exclusive upper bound of an input's integers: the size of the
  /// vocabulary or, for the input "types", the number of token types.
  std::string limitOf(const runtime::Input &input) const;
  /// Returns the name of the constant for the number of ranks along an axis.
  const std::string &axis(int which) const;

private:
  /// Identifies a dimension by stage, buffer, global shape and index.
  using Key =
      std::tuple<std::size_t, int, std::vector<std::int64_t>, std::size_t>;
  struct Place {
    std::size_t stage;
    const runtime::Tensor *tensor;
  };

  /// Records how a tensor is split over ranks. A plan states a split only where
  /// an instruction needs it. Other tensors of the same buffer and shape are
  /// assumed to have the same split.
  void learnSplit(const Place &place);
  /// If only the operand or only the result of an `accumulate` has a known
  /// split, records this split for the other tensor, too.
  void learnSplitOfSum(std::size_t stage,
                       const runtime::Instruction &instruction);
  /// Records how operand and result of an all-gather or a reduce-scatter over
  /// one axis are split. The shard is split like the complete tensor and also
  /// over this axis, so the split of one tensor follows from that of the other.
  void learnFrom(std::size_t stage, const runtime::Instruction &instruction);
  const std::vector<std::vector<int>> &splitOf(const Place &place) const;
  std::vector<std::int64_t> globalShape(const Place &place) const;
  std::size_t nodeOf(const Place &place, std::size_t dimension);
  std::size_t rootOf(std::size_t node) const;
  void unite(const Place &one, std::size_t i, const Place &other,
             std::size_t j);
  void uniteLeading(const Place &one, const Place &other);
  void uniteTrailing(const Place &one, const Place &other);

  void relate(std::size_t stage, const runtime::Instruction &instruction);
  void relateLetters(std::size_t stage, const runtime::Instruction &instruction,
                     const std::string &equation);
  void relateStages();
  void nameFrom(std::size_t stage, const runtime::Instruction &instruction,
                int round);
  void name(const Place &place, std::size_t dimension,
            const std::vector<Dimension> &factors);
  /// Returns the name of the constant for this size, and adds a new constant if
  /// necessary. If another size already has the name, appends a number to the
  /// name.
  std::string constant(const Dimension &wanted);
  Extent written(std::size_t stage, const runtime::Tensor &tensor,
                 std::size_t dimension, bool isLocal) const;

  const runtime::Plan &plan;
  std::vector<std::string> axes;
  /// Maps stage, buffer and local shape to the axes that split each dimension.
  /// The value is empty if tensors with the same key have different splits.
  std::map<std::tuple<std::size_t, int, std::vector<std::int64_t>>,
           std::vector<std::vector<int>>>
      splits;
  std::map<Key, std::size_t> nodes;
  std::vector<std::size_t> parents;
  std::vector<std::int64_t> sizes; ///< by node, over all ranks
  /// Maps a root node to the constants whose product is the dimension's size.
  std::map<std::size_t, std::vector<std::string>> names;
  std::vector<Dimension> dimensions;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_DIMENSION_NAMES_H
