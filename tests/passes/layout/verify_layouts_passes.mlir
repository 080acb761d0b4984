// RUN: mtplan-opt %s --mtp-verify-layouts | FileCheck %s

// A valid plan passes unchanged. A scalar input has the same value on every
// rank and may be read in any layout.

// CHECK-LABEL: mtp.segment @sound
module attributes {mtp.mesh = #mtp.mesh<"dp" = 1, "tp" = 2>} {
mtp.segment @sound () attributes {layouts = []} {
  %x = mtp.parameter "x" {layout = #mtp.layout<[["tp"], []]>} : tensor<4x8xf32>
  // CHECK: mtp.reshard
  %z = mtp.reshard %x from <[["tp"], []]> to <[[], ["tp"]]> cause "x" : tensor<4x8xf32>
  // CHECK: mtp.scale "y"
  %y = mtp.scale "y" (%z) by 2.0 {mtp.strategy = #mtp.strategy<"tp" = "d1">} : tensor<4x8xf32>
  mtp.yield %y : tensor<4x8xf32> {layouts = [#mtp.layout<[[], ["tp"]]>]}
}
}
