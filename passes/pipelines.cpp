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
  manager.addPass(createBatchProductsPass());
  manager.addPass(createVerifyFusedPass());
  manager.addPass(createGatherBlocksPass());
  if (options.gathersAhead)
    manager.addPass(createGatherAheadPass());
  if (options.overlapsReductions)
    manager.addPass(createOverlapReductionsPass());
  OrderUpdatePassOptions order;
  order.offloads = options.offloads;
  manager.addPass(createOrderUpdatePass(order));
  AssignStreamsPassOptions streams;
  streams.offloads = options.offloads;
  manager.addPass(createAssignStreamsPass(streams));
  manager.addPass(createGroupCollectivesPass());
  manager.addPass(createBatchUpdatesPass());
  manager.addPass(createVerifyStreamsPass());
  PlaceMemoryPassOptions places;
  places.gradientBytes = options.gradientBytes;
  places.offloads = options.offloads;
  manager.addPass(createPlaceMemoryPass(places));
}

} // namespace mtplan::passes
