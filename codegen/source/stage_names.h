//===- stage_names.h - A stage's tensors as expressions ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H
#define MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/source/dimension_names.h"
#include "codegen/source/setting_names.h"
#include "runtime/backend/tensor_view.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Describes a constant of the stage. Functions that several stages share read
/// the constant by name, and each stage has its own value.
struct StageConstant {
  std::string name;    ///< "layers"
  std::string value;   ///< "14"
  std::string meaning; ///< for a comment
};

/// Describes a buffer of which a layer does not use the entry with the layer's
/// own number. Layer now.layer uses entry first + step * now.layer, modulo the
/// number of entries. Messages have views, too.
struct BufferView {
  std::string name; ///< "h_1_output"
  int buffer, first, step;
  bool isMessage; ///< sent or received; named, e.g., "sent_activation"
};

/// Writes the tensors of one stage as expressions of the program.
class StageNames {
public:
  /// The plan, the dimensions and the settings must outlive the object.
  /// \param inFlight  the number of forward runs before the first backward
  StageNames(const runtime::Plan &thePlan, std::size_t theStage, int inFlight,
             const DimensionNames &theDimensions,
             const SettingNames &theSettings);

  /// Returns a tensor of the current run: "now[buf::h_ln_1]".
  std::string tensor(const runtime::Tensor &tensor) const;
  /// Returns a tensor that is sent or received: "now[buf::sent_activation]".
  /// All stages use the same name, so that stages can share the function.
  std::string message(const runtime::Tensor &tensor) const;
  /// Returns a tensor as a pointer to 32-bit integers: "integers(...)".
  std::string integers(const runtime::Tensor &tensor) const;
  /// Returns a dimension's size on this rank: "B / dp".
  std::string extent(const runtime::Tensor &tensor, std::size_t dim) const {
    return local(tensor, dim).text;
  }
  Extent local(const runtime::Tensor &tensor, std::size_t dim) const {
    return dimensions.local(number, tensor, dim);
  }
  /// Returns the product of dimensions [first, end) on this rank, such as
  /// "B / dp * T * C".
  std::string elements(const runtime::Tensor &tensor, std::size_t first = 0,
                       std::size_t end = std::string::npos) const;
  /// Returns `count` as a product of adjacent dimensions of a tensor. If
  /// several products equal `count`, the last one is chosen. If no product
  /// does, the result is `count` as a literal.
  std::string product(std::int64_t count, const runtime::Tensor &tensor) const;
  /// Returns the index at which this rank's shard of a dimension begins:
  /// "now.at(kAxis_tp) * (T / tp)".
  std::string offset(const runtime::Tensor &tensor, std::size_t dim) const;
  /// Returns this rank's shard of a dimension as a runtime::Span:
  /// "now.shard(T, {kAxis_tp})", or "{0, C}" if the dimension is not sharded.
  std::string span(const runtime::Tensor &tensor, std::size_t dim) const;
  /// Returns the members of a runtime::TensorView (type, local sizes, shards):
  /// "{f32, {C}, {{0, C}}}".
  std::string view(const runtime::Tensor &tensor) const;
  /// Returns "f32 [B/dp, T, C]", for comments.
  std::string shape(const runtime::Tensor &tensor) const;
  /// Returns the constant for the number of an axis: "kAxis_tp".
  std::string axis(int axis) const;

  /// Returns a dimension's size over all ranks.
  Extent whole(const runtime::Tensor &tensor, std::size_t dim) const {
    return dimensions.global(number, tensor, dim);
  }
  std::string known(const std::string &name, std::int64_t value) const {
    return dimensions.known(name, value);
  }
  bool isConstant(const std::string &name, std::int64_t value) const;
  /// Returns this rank's shard number in a sharded dimension:
  /// "now.at(kAxis_tp)".
  std::string place(const runtime::Tensor &tensor, std::size_t dim) const;

