// RUN: mtplan-opt --mtp-fuse-epilogues --mtp-place-memory %s | FileCheck %s
// RUN: mtplan-opt --mtp-fuse-epilogues --mtp-place-memory=gradient-bytes=4 %s | FileCheck %s --check-prefix=WIDE
// RUN: mtplan-opt --mtp-fuse-epilogues --mtp-place-memory="gradient-bytes=4 offload-optimizer" %s | FileCheck %s --check-prefix=HOST

// Two layers, two micro-batches in flight. A layer's input is saved, with an
// entry per layer and a slot per micro-batch; its output is the next entry. The
// program may use all of the workspace, because no gradient is passed on.
// CHECK: mtp.segment @h repeat 2
// CHECK-SAME: mtp.places = [#mtp.place<arena = "activations", offset = 0, size = 128, entries = 3, entry_stride = 256, slots = 2, slot_stride = 768, entry = 0, step = 1, type = bf16>]
// CHECK: mtp.parameter "h.*.w"
// CHECK-SAME: #mtp.place<arena = "parameters", offset = 0, size = 128, entries = 2, entry_stride = 256, slots = 1, slot_stride = 0, entry = 0, step = 1, type = bf16>
// CHECK: mtp.einsum "h.*.fc"
// CHECK-SAME: #mtp.place<arena = "workspace", offset = 0,
// CHECK: mtp.add "h.*.add"
// CHECK-SAME: #mtp.place<arena = "activations", offset = 0, size = 128, entries = 3, entry_stride = 256, slots = 2, slot_stride = 768, entry = 1, step = 1,

// The incoming and the outgoing gradient alternate between two entries, from
// the last layer on; the sum over tp is in place.
// CHECK: mtp.backward
// CHECK-SAME: #mtp.place<arena = "workspace", offset = {{[0-9]+}}, size = 128, entries = 2, entry_stride = 256, slots = 1, slot_stride = 0, entry = 1, step = -1,
// CHECK: mtp.einsum "h.*.fc.dx"
// CHECK-SAME: mtp.places = [#mtp.place<arena = "workspace", offset = 512,{{.*}}mtp.strategy
// CHECK: mtp.all_reduce
// CHECK-SAME: mtp.places = [#mtp.place<arena = "workspace", offset = 512,
// CHECK: mtp.accumulate "h.*.w"
// CHECK-SAME: #mtp.place<arena = "gradients", offset = 0, size = 128, entries = 2, {{.*}} type = bf16>
// WIDE: mtp.accumulate "h.*.w"
// WIDE-SAME: #mtp.place<arena = "gradients", offset = 0, size = 256, entries = 2, {{.*}} type = f32>

// AdamW has a master weight, as the weight is bf16, and two moments, all f32.
// CHECK: mtp.adamw
// CHECK-SAME: mtp.state = [#mtp.place<arena = "parameters", {{.*}}>, #mtp.place<arena = "optimizer", offset = 0, size = 256, {{.*}} type = f32>, #mtp.place<arena = "optimizer", offset = 512, {{.*}}>, #mtp.place<arena = "optimizer", offset = 1024, {{.*}}>]

// Offload puts the three in the host arena, with buffers for the incoming
// gradient (accumulator's type) and the outgoing weight (weight's type).
// HOST: mtp.adamw
// HOST-SAME: mtp.state = [#mtp.place<arena = "parameters", {{.*}}>, #mtp.place<arena = "host", offset = 0, size = 256, entries = 2, {{.*}} type = f32>, #mtp.place<arena = "host", offset = 512, {{.*}} type = f32>, #mtp.place<arena = "host", offset = 1024, {{.*}} type = f32>, #mtp.place<arena = "host", offset = 1536, size = 256, {{.*}} type = f32>, #mtp.place<arena = "host", offset = 2048, size = 128, {{.*}} type = bf16>]
module attributes {mtp.mesh = #mtp.mesh<"tp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 2 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 0, 0, 1, 1, 0, 0, 1, 0, 1>]} {
  mtp.segment @in () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<8x8xbf16>
    mtp.backward (%dx : tensor<8x8xbf16>) {
      mtp.yield
    }
    mtp.yield %x : tensor<8x8xbf16>
  }
  mtp.segment @h repeat 2 (%x : tensor<8x8xbf16>) {
    %w = mtp.parameter "h.*.w" : tensor<8x8xbf16>
    %y = mtp.einsum "h.*.fc" "bi,io->bo"(%x, %w) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
    %z = mtp.add "h.*.add"(%x, %y) {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
    mtp.backward (%dz : tensor<8x8xbf16>) {
      %dx = mtp.einsum "h.*.fc.dx" "bo,io->bi"(%dz, %w) {mtp.strategy = #mtp.strategy<"tp" = "o">} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      %sum = mtp.all_reduce %dx over "tp" cause "h.*.fc.dx" : tensor<8x8xbf16>
      %dw = mtp.einsum "h.*.fc.dw" "bi,bo->io"(%x, %dz) {mtp.strategy = #mtp.strategy<>} : (tensor<8x8xbf16>, tensor<8x8xbf16>) -> tensor<8x8xbf16>
      mtp.accumulate "h.*.w", %dw : tensor<8x8xbf16>
      %both = mtp.add "h.*.add.dx"(%dz, %sum) {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      mtp.yield %both : tensor<8x8xbf16>
    }
    mtp.yield %z : tensor<8x8xbf16>
  }
  mtp.segment @out (%z : tensor<8x8xbf16>) {
    mtp.backward () {
      %dz = mtp.scale "out.dx"(%z) by 0.5 {mtp.strategy = #mtp.strategy<>} : tensor<8x8xbf16>
      mtp.yield %dz : tensor<8x8xbf16>
    }
    mtp.yield
  }
  mtp.update {
    %g = mtp.accumulated "h.*.w" : tensor<8x8xbf16>
    mtp.adamw "h.*.w", %g {decay} : tensor<8x8xbf16>
  }
}
