//===- stage_names.h - How a program speaks of a stage's tensors *- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H
#define MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H

#include <string>
#include <vector>

#include "codegen/source/dimension_names.h"
#include "codegen/source/setting_names.h"
#include "runtime/backend/tensor_view.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// A constant: the number of a stage's first layer in the model.
struct FirstLayer {
  std::string name;
  int layer;
};

/// Writes the tensors of one stage as expressions of the program.
class StageNames {
public:
  /// \param theDimensions  outlives the object, like theSettings
  StageNames(const runtime::Plan &thePlan, std::size_t theStage,
             const DimensionNames &theDimensions,
             const SettingNames &theSettings);

  /// Returns "now.f32(buf::h_ln_1, now.layer)".
  std::string tensor(const runtime::Tensor &tensor) const;
  /// Returns the same for another name of the buffer: "now.f32(row.tensor)".
  std::string reference(const runtime::Tensor &tensor,
                        const std::string &buffer) const;
  /// Returns the same as a pointer to i32.
  std::string integers(const runtime::Tensor &tensor) const;
  /// Returns a dimension's size on this rank: "B / dp".
  std::string extent(const runtime::Tensor &tensor, std::size_t dim) const {
    return local(tensor, dim).text;
  }
  Extent local(const runtime::Tensor &tensor, std::size_t dim) const {
    return dimensions.local(number, tensor, dim);
  }
  /// Returns the product of the sizes of dimensions [first, end) on this rank:
  /// "B / dp * T * C".
  std::string elements(const runtime::Tensor &tensor, std::size_t first = 0,
                       std::size_t end = std::string::npos) const;
  /// Returns a number as a product of neighbouring dimensions of a tensor, the
  /// last that make it; as digits, if none do.
  std::string product(std::int64_t count, const runtime::Tensor &tensor) const;
  /// Returns where this rank's piece of a dimension begins:
  /// "now.at(kAxis_tp) * (T / tp)".
  std::string offset(const runtime::Tensor &tensor, std::size_t dim) const;
  /// Returns this rank's shard: "now.shard(T, {kAxis_tp})", "{0, C}".
  std::string span(const runtime::Tensor &tensor, std::size_t dim) const;
  /// Returns "{f32, {C}, {{0, C}}}".
  std::string view(const runtime::Tensor &tensor) const;
  /// Returns "f32 [B/dp, T, C]", for comments.
  std::string shape(const runtime::Tensor &tensor) const;
  /// Returns the constant that numbers an axis: "kAxis_tp".
  std::string axis(int axis) const;

  /// Returns a dimension's extent over all ranks.
  Extent whole(const runtime::Tensor &tensor, std::size_t dim) const {
    return dimensions.global(number, tensor, dim);
  }
  /// Returns the constant of this name and value, or digits.
  std::string known(const std::string &name, std::int64_t value) const {
    return dimensions.known(name, value);
  }
  /// Whether the program has a constant of this name and value.
  bool isConstant(const std::string &name, std::int64_t value) const;
  /// Returns this rank's place among those that split a dimension.
  std::string place(const runtime::Tensor &tensor, std::size_t dim) const;

  /// Returns the model's layer of a run: "now.layer", "firstLayer + now.layer".
  /// \param firstCopy  as of runtime::Program
  std::string layerOf(int firstCopy) const;
  const std::vector<FirstLayer> &firstLayers() const { return starts; }

  /// Returns the constant that stands for a setting, or its digits.
  std::string real(const std::string &setting, double value) const {
    return settings.of(setting, value);
  }

  const std::string &buffer(std::size_t index) const { return buffers[index]; }
  /// Returns the bytes from one tensor's buffer to another's.
  std::int64_t apart(const runtime::Tensor &from,
                     const runtime::Tensor &to) const;
  /// Whether two tensors may share bytes in a run.
  bool overlap(const runtime::Tensor &a, const runtime::Tensor &b) const;
  /// Whether they may be one tensor, or a part of one, rather than tensors that
  /// use the same bytes by turns.
  bool isPartOf(const runtime::Tensor &a, const runtime::Tensor &b) const;
  std::int64_t ranksAlong(const runtime::Tensor &tensor, std::size_t dim) const;

private:
  void addFirstLayer(int layer);
  std::string reference(const std::string &how, const std::string &buffer,
                        const runtime::Tensor &tensor) const;

  const runtime::Plan &plan;
  const std::size_t number;
  const runtime::Stage &stage;
  const DimensionNames &dimensions;
  const SettingNames &settings;
  std::vector<std::string> buffers;
  std::vector<FirstLayer> starts;
};

/// Returns the product of factors, without those that are 1: "B / dp * T".
std::string productText(const std::vector<std::string> &factors);
/// Returns an expression in parentheses, where it needs them as a factor.
std::string grouped(const std::string &expression);
std::string typeText(runtime::ElementType type); ///< "f32"
std::int64_t elementsOf(const runtime::Tensor &tensor);
/// Returns the bytes of a tensor among others, rounded up as runtime/cuda does.
std::int64_t roomFor(const runtime::Tensor &tensor);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H