  /// Returns the current layer's number in the model: "now.layer" or
  /// "buf::firstLayer + now.layer". Returns "0" if the operator or parameter
  /// `label` is not in a repeated layer.
  /// \param firstCopy  the same as in runtime::Program
  std::string layerOf(std::string_view label, int firstCopy) const;
  /// Returns a count of layers, or a layer's number, as text. The text is "L"
  /// for all layers of the model, "L / pp" for the layers of one of `pp` equal
  /// stages, and "buf::layers" for a constant of the stage.
  std::string layers(int layer) const;
  /// Returns the constant for the point-to-point connection with another stage:
  /// "buf::lineToNext".
  std::string line(bool sends, int other, bool isGradient) const;
  /// Returns a word for another stage: "next", "previous" or "stage7". The
  /// first stage follows the last one, because interleaved schedules wrap
  /// around. If there are two stages, each is both next and previous to the
  /// other. In this case, activations go to the next stage and gradients to the
  /// previous stage.
  std::string peer(bool sends, int other, bool isGradient) const;
  /// Returns peer() for a sentence: "the next stage", "stage 7".
  std::string peerStage(bool sends, int other, bool isGradient) const;
  const std::vector<StageConstant> &constants() const { return all; }
  /// Returns the constant Buffer in which the entry of the current layer is the
  /// tensor: "buf::h_ln_1", "buf::x.as(f32)".
  std::string bufferOf(const runtime::Tensor &tensor) const;

  /// Returns the constant for this value of a setting, or the value as a
  /// literal.
  std::string real(const std::string &setting, double value) const {
    return settings.of(setting, value);
  }

  const std::string &buffer(std::size_t index) const { return buffers[index]; }
  /// Returns the name of the buffer or view of a tensor.
  const std::string &memberOf(const runtime::Tensor &tensor) const;
  const std::vector<BufferView> &bufferViews() const { return views; }
  std::vector<std::string> memberNames() const;
  /// Returns the first tensor of the stage that uses a buffer, or null. The
  /// program declares the buffer with this tensor's element type.
  const runtime::Tensor *firstUse(std::size_t buffer) const {
    return firstUses[buffer];
  }
  /// Returns the distance in bytes between the buffers of two tensors.
  std::int64_t apart(const runtime::Tensor &from,
                     const runtime::Tensor &to) const;
  /// Returns whether two tensors may share bytes in one run.
  bool overlap(const runtime::Tensor &a, const runtime::Tensor &b) const;
  /// Returns whether `a` and `b` are the same tensor, or one of them is a part
  /// of the other. Returns false if the tensors are unrelated and only use the
  /// same bytes at different times.
  bool isPartOf(const runtime::Tensor &a, const runtime::Tensor &b) const;
  std::int64_t ranksAlong(const runtime::Tensor &tensor, std::size_t dim) const;

private:
  const BufferView *viewOf(const runtime::Tensor &tensor, bool isMessage) const;
  std::string asBuffer(const std::string &member,
                       const runtime::Tensor &tensor) const;
  void addFirstLayers();
  void findShare();
  void addLayers();
  void addLines();
  void addViews(std::set<std::string> &taken);
  void addFirstUses();

  const runtime::Plan &plan;
  const std::size_t number;
  const runtime::Stage &stage;
  const DimensionNames &dimensions;
  const SettingNames &settings;
  std::vector<std::string> buffers;
  std::vector<const runtime::Tensor *> firstUses; ///< by buffer
  std::vector<BufferView> views;
  std::vector<std::pair<int, std::string>> starts; ///< first layer, constant
  std::vector<std::pair<int, std::string>> counts; ///< layers, constant
  int share = 0; ///< layers of each stage if all have equally many, else 0
  std::vector<StageConstant> all;
};

/// Returns the product of expressions without factors "1": "B / dp * T".
std::string productText(const std::vector<std::string> &factors);
/// Returns an expression in parentheses unless it is a single word.
std::string grouped(const std::string &expression);
std::string typeText(runtime::ElementType type); ///< "f32"
std::int64_t elementsOf(const runtime::Tensor &tensor);
/// Returns a tensor's bytes, rounded up to a multiple of 256 as in
/// runtime/cuda.
std::int64_t roomFor(const runtime::Tensor &tensor);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_SOURCE_STAGE_NAMES_H
