// RUN: mtplan-opt --mtp-gather-blocks --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-gather-blocks --mtp-gather-blocks --split-input-file %s | FileCheck %s
// RUN: mtplan-opt --mtp-gather-blocks --mtp-assign-streams --mtp-group-collectives --mtp-verify-streams --split-input-file %s | FileCheck %s --check-prefix=LAUNCH

// Both programs begin with the gathers of what they read. Backward ends with
// the scatters, the last gradient first, and then the accumulations in order.
// An all-reduce over tp before a scatter stays where it is, and does not keep
// the scatter out of the launch.
// CHECK-LABEL: mtp.segment @h
// CHECK: mtp.parameter "h.*.a"
// CHECK-NEXT: mtp.parameter "h.*.b"
// CHECK-NEXT: mtp.all_gather {{.*}}cause "h.*.a" {mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}cause "h.*.b" {mtp.of_block}
// CHECK-NEXT: mtp.einsum "h.*.fc1"
// CHECK-NEXT: mtp.einsum "h.*.fc2"
// CHECK-NEXT: mtp.backward
// CHECK-NEXT: mtp.all_gather {{.*}}cause "h.*.b" {mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}cause "h.*.a" {mtp.of_block}
// CHECK-NEXT: mtp.einsum "h.*.fc2.dw"
// CHECK-NEXT: mtp.all_reduce {{.*}}over "tp"
// CHECK-NEXT: mtp.einsum "h.*.fc2.dx"
// CHECK-NEXT: mtp.einsum "h.*.fc1.dw"
// CHECK-NEXT: mtp.einsum "h.*.fc1.dx"
// CHECK-NEXT: mtp.reduce_scatter {{.*}}cause "h.*.a" {mtp.of_block}
// CHECK-NEXT: mtp.reduce_scatter {{.*}}cause "h.*.b" {mtp.of_block}
// CHECK-NEXT: mtp.accumulate "h.*.b"
// CHECK-NEXT: mtp.accumulate "h.*.a"
// CHECK-NEXT: mtp.yield
// LAUNCH-LABEL: mtp.segment @h
// LAUNCH: mtp.all_gather {{.*}}cause "h.*.a" {mtp.batch = 0
// LAUNCH-NEXT: mtp.all_gather {{.*}}cause "h.*.b" {mtp.batch = 0
// LAUNCH: mtp.backward
// LAUNCH: mtp.all_gather {{.*}}cause "h.*.b" {mtp.batch = 0
// LAUNCH-NEXT: mtp.all_gather {{.*}}cause "h.*.a" {mtp.batch = 0
// LAUNCH: mtp.reduce_scatter {{.*}}cause "h.*.a" {mtp.batch = 1
// LAUNCH-NEXT: mtp.reduce_scatter {{.*}}cause "h.*.b" {mtp.batch = 1
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @in () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<4x8xf32>
    mtp.backward (%dx: tensor<4x8xf32>) {
      mtp.yield
    }
    mtp.yield %x : tensor<4x8xf32>
  }
  mtp.segment @h repeat 2 (%x: tensor<4x8xf32>) {
    %pa = mtp.parameter "h.*.a" : tensor<4x8xf32>
    %a = mtp.all_gather %pa over "dp" dim 0 cause "h.*.a" : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %y = mtp.einsum "h.*.fc1" "bi,io->bo" (%x, %a) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %pb = mtp.parameter "h.*.b" : tensor<4x8xf32>
    %b = mtp.all_gather %pb over "dp" dim 0 cause "h.*.b" : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %z = mtp.einsum "h.*.fc2" "bi,io->bo" (%y, %b) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    mtp.backward (%dz: tensor<4x8xf32>) {
      %dwb = mtp.einsum "h.*.fc2.dw" "bi,bo->io" (%y, %dz) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %tb = mtp.all_reduce %dwb over "tp" cause "h.*.b" : tensor<8x8xf32>
      %sb = mtp.reduce_scatter %tb over "dp" dim 0 cause "h.*.b" : (tensor<8x8xf32>) -> tensor<4x8xf32>
      mtp.accumulate "h.*.b", %sb : tensor<4x8xf32>
      %gb = mtp.all_gather %pb over "dp" dim 0 cause "h.*.b" : (tensor<4x8xf32>) -> tensor<8x8xf32>
      %dy = mtp.einsum "h.*.fc2.dx" "bo,io->bi" (%dz, %gb) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dwa = mtp.einsum "h.*.fc1.dw" "bi,bo->io" (%x, %dy) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %sa = mtp.reduce_scatter %dwa over "dp" dim 0 cause "h.*.a" : (tensor<8x8xf32>) -> tensor<4x8xf32>
      mtp.accumulate "h.*.a", %sa : tensor<4x8xf32>
      %ga = mtp.all_gather %pa over "dp" dim 0 cause "h.*.a" : (tensor<4x8xf32>) -> tensor<8x8xf32>
      %dx = mtp.einsum "h.*.fc1.dx" "bo,io->bi" (%dy, %ga) : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      mtp.yield %dx : tensor<4x8xf32>
    }
    mtp.yield %z : tensor<4x8xf32>
  }
  mtp.segment @out (%z : tensor<4x8xf32>) {
    mtp.backward () {
      %dz = mtp.scale "out.dx" (%z) by 0.5 : tensor<4x8xf32>
      mtp.yield %dz : tensor<4x8xf32>
    }
    mtp.yield
  }
}

