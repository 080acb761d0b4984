// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// The collective sums over the innermost mesh axis.
// CHECK-LABEL: @sum
mtp.segment @sum () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.all_reduce %{{[a-z0-9_]+}} over "tp" cause "fc" : tensor<2x4x8xf32>
  %y = mtp.all_reduce %x over "tp" cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}

// The collective takes the maximum over the ranks.
// CHECK-LABEL: @maximum
mtp.segment @maximum () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.all_reduce %{{[a-z0-9_]+}} over "dp" max cause "fc" : tensor<2x4x8xf32>
  %y = mtp.all_reduce %x over "dp" max cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}

}
