// RUN: mtplan-opt --mtp-fuse-epilogues --mtp-batch-products --mtp-place-memory --split-input-file %s | FileCheck %s

// The operands of a batch are adjacent, in the order of its products, although
// the second product's operand is computed first.
// CHECK-LABEL: mtp.segment @h
// CHECK: mtp.scale "h.a"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = [[#%u,AT:]],
// CHECK: mtp.scale "h.b"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = [[#AT - 256]],
// CHECK: mtp.einsum "h.dv"
// CHECK-SAME: mtp.batch = 0
// CHECK: mtp.einsum "h.dw"
// CHECK-SAME: mtp.batch = 0
module attributes {mtp.partitioned, mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 0, 1, 0>]} {
  mtp.segment @h () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<8x8xbf16>
    %v = mtp.parameter "v" : tensor<8x8xbf16>
    %w = mtp.parameter "w" : tensor<8x8xbf16>
    %y = mtp.einsum "h.fc" "bi,io->bo"(%x, %w) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    mtp.backward () {
      %a = mtp.scale "h.a"(%y) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      %b = mtp.scale "h.b"(%y) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      %dv = mtp.einsum "h.dv" "bi,bo->io"(%x, %b) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "v", %dv : tensor<8x8xbf16>
      %dw = mtp.einsum "h.dw" "bi,bo->io"(%x, %a) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "w", %dw : tensor<8x8xbf16>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %g = mtp.accumulated "v" : tensor<8x8xbf16>
    mtp.adamw "v", %g {decay} : tensor<8x8xbf16>
    %h = mtp.accumulated "w" : tensor<8x8xbf16>
    mtp.adamw "w", %h {decay} : tensor<8x8xbf16>
  }
}

// -----

// Products are no batch if one ends before the other's operand is computed.
// CHECK-LABEL: mtp.segment @h
// CHECK: mtp.scale "h.a"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = [[#%u,AT:]],
// CHECK: mtp.scale "h.b"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = [[#AT]],
module attributes {mtp.partitioned, mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 0, 1, 0>]} {
  mtp.segment @h () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<8x8xbf16>
    %v = mtp.parameter "v" : tensor<8x8xbf16>
    %w = mtp.parameter "w" : tensor<8x8xbf16>
    %y = mtp.einsum "h.fc" "bi,io->bo"(%x, %w) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    mtp.backward () {
      %a = mtp.scale "h.a"(%y) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      %dv = mtp.einsum "h.dv" "bi,bo->io"(%x, %a) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "v", %dv : tensor<8x8xbf16>
      %b = mtp.scale "h.b"(%y) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      %dw = mtp.einsum "h.dw" "bi,bo->io"(%x, %b) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "w", %dw : tensor<8x8xbf16>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %g = mtp.accumulated "v" : tensor<8x8xbf16>
    mtp.adamw "v", %g {decay} : tensor<8x8xbf16>
    %h = mtp.accumulated "w" : tensor<8x8xbf16>
    mtp.adamw "w", %h {decay} : tensor<8x8xbf16>
  }
}

// -----

// A batch is dropped if adjacent operands would need a larger workspace. The
// operands of the two products are never alive together with the large value.
// CHECK-LABEL: mtp.segment @h
// CHECK: mtp.einsum "h.dv"
// CHECK-NOT: mtp.batch
// CHECK: mtp.update
module attributes {mtp.partitioned, mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 0, 1, 0>]} {
  mtp.segment @h () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<8x8xbf16>
    %v = mtp.parameter "v" : tensor<8x8xbf16>
    %w = mtp.parameter "w" : tensor<8x8xbf16>
    %u = mtp.parameter "u" : tensor<8x8xbf16>
    %y = mtp.einsum "h.fc" "bi,io->bo"(%x, %w) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    mtp.backward () {
      %a = mtp.scale "h.a"(%y) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      %b = mtp.scale "h.b"(%a) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      %dv = mtp.einsum "h.dv" "bi,bo->io"(%x, %a) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "w", %dv : tensor<8x8xbf16>
      mtp.accumulate "u", %dv : tensor<8x8xbf16>
      %dw = mtp.einsum "h.dw" "bi,bo->io"(%x, %b) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "v", %dw : tensor<8x8xbf16>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %g = mtp.accumulated "v" : tensor<8x8xbf16>
    mtp.adamw "v", %g {decay} : tensor<8x8xbf16>
    %h = mtp.accumulated "w" : tensor<8x8xbf16>
    mtp.adamw "w", %h {decay} : tensor<8x8xbf16>
    %i = mtp.accumulated "u" : tensor<8x8xbf16>
    mtp.adamw "u", %i {decay} : tensor<8x8xbf16>
  }
}