// -----

// With two axes, what moves over the first is one launch, and what moves over
// the second follows. Tensor ranks gather a weight where it is used.
// CHECK-LABEL: mtp.segment @axes
// CHECK: mtp.all_gather {{.*}}over "zero" {{.*}}cause "a" {mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}over "zero" {{.*}}cause "b" {mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}over "dp" {{.*}}cause "a" {mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}over "dp" {{.*}}cause "b" {mtp.of_block}
// CHECK-NEXT: mtp.scale "use.a"
// CHECK-NEXT: mtp.scale "use.b"
// CHECK: mtp.all_gather {{.*}}over "tp" {{.*}}cause "c" :
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "zero" = 2, "tp" = 2>, mtp.partitioned} {
  mtp.segment @axes () {
    %pa = mtp.parameter "a" : tensor<4x8xf32>
    %ya = mtp.all_gather %pa over "zero" dim 0 cause "a" : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %a = mtp.all_gather %ya over "dp" dim 0 cause "a" : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %ua = mtp.scale "use.a" (%a) by 2.0 : tensor<16x8xf32>
    %pb = mtp.parameter "b" : tensor<4x8xf32>
    %yb = mtp.all_gather %pb over "zero" dim 0 cause "b" : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %b = mtp.all_gather %yb over "dp" dim 0 cause "b" : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %ub = mtp.scale "use.b" (%b) by 2.0 : tensor<16x8xf32>
    %pc = mtp.parameter "c" : tensor<4x8xf32>
    %c = mtp.all_gather %pc over "tp" dim 0 cause "c" : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %uc = mtp.scale "use.c" (%c) by 2.0 : tensor<8x8xf32>
    mtp.yield
  }
}

// -----

// The gradient of a weight that no program gathers is scattered where it is
// made (ZeRO 2).
// CHECK-LABEL: mtp.segment @two
// CHECK: mtp.reduce_scatter {{.*}}cause "a" :
// CHECK-NEXT: mtp.accumulate "a"
// CHECK-NEXT: mtp.scale "later"
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2>, mtp.partitioned} {
  mtp.segment @two () {
    %a = mtp.parameter "a" : tensor<8x8xf32>
    mtp.backward () {
      %d = mtp.scale "d" (%a) by 2.0 : tensor<8x8xf32>
      %s = mtp.reduce_scatter %d over "dp" dim 0 cause "a" : (tensor<8x8xf32>) -> tensor<4x8xf32>
      mtp.accumulate "a", %s : tensor<4x8xf32>
      %l = mtp.scale "later" (%a) by 2.0 : tensor<8x8xf32>
      mtp.yield
    }
    mtp.yield
  }
}
