// RUN: mtplan-opt --mtp-overlap-reductions --mtp-place-memory %s | FileCheck %s
// RUN: mtplan-opt --mtp-place-memory %s | FileCheck %s --check-prefix=AFTER

// The shard of a layer's gradient reuses the bytes of the next layer's
// gradient; the last layer's shard has bytes of its own. A shard is in the
// activation arena if its gradient is shared by all layers, or is first summed
// over an axis over which layers also communicate.
// CHECK: mtp.accumulated "h.*.a"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 0, size = 1024, entries = 3, entry_stride = 1024
// CHECK: mtp.reduce_scatter
// CHECK-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 1024, size = 512, entries = 3, entry_stride = 1024, slots = 1, slot_stride = 0, entry = 0, step = 1
// CHECK: mtp.accumulated "h.*.b"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 3584,
// CHECK: mtp.reduce_scatter
// CHECK-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 4608,
// CHECK: mtp.reduce_scatter
// CHECK-SAME: mtp.places = [#mtp.place<arena = "activations", offset = 0,
// CHECK: mtp.accumulated "h.*.c"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 7168,
// CHECK: mtp.reduce_scatter
// CHECK-SAME: mtp.places = [#mtp.place<arena = "activations",
// CHECK: mtp.reduce_scatter
// CHECK-SAME: mtp.places = [#mtp.place<arena = "activations",
// CHECK: mtp.accumulated "d"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 10240,
// CHECK: mtp.reduce_scatter
// CHECK-SAME: mtp.places = [#mtp.place<arena = "activations",

// AFTER-NOT: arena = "gradients", offset = 1024
// AFTER: mtp.accumulated "h.*.b"
// AFTER-SAME: mtp.places = [#mtp.place<arena = "gradients", offset = 3072,
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "cp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @h repeat 3 () {
    %a = mtp.parameter "h.*.a" : tensor<16x16xf32>
    %b = mtp.parameter "h.*.b" : tensor<16x16xf32>
    %c = mtp.parameter "h.*.c" : tensor<16x16xf32>
    %d = mtp.parameter "d" : tensor<16x16xf32>
    %z = mtp.add "h.*.add"(%a, %b) {mtp.strategy = #mtp.strategy<>} : tensor<16x16xf32>
    %y = mtp.add "h.*.other"(%c, %d) {mtp.strategy = #mtp.strategy<>} : tensor<16x16xf32>
    mtp.backward () {
      mtp.accumulate "h.*.a", %z : tensor<16x16xf32>
      mtp.accumulate "h.*.b", %z : tensor<16x16xf32>
      mtp.accumulate "h.*.c", %y : tensor<16x16xf32>
      mtp.accumulate "d", %y : tensor<16x16xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update {
    %ga = mtp.accumulated "h.*.a" : tensor<16x16xf32>
    %sa = mtp.reduce_scatter %ga over "dp" dim 0 cause "h.*.a" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %ua = mtp.adamw "h.*.a", %sa {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wa = mtp.all_gather %ua over "dp" dim 0 cause "h.*.a" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.a", %wa : tensor<16x16xf32>
    %gb = mtp.accumulated "h.*.b" : tensor<16x16xf32>
    %sb = mtp.reduce_scatter %gb over "dp" dim 0 cause "h.*.b" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %tb = mtp.reduce_scatter %sb over "cp" dim 0 cause "h.*.b" : (tensor<8x16xf32>) -> tensor<4x16xf32>
    %ub = mtp.adamw "h.*.b", %tb {layout = #mtp.layout<[["dp", "cp"], []]>} : tensor<4x16xf32> -> tensor<4x16xf32>
    %vb = mtp.all_gather %ub over "cp" dim 0 cause "h.*.b" : (tensor<4x16xf32>) -> tensor<8x16xf32>
    %wb = mtp.all_gather %vb over "dp" dim 0 cause "h.*.b" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.b", %wb : tensor<16x16xf32>
    %gc = mtp.accumulated "h.*.c" : tensor<16x16xf32>
    %sc = mtp.reduce_scatter %gc over "cp" dim 0 cause "h.*.c" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %tc = mtp.reduce_scatter %sc over "dp" dim 0 cause "h.*.c" : (tensor<8x16xf32>) -> tensor<4x16xf32>
    %uc = mtp.adamw "h.*.c", %tc {layout = #mtp.layout<[["cp", "dp"], []]>} : tensor<4x16xf32> -> tensor<4x16xf32>
    %vc = mtp.all_gather %uc over "dp" dim 0 cause "h.*.c" : (tensor<4x16xf32>) -> tensor<8x16xf32>
    %wc = mtp.all_gather %vc over "cp" dim 0 cause "h.*.c" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "h.*.c", %wc : tensor<16x16xf32>
    %gd = mtp.accumulated "d" : tensor<16x16xf32>
    %sd = mtp.reduce_scatter %gd over "dp" dim 0 cause "d" : (tensor<16x16xf32>) -> tensor<8x16xf32>
    %ud = mtp.adamw "d", %sd {layout = #mtp.layout<[["dp"], []]>} : tensor<8x16xf32> -> tensor<8x16xf32>
    %wd = mtp.all_gather %ud over "dp" dim 0 cause "d" : (tensor<8x16xf32>) -> tensor<16x16xf32>
    mtp.store "d", %wd : tensor<16x16xf32>
  }
}
