//===- pipelines.cpp - From a partitioned step to a placed one ------------===//

#include "passes/pipelines.h"

#include "passes/passes.h"

namespace mtplan::passes {

void buildPlacement(mlir::OpPassManager &manager,
                    const PlacementOptions &options) {
  manager.addPass(createSeparateCarriedPass());
  BeginSumsPassOptions sums;
  sums.sumsPerUse = options.sumsPerUse;
  manager.addPass(createBeginSumsPass(sums));
  manager.addPass(createFuseEpiloguesPass());
  manager.addPass(createFuseBiasGradientsPass());
  manager.addPass(createVerifyFusedPass());
  AssignStreamsPassOptions streams;
  streams.offloads = options.offloads;
  manager.addPass(createAssignStreamsPass(streams));
  manager.addPass(createVerifyStreamsPass());
  PlaceMemoryPassOptions places;
  places.gradientBytes = options.gradientBytes;
  places.scattersEarly = options.scattersEarly;
  places.offloads = options.offloads;
  manager.addPass(createPlaceMemoryPass(places));
}

} // namespace mtplan::passes
