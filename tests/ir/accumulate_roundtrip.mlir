// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK-LABEL: @into_a_split_accumulator
mtp.segment @into_a_split_accumulator () {
  %x = mtp.parameter "x" : tensor<4x4xf32>
  // CHECK: mtp.accumulate "x", %{{.+}} : tensor<4x4xf32>
  mtp.accumulate "x", %x : tensor<4x4xf32>
  // CHECK: mtp.accumulate "y", %{{.+}} {layout = #mtp.layout<{{\[\[\], \[\]\]}}, partial = ["dp"]>} : tensor<4x4xf32>
  mtp.accumulate "y", %x {layout = #mtp.layout<[[], []], partial = ["dp"]>} : tensor<4x4xf32>
  mtp.yield
}
