//===- dimension_names.h - Names for the sizes in a program -----*- C++ -*-===//
//
// An emitted program writes a size as `B / dp * T * C` and not as 512. A name
// depends on the meaning of a dimension and not on its size. Dimensions that an
// operator treats as equal get one name, and some operators know the meaning of
// their dimensions: token ids are [B, T], and an embedding's table is [V, C].
//
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

/// Describes a constant of the program.
struct Dimension {
  std::string name; ///< "T"
  std::int64_t size = 1;
  std::string meaning; ///< "positions of a sequence"
};

/// Holds a size, and the expression by which the program writes it ("B / dp").
struct Extent {
  std::int64_t value = 1;
  std::string text = "1";
};

class DimensionNames {
public:
  explicit DimensionNames(const runtime::Plan &thePlan);

  /// Returns the named dimensions, in the order in which they are declared.
  const std::vector<Dimension> &all() const { return dimensions; }

  /// Returns the size of a tensor's dimension on one rank of the stage.
  Extent local(std::size_t stage, const runtime::Tensor &tensor,
               std::size_t dimension) const;
  /// Returns the size of a tensor's dimension over all ranks.
  Extent global(std::size_t stage, const runtime::Tensor &tensor,
                std::size_t dimension) const;

  /// Returns the constant with this value that is called `name`, or `name` and
  /// a number ("V2"). Without such a constant, returns the value's digits.
  std::string known(const std::string &name, std::int64_t value) const;

  /// Returns the limit of an input's integers: the constant of the vocabulary
  /// or, for the input "types", that of the token types.
  std::string limitOf(const runtime::Input &input) const;
  /// Returns the constant that holds the number of ranks along an axis.
  const std::string &axis(int which) const;

private:
  /// Stage, buffer, global shape and dimension identify a tensor's dimension.
  using Key =
      std::tuple<std::size_t, int, std::vector<std::int64_t>, std::size_t>;
  /// Holds a tensor, and the number of its stage.
  struct Place {
    std::size_t stage;
    const runtime::Tensor *tensor;
  };

  /// Records the split of a tensor over ranks. A plan states a split only where
  /// an instruction needs it. Other tensors of the same buffer and shape are
  /// assumed to have the same split.
  void learnSplit(const Place &place);
  /// An operand of `accumulate` has the same split as the result. If only one
  /// of the two splits is known, records it for the other tensor.
  void learnSplitOfSum(std::size_t stage,
                       const runtime::Instruction &instruction);
  /// An all-gather or a reduce-scatter over one axis has a shard and a complete
  /// tensor. Derives the shard's split from the split of the complete tensor,
  /// or the reverse if only the shard's split is known.
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
  /// Returns the constant of this name and size, which may be a new one. If the
  /// name has another size already, a number is appended to the name.
  std::string constant(const Dimension &wanted);
  Extent written(std::size_t stage, const runtime::Tensor &tensor,
                 std::size_t dimension, bool isLocal) const;

  const runtime::Plan &plan;
  std::vector<std::string> axes;
  /// Maps stage, buffer and local shape to the axes that split each dimension.
  /// The axes are empty if tensors of the same key are split differently.
  std::map<std::tuple<std::size_t, int, std::vector<std::int64_t>>,
           std::vector<std::vector<int>>>
      splits;
  std::map<Key, std::size_t> nodes;
  std::vector<std::size_t> parents;
  std::vector<std::int64_t> sizes; ///< size over all ranks, by node
  /// Maps a root node to the constants whose product is the dimension's size.
  std::map<std::size_t, std::vector<std::string>> names;
  std::vector<Dimension> dimensions;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_DIMENSION_NAMES_H
