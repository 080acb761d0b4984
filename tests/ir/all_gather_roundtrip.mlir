// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// Four shards of 8 make a dimension of 32.
// CHECK-LABEL: @longer_by_the_ranks
mtp.segment @longer_by_the_ranks () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.all_gather %{{[a-z0-9_]+}} over "tp" dim 2 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  %y = mtp.all_gather %x over "tp" dim 2 cause "fc" : (tensor<2x4x8xf32>) -> tensor<2x4x32xf32>
  mtp.yield
}

}
