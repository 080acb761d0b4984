// RUN: mtplan-opt --mtp-overlap-reductions --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-overlap-reductions --mtp-overlap-reductions --split-input-file %s | FileCheck %s

// A gradient's first collective overlaps the backward of its segment. A second
// one does if it is an all-reduce over a replica axis, which cp is not. A
// second reduce-scatter and the reduction of the loss stay in the update.
// CHECK: mtp.update
// CHECK: mtp.all_reduce {{.*}}cause "h.*.a" {mtp.overlapped = "h"}
// CHECK: mtp.reduce_scatter {{.*}}cause "h.*.b" {mtp.overlapped = "h"}
// CHECK: mtp.all_reduce {{.*}}over "cp" cause "h.*.b" :
// CHECK: mtp.all_reduce {{.*}}over "cp" cause "h.*.c" {mtp.overlapped = "h"}
// CHECK: mtp.reduce_scatter {{.*}}cause "h.*.c" :
// CHECK: mtp.reduce_scatter {{.*}}cause "h.*.d" {mtp.overlapped = "h"}
// CHECK: mtp.all_reduce {{.*}}over "zero" cause "h.*.d" {mtp.overlapped = "h"}
// CHECK: mtp.all_reduce {{.*}}over "dp" cause "loss" :
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "zero" = 2, "cp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 2 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1>]} {
  mtp.segment @h repeat 3 () {
    %a = mtp.parameter "h.*.a" : tensor<16x16xf32>
    %b = mtp.parameter "h.*.b" : tensor<16x16xf32>
    %c = mtp.parameter "h.*.c" : tensor<16x16xf32>
    %d = mtp.parameter "h.*.d" : tensor<16x16xf32>
    mtp.accumulate "loss", %a : tensor<16x16xf32>
    mtp.backward () {
      mtp.accumulate "h.*.a", %a : tensor<16x16xf32>
      mtp.accumulate "h.*.b", %b : tensor<16x16xf32>
      mtp.accumulate "h.*.c", %c : tensor<16x16xf32>
      mtp.accumulate "h.*.d", %d : tensor<16x16xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %ga = mtp.accumulated "h.*.a" : tensor<16x16xf32>
    %sa = mtp.all_reduce %ga over "dp" cause "h.*.a" : tensor<16x16xf32>
    mtp.adamw "h.*.a", %sa : tensor<16x16xf32>
    %gb = mtp.accumulated "h.*.b" : tensor<16x16xf32>
    %sb = mtp.reduce_scatter %gb over "dp" dim 0 cause "h.*.b" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %tb = mtp.all_reduce %sb over "cp" cause "h.*.b" : tensor<8x16xf32>
    %ub = mtp.adamw "h.*.b", %tb {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wb = mtp.all_gather %ub over "dp" dim 0 cause "h.*.b" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.b", %wb : tensor<16x16xf32>
    %gc = mtp.accumulated "h.*.c" : tensor<16x16xf32>
    %sc = mtp.all_reduce %gc over "cp" cause "h.*.c" : tensor<16x16xf32>
    %tc = mtp.reduce_scatter %sc over "dp" dim 0 cause "h.*.c" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %uc = mtp.adamw "h.*.c", %tc {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wc = mtp.all_gather %uc over "dp" dim 0 cause "h.*.c" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.c", %wc : tensor<16x16xf32>
    %gd = mtp.accumulated "h.*.d" : tensor<16x16xf32>
    %sd = mtp.reduce_scatter %gd over "dp" dim 0 cause "h.*.d" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %td = mtp.all_reduce %sd over "zero" cause "h.*.d" : tensor<8x16xf32>
    %ud = mtp.adamw "h.*.d", %td {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wd = mtp.all_gather %ud over "dp" dim 0 cause "h.*.d" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.d", %wd : tensor<16x16xf32>
    %l = mtp.accumulated "loss" : tensor<16x16xf32>
    %m = mtp.all_reduce %l over "dp" cause "loss" : tensor<16x16xf32>
    mtp.result "loss", %m : tensor<16x16xf32>
  }
}

// -----

// The gradient of a weight of two segments is reduced beside the later backward
// if both add to one accumulator, else in the update. A weight that all layers
// share is reduced in the update, since the last layer completes its gradient.
// CHECK: mtp.update
// CHECK: mtp.all_reduce {{.*}}cause "table" {mtp.overlapped = "embed"}
// CHECK: mtp.all_reduce {{.*}}cause "tied" :
// CHECK: mtp.all_reduce {{.*}}cause "shared" :
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @embed () {
    %table = mtp.parameter "table" : tensor<8x8xf32>
    %tied = mtp.parameter "tied" : tensor<8x8xf32>
    mtp.backward () {
      mtp.accumulate "table", %table : tensor<8x8xf32>
      mtp.accumulate "tied", %tied : tensor<8x8xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.segment @h repeat 2 () {
    %shared = mtp.parameter "shared" : tensor<8x8xf32>
    %w = mtp.parameter "h.*.w" : tensor<8x8xf32>
    mtp.backward () {
      mtp.accumulate "shared", %shared : tensor<8x8xf32>
      mtp.accumulate "h.*.w", %w : tensor<8x8xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.segment @head () {
    %table = mtp.parameter "table" : tensor<8x8xf32>
    %tied = mtp.parameter "tied" : tensor<8x8xf32>
    mtp.backward () {
      mtp.accumulate "table", %table : tensor<8x8xf32>
      mtp.accumulate "tied", %tied {mtp.own_sum} : tensor<8x8xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %a = mtp.accumulated "table" : tensor<8x8xf32>
    %b = mtp.all_reduce %a over "dp" cause "table" : tensor<8x8xf32>
    mtp.adamw "table", %b : tensor<8x8xf32>
    %c = mtp.accumulated "tied" : tensor<8x8xf32>
    %d = mtp.all_reduce %c over "dp" cause "tied" : tensor<8x8xf32>
    mtp.adamw "tied", %d : tensor<8x8xf32>
    %e = mtp.accumulated "shared" : tensor<8x8xf32>
    %f = mtp.all_reduce %e over "dp" cause "shared" : tensor<8x8xf32>
    mtp.adamw "shared", %f : tensor<8x8xf32>
    %g = mtp.accumulated "h.*.w" : tensor<8x8xf32>
    mtp.adamw "h.*.w", %g : tensor<8x8xf32>
  }
}
