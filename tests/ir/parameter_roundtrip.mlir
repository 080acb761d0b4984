// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK-LABEL: @every_init
mtp.segment @every_init () {
  // The default, "normal", is not printed.
  // CHECK: mtp.parameter "a" : tensor<4x4xf32>
  %a = mtp.parameter "a" {init = "normal"} : tensor<4x4xf32>
  // CHECK: mtp.parameter "b" {init = "residual"} : tensor<4x4xf32>
  %b = mtp.parameter "b" {init = "residual"} : tensor<4x4xf32>
  // CHECK: mtp.parameter "c" {init = "ones"} : tensor<4xf32>
  %c = mtp.parameter "c" {init = "ones"} : tensor<4xf32>
  // CHECK: mtp.parameter "d" {init = "zeros"} : tensor<4xf32>
  %d = mtp.parameter "d" {init = "zeros"} : tensor<4xf32>
  mtp.yield
}

// CHECK-LABEL: @stored_split
mtp.segment @stored_split () {
  // CHECK: mtp.parameter "e" {layout = #mtp.layout<{{\[\["tp", "dp"\], \[\]\]}}>} : tensor<4x4xf32>
  %e = mtp.parameter "e" {layout = #mtp.layout<[["tp", "dp"], []]>} : tensor<4x4xf32>
  mtp.yield
}

// CHECK-LABEL: @padded
mtp.segment @padded () {
  // CHECK: mtp.parameter "f" {unpadded = array<i64: 3, 4>} : tensor<4x4xf32>
  %f = mtp.parameter "f" {unpadded = array<i64: 3, 4>} : tensor<4x4xf32>
  mtp.yield
}

// A tied parameter is read in two segments.
// CHECK-LABEL: @tied
mtp.segment @tied () {
  // CHECK: mtp.parameter "a" : tensor<4x4xf32>
  %a = mtp.parameter "a" : tensor<4x4xf32>
  mtp.yield
}
