// RUN: mtplan-opt --mtp-fuse-epilogues --split-input-file %s > %t
// RUN: FileCheck %s < %t
// RUN: mtplan-opt --mtp-fuse-epilogues --mtp-verify-fused --split-input-file %t | diff - %t

// An activation and an add move right after the product whose result they read;
// a parameter that the add reads moves before the product.
// CHECK-LABEL: mtp.segment @forward
// CHECK: mtp.einsum "fc1"
// CHECK-NEXT: mtp.activation "act" {{.*}}mtp.fused = "epilogue"
// CHECK-NEXT: mtp.scale "apart"
// CHECK-NEXT: %[[B:.+]] = mtp.parameter "b"
// CHECK-NEXT: mtp.einsum "fc2"
// CHECK-NEXT: mtp.add "add"{{.*}}%[[B]]{{.*}}mtp.fused = "epilogue"
// CHECK-NEXT: mtp.scale "last"
// CHECK-NEXT: mtp.dropout "drop"
// CHECK-NEXT: mtp.add "residual"{{.*}}mtp.fused = "epilogue"
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @forward (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  %u = mtp.einsum "fc1" "bi,io->bo"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %s = mtp.scale "apart"(%x) by 2.0 : tensor<4x4xf32>
  %a = mtp.activation "act" gelu(%u) : tensor<4x4xf32>
  %y = mtp.einsum "fc2" "bi,io->bo"(%a, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %t = mtp.scale "last"(%s) by 2.0 : tensor<4x4xf32>
  %b = mtp.parameter "b" : tensor<4x4xf32>
  %z = mtp.add "add"(%y, %b) : tensor<4x4xf32>
  %d = mtp.dropout "drop"(%z) {rate = 0.1 : f64, mask = "m"} : tensor<4x4xf32>
  %r = mtp.add "residual"(%d, %t) : tensor<4x4xf32>
  mtp.yield %r : tensor<4x4xf32>
}

// -----

// An add of two products is the epilogue of the first, which moves after the
// second and right before the add.
// CHECK-LABEL: mtp.segment @two
// CHECK: mtp.einsum "k"
// CHECK-NEXT: mtp.einsum "q"
// CHECK-NEXT: mtp.add "add"{{.*}}mtp.fused = "epilogue"
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @two (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  %q = mtp.einsum "q" "bi,io->bo"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %k = mtp.einsum "k" "bi,io->bo"(%w, %x) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = mtp.add "add"(%q, %k) : tensor<4x4xf32>
  mtp.yield %z : tensor<4x4xf32>
}

// -----

// A result with several uses may only have an activation as its epilogue, and a
// product whose result is read before the consumer is not moved.
// CHECK-LABEL: mtp.segment @read
// CHECK-NOT: mtp.fused
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @read (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  %y = mtp.einsum "fc" "bi,io->bo"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = mtp.add "add"(%y, %x) : tensor<4x4xf32>
  %r = mtp.add "again"(%y, %z) : tensor<4x4xf32>
  mtp.yield %r : tensor<4x4xf32>
}

// -----

// An activation's gradient, gradient accumulation, and an add after a norm's
// gradient are epilogues. Two additions to one accumulator keep their order.
// CHECK-LABEL: mtp.segment @backward
// CHECK: mtp.einsum "fc.dx"
// CHECK-NEXT: mtp.activation_grad "act.dx"{{.*}}mtp.fused = "epilogue"
// CHECK-NEXT: mtp.einsum "fc.dw"
// CHECK-NEXT: mtp.accumulate "w"{{.*}}mtp.fused = "epilogue"
// CHECK-NEXT: mtp.sum "fc.db"
// CHECK-NEXT: mtp.accumulate "b"{{.*}}mtp.fused = "epilogue"
// CHECK-NEXT: mtp.accumulate "w"
// CHECK-NOT: mtp.fused
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
  mtp.backward (%dx : tensor<4x4xf32>) {
    mtp.yield
  }
  mtp.yield %x : tensor<4x4xf32>
}
mtp.segment @backward (%x : tensor<4x4xf32>) {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  %b = mtp.parameter "b" : tensor<4xf32>
  %y = mtp.einsum "fc" "bi,io->bo"(%x, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  mtp.backward (%dy : tensor<4x4xf32>) {
    %dx = mtp.einsum "fc.dx" "bo,io->bi"(%dy, %w) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %dw = mtp.einsum "fc.dw" "bi,bo->io"(%x, %dy) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %db = mtp.sum "fc.db"(%dy) : (tensor<4x4xf32>) -> tensor<4xf32>
    %da = mtp.activation_grad "act.dx" gelu(%x, %dx) : tensor<4x4xf32>
    mtp.accumulate "w", %dw : tensor<4x4xf32>
    mtp.accumulate "b", %db : tensor<4xf32>
    mtp.accumulate "w", %da : tensor<4x4xf32>
    mtp.yield %da : tensor<4x4xf32>
  }
  mtp.yield %y : tensor<4x4xf32>
}
