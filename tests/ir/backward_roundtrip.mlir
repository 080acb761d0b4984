// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

mtp.segment @first () {
  %w = mtp.parameter "w" : tensor<4xf32>
  // CHECK: mtp.backward (%[[DW:.+]]: tensor<4xf32>) {
  mtp.backward (%dw: tensor<4xf32>) {
    // CHECK-NEXT: mtp.accumulate "w", %[[DW]] : tensor<4xf32>
    mtp.accumulate "w", %dw : tensor<4xf32>
    // CHECK-NEXT: mtp.yield{{$}}
    mtp.yield
  }
  mtp.yield %w : tensor<4xf32>
}

// The backward half reads values of the forward half directly.
// CHECK: mtp.segment @second (%[[X:.+]]: tensor<4xf32>) {
mtp.segment @second (%x: tensor<4xf32>) {
  %y = mtp.mul "square"(%x, %x) : tensor<4xf32>
  // CHECK: mtp.backward (%[[DY:.+]]: tensor<4xf32>) attributes {layouts = [#mtp.layout<{{\[\["dp"\]\]}}>]} {
  mtp.backward (%dy: tensor<4xf32>) attributes {layouts = [#mtp.layout<[["dp"]]>]} {
    // CHECK-NEXT: %[[DX:.+]] = mtp.mul "square.dx"(%[[X]], %[[DY]])
    %dx = mtp.mul "square.dx"(%x, %dy) : tensor<4xf32>
    // CHECK-NEXT: mtp.yield %[[DX]] : tensor<4xf32> {layouts = [#mtp.layout<{{\[\["dp"\]\]}}>]}
    mtp.yield %dx : tensor<4xf32> {layouts = [#mtp.layout<[["dp"]]>]}
  }
  mtp.yield %y : tensor<4xf32>
}
