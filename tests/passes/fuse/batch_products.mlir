// RUN: mtplan-opt --mtp-batch-products --mtp-verify-fused --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-batch-products --mtp-batch-products --split-input-file %s | FileCheck %s

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x8xf32>
  mtp.yield %x : tensor<4x8xf32>
}

// The query, key and value products of one input are a batch, and so are the
// gradients of their weights. Products of other shapes or inputs are not.
// CHECK-LABEL: mtp.segment @attention
mtp.segment @attention (%x : tensor<4x8xf32>) {
  %wq = mtp.parameter "q" : tensor<8x8xf32>
  %wk = mtp.parameter "k" : tensor<8x8xf32>
  %wv = mtp.parameter "v" : tensor<8x8xf32>
  %wide = mtp.parameter "wide" : tensor<8x16xf32>
  // CHECK: mtp.einsum "q"{{.*}}mtp.batch = 0
  %q = mtp.einsum "q" "bi,io->bo"(%x, %wq) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: mtp.einsum "k"{{.*}}mtp.batch = 0
  %k = mtp.einsum "k" "bi,io->bo"(%x, %wk) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: mtp.einsum "wide"
  // CHECK-NOT: mtp.batch
  %u = mtp.einsum "wide" "bi,io->bo"(%x, %wide) : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  // CHECK-NEXT: mtp.einsum "v"{{.*}}mtp.batch = 0
  %v = mtp.einsum "v" "bi,io->bo"(%x, %wv) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  // CHECK-NEXT: mtp.einsum "other"
  // CHECK-NOT: mtp.batch
  %o = mtp.einsum "other" "bi,io->bo"(%v, %wv) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  mtp.backward (%dy : tensor<4x8xf32>) {
    %a = mtp.scale "a"(%dy) by 0.5 : tensor<4x8xf32>
    %b = mtp.scale "b"(%dy) by 0.25 : tensor<4x8xf32>
    // CHECK: mtp.einsum "dq"{{.*}}mtp.batch = 0
    // CHECK-NEXT: mtp.accumulate "q"
    %dq = mtp.einsum "dq" "bi,bo->io"(%x, %a) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    mtp.accumulate "q", %dq {mtp.fused = "epilogue"} : tensor<8x8xf32>
    // CHECK: mtp.einsum "dk"{{.*}}mtp.batch = 0
    %dk = mtp.einsum "dk" "bi,bo->io"(%x, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    mtp.accumulate "k", %dk {mtp.fused = "epilogue"} : tensor<8x8xf32>
    // This product has no epilogue, unlike the others.
    // CHECK: mtp.einsum "dv"
    // CHECK-NOT: mtp.batch
    // CHECK: mtp.yield
    %dv = mtp.einsum "dv" "bi,bo->io"(%x, %dy) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %twice = mtp.scale "twice"(%dv) by 2.0 : tensor<8x8xf32>
    mtp.accumulate "v", %twice : tensor<8x8xf32>
    mtp.yield %dy : tensor<4x8xf32>
  }
  mtp.yield %o : tensor<4x8xf32>
}

// -----

mtp.segment @in () {
  %x = mtp.input "x" dims ["batch", "other"] : tensor<4x8xf32>
  mtp.yield %x : tensor<4x8xf32>
}

// A product is not batched if it reads the result of another, if its operand is
// computed after the first product, or if its accumulator changes in between.
// CHECK-LABEL: mtp.segment @chain
// CHECK-NOT: mtp.batch
mtp.segment @chain (%x : tensor<4x8xf32>) {
  %w = mtp.parameter "w" : tensor<8x8xf32>
  %v = mtp.parameter "v" : tensor<8x8xf32>
  %y = mtp.einsum "y" "bi,io->bo"(%x, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %z = mtp.einsum "z" "bi,io->bo"(%y, %w) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  mtp.backward (%dy : tensor<4x8xf32>) {
    %a = mtp.einsum "dw" "bi,bo->io"(%x, %dy) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    mtp.accumulate "w", %a {mtp.fused = "epilogue"} : tensor<8x8xf32>
    %late = mtp.scale "late"(%dy) by 0.5 : tensor<4x8xf32>
    %b = mtp.einsum "dv" "bi,bo->io"(%x, %late) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    mtp.accumulate "v", %b {mtp.fused = "epilogue"} : tensor<8x8xf32>
    mtp.yield %dy : tensor<4x8xf32>
  }
  mtp.yield %z : tensor<4x8xf32>
}
