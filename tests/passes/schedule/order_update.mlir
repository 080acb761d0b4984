// RUN: mtplan-opt --mtp-order-update --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-order-update --mtp-order-update --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-order-update=offload-optimizer --split-input-file %s | FileCheck %s --check-prefix=HOST

// Gradients are reduced before weights are gathered. First reductions are in
// order, second ones reversed; updates are consecutive, and gathers reversed.
// CHECK: mtp.update
// CHECK-NEXT: mtp.accumulated "h.*.a"
// CHECK-NEXT: mtp.accumulated "h.*.b"
// CHECK-NEXT: mtp.reduce_scatter {{.*}}over "dp" dim 0 cause "h.*.a"
// CHECK-NEXT: mtp.reduce_scatter {{.*}}over "dp" dim 0 cause "h.*.b"
// CHECK-NEXT: mtp.all_reduce {{.*}}over "cp" cause "h.*.b"
// CHECK-NEXT: mtp.all_reduce {{.*}}over "cp" cause "h.*.a"
// CHECK-NEXT: mtp.adamw "h.*.a"
// CHECK-NEXT: mtp.adamw "h.*.b"
// CHECK-NEXT: mtp.all_gather {{.*}}cause "h.*.b"
// CHECK-NEXT: mtp.store "h.*.b"
// CHECK-NEXT: mtp.all_gather {{.*}}cause "h.*.a"
// CHECK-NEXT: mtp.store "h.*.a"

// HOST: mtp.adamw "h.*.a"
// HOST-NEXT: mtp.all_gather {{.*}}cause "h.*.a"
// HOST-NEXT: mtp.store "h.*.a"
// HOST-NEXT: mtp.adamw "h.*.b"
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "cp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @h repeat 2 () {
    %a = mtp.parameter "h.*.a" : tensor<16x16xf32>
    %b = mtp.parameter "h.*.b" : tensor<16x16xf32>
    mtp.backward () {
      mtp.accumulate "h.*.a", %a : tensor<16x16xf32>
      mtp.accumulate "h.*.b", %b : tensor<16x16xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %ga = mtp.accumulated "h.*.a" : tensor<16x16xf32>
    %sa = mtp.reduce_scatter %ga over "dp" dim 0 cause "h.*.a" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %ta = mtp.all_reduce %sa over "cp" cause "h.*.a" : tensor<8x16xf32>
    %ua = mtp.adamw "h.*.a", %ta {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wa = mtp.all_gather %ua over "dp" dim 0 cause "h.*.a" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.a", %wa : tensor<16x16xf32>
    %gb = mtp.accumulated "h.*.b" : tensor<16x16xf32>
    %sb = mtp.reduce_scatter %gb over "dp" dim 0 cause "h.*.b" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %tb = mtp.all_reduce %sb over "cp" cause "h.*.b" : tensor<8x16xf32>
    %ub = mtp.adamw "h.*.b", %tb {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wb = mtp.all_gather %ub over "dp" dim 0 cause "h.*.b" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.b", %wb : tensor<16x16xf32>
  }
}

// -----

// Reductions that overlap the backward come first, in the reverse of the order
// in which their gradients are ready.
// CHECK: mtp.update
// CHECK-NEXT: mtp.accumulated "h.*.a"
// CHECK-NEXT: mtp.accumulated "h.*.b"
// CHECK-NEXT: mtp.accumulated "h.*.c"
// CHECK-NEXT: mtp.all_reduce {{.*}}cause "h.*.a" {mtp.overlapped = "h"}
// CHECK-NEXT: mtp.all_reduce {{.*}}cause "h.*.c" {mtp.overlapped = "h"}
// CHECK-NEXT: mtp.all_reduce {{.*}}cause "h.*.b" :
// CHECK-NEXT: mtp.adamw "h.*.a"
// CHECK-NEXT: mtp.adamw "h.*.b"
// CHECK-NEXT: mtp.adamw "h.*.c"
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @h repeat 2 () {
    %a = mtp.parameter "h.*.a" : tensor<16x16xf32>
    %b = mtp.parameter "h.*.b" : tensor<16x16xf32>
    %c = mtp.parameter "h.*.c" : tensor<16x16xf32>
    mtp.backward () {
      mtp.accumulate "h.*.c", %c : tensor<16x16xf32>
      mtp.accumulate "h.*.b", %b : tensor<16x16xf32>
      mtp.accumulate "h.*.a", %a : tensor<16x16xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %ga = mtp.accumulated "h.*.a" : tensor<16x16xf32>
    %sa = mtp.all_reduce %ga over "dp" cause "h.*.a" {mtp.overlapped = "h"} : tensor<16x16xf32>
    mtp.adamw "h.*.a", %sa : tensor<16x16xf32>
    %gb = mtp.accumulated "h.*.b" : tensor<16x16xf32>
    %sb = mtp.all_reduce %gb over "dp" cause "h.*.b" : tensor<16x16xf32>
    mtp.adamw "h.*.b", %sb : tensor<16x16xf32>
    %gc = mtp.accumulated "h.*.c" : tensor<16x16xf32>
    %sc = mtp.all_reduce %gc over "dp" cause "h.*.c" {mtp.overlapped = "h"} : tensor<16x16xf32>
    mtp.adamw "h.*.c", %sc : tensor<16x16xf32>
  }
}
