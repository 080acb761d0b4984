// RUN: mtplan-opt --mtp-assign-streams --mtp-group-collectives --mtp-batch-updates --mtp-verify-streams --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-assign-streams --mtp-group-collectives --mtp-batch-updates --mtp-group-collectives --mtp-batch-updates --split-input-file %s | FileCheck %s

// Consecutive collectives over one axis are one launch, and so are consecutive
// updates. Another axis or another range of layers begins a new launch.
// CHECK: mtp.update
// CHECK: mtp.reduce_scatter {{.*}}cause "h.*.a"{{.*}}mtp.batch = 0
// CHECK: mtp.reduce_scatter {{.*}}cause "h.*.b"{{.*}}mtp.batch = 0
// CHECK: mtp.all_reduce {{.*}}over "cp" cause "h.*.b"{{.*}}mtp.batch = 1
// CHECK: mtp.all_reduce {{.*}}over "cp" cause "h.*.a"{{.*}}mtp.batch = 1
// CHECK: mtp.all_reduce {{.*}}over "cp" cause "c"
// CHECK-NOT: mtp.batch
// CHECK: mtp.adamw "h.*.a"{{.*}}mtp.batch = 3
// CHECK: mtp.adamw "h.*.b"{{.*}}mtp.batch = 3
// CHECK: mtp.all_gather {{.*}}cause "h.*.b"{{.*}}mtp.batch = 2
// CHECK: mtp.all_gather {{.*}}cause "h.*.a"{{.*}}mtp.batch = 2
// CHECK: mtp.adamw "c"
// CHECK-NOT: mtp.batch
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "cp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @h repeat 2 () {
    %a = mtp.parameter "h.*.a" : tensor<16x16xf32>
    %b = mtp.parameter "h.*.b" : tensor<16x16xf32>
    %c = mtp.parameter "c" : tensor<16x16xf32>
    mtp.backward () {
      mtp.accumulate "h.*.a", %a : tensor<16x16xf32>
      mtp.accumulate "h.*.b", %b : tensor<16x16xf32>
      mtp.accumulate "c", %c : tensor<16x16xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %ga = mtp.accumulated "h.*.a" : tensor<16x16xf32>
    %gb = mtp.accumulated "h.*.b" : tensor<16x16xf32>
    %sa = mtp.reduce_scatter %ga over "dp" dim 0 cause "h.*.a" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %sb = mtp.reduce_scatter %gb over "dp" dim 0 cause "h.*.b" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %tb = mtp.all_reduce %sb over "cp" cause "h.*.b" : tensor<8x16xf32>
    %ta = mtp.all_reduce %sa over "cp" cause "h.*.a" : tensor<8x16xf32>
    %gc = mtp.accumulated "c" : tensor<16x16xf32>
    %sc = mtp.all_reduce %gc over "cp" cause "c" : tensor<16x16xf32>
    %ua = mtp.adamw "h.*.a", %ta {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %ub = mtp.adamw "h.*.b", %tb {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wb = mtp.all_gather %ub over "dp" dim 0 cause "h.*.b" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.b", %wb : tensor<16x16xf32>
    %wa = mtp.all_gather %ua over "dp" dim 0 cause "h.*.a" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.a", %wa : tensor<16x16xf32>
    mtp.adamw "c", %sc : tensor<16x16xf32>
  }
}

// -----

// A collective that reads the result of the previous one waits for it and is
// not in its launch. Nor is a collective whose operand is computed on another
// stream after that of the first.
// CHECK-LABEL: mtp.segment @chain
// CHECK-NOT: mtp.batch
// CHECK: mtp.update
module attributes {mtp.mesh = #mtp.mesh<"tp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0>]} {
  mtp.segment @chain () {
    %x = mtp.parameter "x" : tensor<8x8xf32>
    %a = mtp.scale "a"(%x) by 2.0 : tensor<8x8xf32>
    %b = mtp.scale "b"(%x) by 2.0 : tensor<8x8xf32>
    %c = mtp.all_reduce %a over "tp" cause "a" : tensor<8x8xf32>
    %d = mtp.all_reduce %b over "tp" cause "b" : tensor<8x8xf32>
    %e = mtp.add "e"(%c, %d) : tensor<8x8xf32>
    %f = mtp.reduce_scatter %e over "tp" dim 0 cause "f" : (tensor<8x8xf32>) -> tensor<4x8xf32>
    %g = mtp.all_gather %f over "tp" dim 0 cause "g" : (tensor<4x8xf32>) -> tensor<8x8xf32>
    mtp.accumulate "loss", %g : tensor<8x8xf32>
    mtp.yield
  }
  mtp.update {
  }
}
