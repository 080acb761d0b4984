//===- stage_tensors.h - Places as buffers and tensors ----------*- C++ -*-===//

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

/// By dimension, the axes of Plan::mesh that split it.
using Split = std::vector<std::vector<int>>;

/// Translates the places that passes/memory has assigned. Every array becomes
/// one buffer of the stage, named after the first value that is in it.
class StageTensors {
public:
  /// Both arguments must outlive the object, which adds to the stage's arenas
  /// and buffers.
  StageTensors(const ir::MeshView &theMesh, runtime::Stage &theStage)
      : mesh(theMesh), stage(theStage) {}

  runtime::Tensor tensorAt(ir::PlaceAttr place, mlir::Type type,
                           const std::string &name, Split split = {});
  /// Appends the tensors of `values`. Fails with a diagnostic if a value has no
  /// place.
  mlir::LogicalResult add(mlir::ValueRange values,
                          const std::vector<Split> &splits,
                          const std::string &name,
                          std::vector<runtime::Tensor> &tensors);
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

/// Returns the place of a value, or fails with a diagnostic.
mlir::FailureOr<ir::PlaceAttr> placeOf(mlir::Value value);

} // namespace mtplan::codegen

#endif // MTPLAN_CODEGEN_STAGE_TENSORS_H
