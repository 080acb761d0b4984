// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 4>} {

// A partial sum becomes sharded.
// CHECK-LABEL: @partial_to_split
mtp.segment @partial_to_split () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.reshard %{{[a-z0-9_]+}} from <{{\[\[}}"dp"], [], [{{\]\]}}, partial = ["tp"]> to <{{\[\[}}"dp"], ["tp"], [{{\]\]}}> cause "fc" : tensor<2x4x8xf32>
  %y = mtp.reshard %x from <[["dp"], [], []], partial = ["tp"]> to <[["dp"], ["tp"], []]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}

// A partial maximum becomes replicated.
// CHECK-LABEL: @maximum_to_whole
mtp.segment @maximum_to_whole () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  // CHECK: %{{.+}} = mtp.reshard %{{[a-z0-9_]+}} from <{{\[\[}}], [], [{{\]\]}}, partial = ["tp"], max> to <{{\[\[}}], [], [{{\]\]}}> cause "fc" : tensor<2x4x8xf32>
  %y = mtp.reshard %x from <[[], [], []], partial = ["tp"], max> to <[[], [], []]> cause "fc" : tensor<2x4x8xf32>
  mtp.yield
}

}
