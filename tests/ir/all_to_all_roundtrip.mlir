// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// Features become replicated and positions sharded.
// CHECK-LABEL: @heads_for_positions
mtp.segment @heads_for_positions () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.all_to_all %{{[a-z0-9_]+}} over "tp" split 1 join 2 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x1x32xf32>
  %y = mtp.all_to_all %x over "tp" split 1 join 2 cause "core" : (tensor<2x4x8xf32>) -> tensor<2x1x32xf32>
  mtp.yield
}

}
