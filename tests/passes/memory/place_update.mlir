// RUN: mtplan-opt --mtp-place-memory %s | FileCheck %s

// Shards of a segment's parameters have disjoint memory, so that updates and
// all-gathers need not wait for each other. The workspace is 512 bytes, enough
// for two shards, so that the third parameter is in another program, at offset
// 0. The parameter that is not repeated is in a program of its own, too.
// CHECK: mtp.input "x"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = 0, size = 128
// CHECK: mtp.einsum "h.*.fc"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = 256, size = 128

// CHECK: mtp.accumulated "h.*.a"
// CHECK-SAME: mtp.copies = array<i64: 0, 2>
// CHECK-SAME: mtp.update_program = 0 : i64
// CHECK: mtp.adamw "h.*.a"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "workspace", offset = 0, size = 64
// CHECK-SAME: mtp.update_program = 0 : i64
// CHECK: mtp.all_gather
// CHECK-SAME: arena = "parameters"
// CHECK-SAME: mtp.update_program = 0 : i64
// CHECK: mtp.store "h.*.a"
// CHECK-SAME: mtp.update_program = 0 : i64
// CHECK: mtp.adamw "h.*.b"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "workspace", offset = 256, size = 64
// CHECK-SAME: mtp.update_program = 0 : i64
// CHECK: mtp.accumulated "h.*.c"
// CHECK-SAME: mtp.update_program = 0 : i64
// CHECK: mtp.adamw "h.*.c"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "workspace", offset = 0, size = 64
// CHECK-SAME: mtp.update_program = 1 : i64
// CHECK: mtp.store "h.*.c"
// CHECK-SAME: mtp.update_program = 1 : i64
// CHECK: mtp.accumulated "d"
// CHECK-SAME: mtp.update_program = 1 : i64
// CHECK: mtp.adamw "d"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "workspace", offset = 0, size = 64
// CHECK-SAME: mtp.update_program = 2 : i64
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0>]} {
  mtp.segment @h repeat 2 () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<8x8xbf16>
    %a = mtp.parameter "h.*.a" : tensor<8x8xbf16>
    %b = mtp.parameter "h.*.b" : tensor<8x8xbf16>
    %c = mtp.parameter "h.*.c" : tensor<8x8xbf16>
    %d = mtp.parameter "d" : tensor<8x8xbf16>
    %y = mtp.einsum "h.*.fc" "bi,io->bo"(%x, %a) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    %z = mtp.add "h.*.add"(%y, %b) {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
    mtp.accumulate "h.*.a", %y : tensor<8x8xbf16>
    mtp.accumulate "h.*.b", %z : tensor<8x8xbf16>
    mtp.accumulate "h.*.c", %z : tensor<8x8xbf16>
    mtp.accumulate "d", %z : tensor<8x8xbf16>
    mtp.yield
  }
  mtp.update {
    %ga = mtp.accumulated "h.*.a" : tensor<8x8xbf16>
    %sa = mtp.reduce_scatter %ga over "dp" dim 0 cause "h.*.a" : (tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %ua = mtp.adamw "h.*.a", %sa {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xbf16> -> tensor<4x8xbf16>
    %wa = mtp.all_gather %ua over "dp" dim 0 cause "h.*.a" : (tensor<4x8xbf16>) -> tensor<8x8xbf16>
    mtp.store "h.*.a", %wa : tensor<8x8xbf16>
    %gb = mtp.accumulated "h.*.b" : tensor<8x8xbf16>
    %sb = mtp.reduce_scatter %gb over "dp" dim 0 cause "h.*.b" : (tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %ub = mtp.adamw "h.*.b", %sb {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xbf16> -> tensor<4x8xbf16>
    %wb = mtp.all_gather %ub over "dp" dim 0 cause "h.*.b" : (tensor<4x8xbf16>) -> tensor<8x8xbf16>
    mtp.store "h.*.b", %wb : tensor<8x8xbf16>
    %gc = mtp.accumulated "h.*.c" : tensor<8x8xbf16>
    %sc = mtp.reduce_scatter %gc over "dp" dim 0 cause "h.*.c" : (tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %uc = mtp.adamw "h.*.c", %sc {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xbf16> -> tensor<4x8xbf16>
    %wc = mtp.all_gather %uc over "dp" dim 0 cause "h.*.c" : (tensor<4x8xbf16>) -> tensor<8x8xbf16>
    mtp.store "h.*.c", %wc : tensor<8x8xbf16>
    %gd = mtp.accumulated "d" : tensor<8x8xbf16>
    %sd = mtp.reduce_scatter %gd over "dp" dim 0 cause "d" : (tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %ud = mtp.adamw "d", %sd {layout = #mtp.layout<[["dp"], []]>} : tensor<4x8xbf16> -> tensor<4x8xbf16>
    %wd = mtp.all_gather %ud over "dp" dim 0 cause "d" : (tensor<4x8xbf16>) -> tensor<8x8xbf16>
    mtp.store "d", %wd : tensor<8x8xbf16>
  }
}
