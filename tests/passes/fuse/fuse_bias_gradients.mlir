// RUN: mtplan-opt --mtp-fuse-bias-gradients --split-input-file %s > %t
// RUN: FileCheck %s < %t
// RUN: mtplan-opt --mtp-fuse-bias-gradients --mtp-verify-fused --split-input-file %t | diff - %t

// The sum and its epilogue move right after the product that reads the summed
// tensor, past unrelated operations.
// CHECK-LABEL: mtp.segment @added
// CHECK: mtp.einsum "fc.dw"
// CHECK-NEXT: mtp.accumulate "w"
// CHECK-NEXT: mtp.sum "fc.db"{{.*}}mtp.fused = "bias_gradient"
// CHECK-NEXT: mtp.accumulate "b"{{.*}}mtp.fused = "epilogue"
// CHECK-NEXT: mtp.scale "between"
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}
mtp.segment @added (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  mtp.accumulate "w", %dw {mtp.first_term = array<i64: 0>, mtp.fused = "epilogue"} : tensor<6x4xf32>
  %s = mtp.scale "between"(%x) by 2.0 : tensor<2x6xf32>
  %db = mtp.sum "fc.db"(%dy) : (tensor<2x4xf32>) -> tensor<4xf32>
  mtp.accumulate "b", %db {mtp.first_term = array<i64: 0>, mtp.fused = "epilogue"} : tensor<4xf32>
  mtp.yield %s, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}

// -----

// Gradients that are not accumulated are fused, too.
// CHECK-LABEL: mtp.segment @reduced
// CHECK: mtp.einsum "fc.dw"
// CHECK-NEXT: mtp.sum "fc.db"{{.*}}mtp.fused = "bias_gradient"
// CHECK-NEXT: mtp.scale "halved"
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}
mtp.segment @reduced (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %r = mtp.scale "halved"(%dw) by 0.5 : tensor<6x4xf32>
  %db = mtp.sum "fc.db"(%dy) : (tensor<2x4xf32>) -> tensor<4xf32>
  mtp.accumulate "w", %r : tensor<6x4xf32>
  mtp.accumulate "b", %db : tensor<4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}

// -----

// Not fused: only one of the product and the sum has an epilogue.
// CHECK-LABEL: mtp.segment @unlike
// CHECK-NOT: bias_gradient
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}
mtp.segment @unlike (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %db = mtp.sum "fc.db"(%dy) : (tensor<2x4xf32>) -> tensor<4xf32>
  mtp.accumulate "b", %db {mtp.fused = "epilogue"} : tensor<4xf32>
  mtp.accumulate "w", %dw : tensor<6x4xf32>
  mtp.yield %x, %dy : tensor<2x6xf32>, tensor<2x4xf32>
}

// -----

// Not fused: weight and bias gradient start their accumulators in different
// micro-batches, or only one of the two starts its accumulator here.
// CHECK-LABEL: mtp.segment @terms
// CHECK-NOT: bias_gradient
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  %dz = mtp.input "dz" dims ["batch", "other"] : tensor<2x4xf32>
  mtp.yield %x, %dy, %dz : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
mtp.segment @terms (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>, %dz : tensor<2x4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  mtp.accumulate "w", %dw {mtp.first_term = array<i64: 0>, mtp.fused = "epilogue"} : tensor<6x4xf32>
  %db = mtp.sum "fc.db"(%dy) : (tensor<2x4xf32>) -> tensor<4xf32>
  mtp.accumulate "b", %db {mtp.first_term = array<i64: 1>, mtp.fused = "epilogue"} : tensor<4xf32>
  %dv = mtp.einsum "fc2.dw" "bi,bo->io"(%x, %dz) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  mtp.accumulate "v", %dv {mtp.first_term = array<i64: 0>, mtp.fused = "epilogue"} : tensor<6x4xf32>
  %dc = mtp.sum "fc2.db"(%dz) : (tensor<2x4xf32>) -> tensor<4xf32>
  mtp.accumulate "c", %dc {mtp.fused = "epilogue"} : tensor<4xf32>
  mtp.yield %x, %dy, %dz : tensor<2x6xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}

// -----

// Not fused: the product reads %dy first, follows the sum, or has a bias.
// CHECK-LABEL: mtp.segment @operands
// CHECK-NOT: bias_gradient
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  %c = mtp.input "c" dims ["batch"] : tensor<4xf32>
  mtp.yield %x, %dy, %c : tensor<2x6xf32>, tensor<2x4xf32>, tensor<4xf32>
}
mtp.segment @operands (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>, %c : tensor<4xf32>) {
  %du = mtp.einsum "biased.dw" "bi,bo->io"(%x, %dy, %c) : (tensor<2x6xf32>, tensor<2x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  %dv = mtp.einsum "turned.dw" "bo,bi->io"(%dy, %x) : (tensor<2x4xf32>, tensor<2x6xf32>) -> tensor<6x4xf32>
  %db = mtp.sum "early.db"(%dy) : (tensor<2x4xf32>) -> tensor<4xf32>
  %dw = mtp.einsum "late.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  mtp.yield %x, %dy, %c : tensor<2x6xf32>, tensor<2x4xf32>, tensor<4xf32>
}

// -----

// Not fused: another gradient is added to accumulator "b" in between.
// CHECK-LABEL: mtp.segment @between
// CHECK-NOT: bias_gradient
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<2x6xf32>
  %dy = mtp.input "dy" dims ["batch", "other"] : tensor<2x4xf32>
  %c = mtp.input "c" dims ["batch"] : tensor<4xf32>
  mtp.yield %x, %dy, %c : tensor<2x6xf32>, tensor<2x4xf32>, tensor<4xf32>
}
mtp.segment @between (%x : tensor<2x6xf32>, %dy : tensor<2x4xf32>, %c : tensor<4xf32>) {
  %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  mtp.accumulate "w", %dw {mtp.fused = "epilogue"} : tensor<6x4xf32>
  mtp.accumulate "b", %c : tensor<4xf32>
  %db = mtp.sum "fc.db"(%dy) : (tensor<2x4xf32>) -> tensor<4xf32>
  mtp.accumulate "b", %db {mtp.fused = "epilogue"} : tensor<4xf32>
  mtp.yield %x, %dy, %c : tensor<2x6xf32>, tensor<2x4xf32>, tensor<4xf32>
}
