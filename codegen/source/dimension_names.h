//===- dimension_names.h - Names for the sizes in a program -----*- C++ -*-===//
//
// A program says `B / dp * T * C`, not 512. Sizes get their names from what
// dimensions mean, not from their values: dimensions that an operator treats
// as one are the same dimension, and some operators know what theirs is (the
// ids are [B, T], an embedding's table is [V, C]).
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

/// A constant of the program.
struct Dimension {
  std::string name; ///< "T"
  std::int64_t size = 1;
  std::string meaning; ///< "positions of a sequence"
};

/// An extent: its value, and how the program writes it ("B / dp").
struct Extent {
  std::int64_t value = 1;
  std::string text = "1";
};

class DimensionNames {
public:
  explicit DimensionNames(const runtime::Plan &thePlan);

  /// Returns the named dimensions, in the order in which they are declared.
  const std::vector<Dimension> &all() const { return dimensions; }

  /// Returns what a rank of the stage has of a tensor's dimension.
  Extent local(std::size_t stage, const runtime::Tensor &tensor,
               std::size_t dimension) const;
  /// Returns the extent over all ranks.
  Extent global(std::size_t stage, const runtime::Tensor &tensor,
                std::size_t dimension) const;

  /// Returns the constant of this value whose name starts with `name` and goes
  /// on with nothing but a number, or the value's digits.
  std::string known(const std::string &name, std::int64_t value) const;
  /// Returns the constant that holds an axis's size.
  const std::string &axis(int which) const;

private:
  /// Stage, buffer, global shape and dimension identify a tensor's dimension.
  using Key =
      std::tuple<std::size_t, int, std::vector<std::int64_t>, std::size_t>;
  /// A dimension of a tensor of a stage.
  struct Place {
    std::size_t stage;
    const runtime::Tensor *tensor;
  };

  /// The plan says how a tensor is split only where an instruction needs it;
  /// others that have the same buffer and shape are split likewise.
  void learnSplit(const Place &place);
  /// A collective over one axis splits a dimension, or undoes that.
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
  /// Returns the constant of this name and size, a new one where need be.
  std::string constant(const Dimension &wanted);
  Extent written(std::size_t stage, const runtime::Tensor &tensor,
                 std::size_t dimension, bool isLocal) const;

  const runtime::Plan &plan;
  std::vector<std::string> axes;
  /// By stage, buffer and local shape. Empty: there are several.
  std::map<std::tuple<std::size_t, int, std::vector<std::int64_t>>,
           std::vector<std::vector<int>>>
      splits;
  std::map<Key, std::size_t> nodes;
  std::vector<std::size_t> parents;
  std::vector<std::int64_t> sizes; ///< by node, over all ranks
  /// By root: constants whose product is the dimension's size.
  std::map<std::size_t, std::vector<std::string>> names;
  std::vector<Dimension> dimensions;
};

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_DIMENSION_NAMES_H
