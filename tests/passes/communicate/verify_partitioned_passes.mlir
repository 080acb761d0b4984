// RUN: mtplan-opt %s --mtp-verify-layouts --mtp-insert-collectives --mtp-verify-partitioned | FileCheck %s
// RUN: mtplan-opt %s --mtp-verify-layouts --mtp-insert-collectives --mtp-verify-partitioned --dump-pass-pipeline 2>&1 \
// RUN:   | FileCheck %s --check-prefix=ORDER

// ORDER: builtin.module(mtp-verify-layouts,mtp-insert-collectives,mtp-verify-partitioned)

module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @column () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[[], [], []]>} : tensor<2x4x8xf32>
  %w = mtp.parameter "w" {layout = #mtp.layout<[[], ["tp"]]>} : tensor<8x6xf32>
  // CHECK: mtp.einsum "fc"
  // CHECK-SAME: (tensor<2x4x8xf32>, tensor<8x3xf32>) -> tensor<2x4x3xf32>
  %y = mtp.einsum "fc" "bsi,io->bso" (%x, %w) {mtp.strategy = #mtp.strategy<"tp" = "o">} : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  mtp.yield {layouts = []}
}
}
