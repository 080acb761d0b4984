//===- stage_tensors.h - Buffers and tensors of a stage ---------*- C++ -*-===//

#ifndef MTPLAN_CODEGEN_STAGE_TENSORS_H
#define MTPLAN_CODEGEN_STAGE_TENSORS_H

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ir/interpret/ranks.h"
#include "ir/mtp.h"
#include "runtime/plan/plan.h"

namespace mtplan::codegen {

/// Lists, for each dimension of a tensor, the axes of Plan::mesh that shard it.
using Split = std::vector<std::vector<int>>;

/// Translates PlaceAttrs, which passes/memory writes, to tensors. PlaceAttrs
/// that describe the same array in an arena become one buffer of the stage. The
/// buffer is named after the first value that refers to the array.
class StageTensors {
public:
  /// Both arguments must outlive the object, which adds to the stage's arenas
  /// and buffers.
  StageTensors(const ir::MeshView &theMesh, runtime::Stage &theStage)
      : mesh(theMesh), stage(theStage) {}

  /// Returns a tensor of `type` in the memory that `place` describes. Adds a
  /// buffer called `name` if the stage has no buffer for this memory.
  runtime::Tensor tensorAt(ir::PlaceAttr place, mlir::Type type,
                           const std::string &name, Split split = {});
  mlir::LogicalResult add(mlir::ValueRange values,
                          const std::vector<Split> &splits,
                          const std::string &name,
                          std::vector<runtime::Tensor> &tensors);
  /// Returns the axes of `layout` by dimension; a null layout shards nothing.
  Split splitBy(ir::LayoutAttr layout) const;

private:
  int arenaOf(llvm::StringRef name);
  int bufferOf(ir::PlaceAttr place, const std::string &name);

  const ir::MeshView &mesh;
  runtime::Stage &stage;
  std::map<std::string, int> arenas;
  std::map<std::tuple<int, std::int64_t, std::int64_t, std::int64_t,
                      std::int64_t, std::int64_t, std::int64_t>,
           int>
      buffers;
};

mlir::FailureOr<ir::PlaceAttr> placeOf(mlir::Value value);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STAGE_TENSORS_H
