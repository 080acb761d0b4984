// RUN: mtplan-opt --mtp-fuse-epilogues --mtp-place-memory --split-input-file %s | FileCheck %s

// What is above two products that share their other operand lies in the order
// of the products, the later one's made first, if there is room: a device may
// do both at once.
// CHECK-LABEL: mtp.segment @h
// CHECK: mtp.scale "h.a"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = [[#%u,AT:]],
// CHECK: mtp.scale "h.b"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = [[#AT - 256]],
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

// Not where it would take more room: one is gone when the other is made.
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
