// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// Four ranks have shards of 8 of a dimension of 32.
// CHECK-LABEL: @shorter_by_the_ranks
mtp.segment @shorter_by_the_ranks () {
  %x = mtp.parameter "x" : tensor<2x4x32xf32>
  // CHECK: %{{.+}} = mtp.reduce_scatter %{{[a-z0-9_]+}} over "tp" dim 2 cause "fc" : (tensor<2x4x32xf32>) -> tensor<2x4x8xf32>
  %y = mtp.reduce_scatter %x over "tp" dim 2 cause "fc" : (tensor<2x4x32xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

// The collective takes the maximum over the ranks.
// CHECK-LABEL: @maximum
mtp.segment @maximum () {
  %x = mtp.parameter "x" : tensor<2x4x32xf32>
  // CHECK: %{{.+}} = mtp.reduce_scatter %{{[a-z0-9_]+}} over "tp" dim 2 max cause "fc" : (tensor<2x4x32xf32>) -> tensor<2x4x8xf32>
  %y = mtp.reduce_scatter %x over "tp" dim 2 max cause "fc" : (tensor<2x4x32xf32>) -> tensor<2x4x8xf32>
  mtp.yield
}

}
