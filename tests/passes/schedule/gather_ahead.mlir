// RUN: mtplan-opt --mtp-gather-ahead %s | FileCheck %s
// RUN: mtplan-opt --mtp-gather-ahead --mtp-gather-ahead %s | FileCheck %s
// RUN: mtplan-opt --mtp-gather-ahead --mtp-assign-streams --mtp-group-collectives --mtp-verify-streams %s | FileCheck %s --check-prefix=LAUNCH

// Gathers of blocks run ahead, also those of a second axis. A gather that is
// not of a block, and one whose result backward reads, too, do not.
// CHECK: mtp.all_gather {{.*}}cause "a" {mtp.ahead, mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}cause "b" {mtp.of_block}
// CHECK-NEXT: mtp.all_gather {{.*}}over "zero" {{.*}}cause "a" {mtp.ahead, mtp.of_block}
// CHECK: mtp.all_gather {{.*}}over "tp" {{.*}}cause "c" :
// CHECK: mtp.backward
// CHECK: mtp.all_gather {{.*}}cause "c" {mtp.ahead, mtp.of_block}
// LAUNCH: mtp.all_gather {{.*}}cause "a" {mtp.ahead
// LAUNCH-NOT: mtp.batch
// LAUNCH: mtp.backward
module attributes {mtp.mesh = #mtp.mesh<"dp" = 2, "zero" = 2, "tp" = 2>, mtp.partitioned,
                   mtp.micro_batches = 1 : i64,
                   mtp.tasks = [array<i64: 0, 0, 0, 1, 0, 0>]} {
  mtp.segment @h () {
    %pa = mtp.parameter "a" : tensor<4x8xf32>
    %pb = mtp.parameter "b" : tensor<8x8xf32>
    %pc = mtp.parameter "c" : tensor<8x8xf32>
    %ya = mtp.all_gather %pa over "dp" dim 0 cause "a" {mtp.of_block} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %b = mtp.all_gather %pb over "dp" dim 0 cause "b" {mtp.of_block} : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %a = mtp.all_gather %ya over "zero" dim 0 cause "a" {mtp.of_block} : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %ua = mtp.scale "use.a" (%a) by 2.0 : tensor<16x8xf32>
    %c = mtp.all_gather %pc over "tp" dim 0 cause "c" : (tensor<8x8xf32>) -> tensor<16x8xf32>
    %uc = mtp.scale "use.c" (%c) by 2.0 : tensor<16x8xf32>
    mtp.backward () {
      %d = mtp.all_gather %pc over "dp" dim 0 cause "c" {mtp.of_block} : (tensor<8x8xf32>) -> tensor<16x8xf32>
      %ud = mtp.scale "use.d" (%d) by 2.0 : tensor<16x8xf32>
      %ub = mtp.scale "use.b" (%b) by 2.0 : tensor<16x8xf32>
      mtp.yield
    }
    mtp.yield
  }
}
