// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// The first rank of the axis keeps the tensor, others have zeros.
// CHECK-LABEL: @the_first_keeps
mtp.segment @the_first_keeps () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.mask %{{[a-z0-9_]+}} over "tp" cause "fc.bias" : tensor<2x4x8xf32>
  %y = mtp.mask %x over "tp" cause "fc.bias" : tensor<2x4x8xf32>
  mtp.yield
}

}
