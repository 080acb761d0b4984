// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK: mesh.none = #mtp.mesh<>
// CHECK-SAME: mesh.two = #mtp.mesh<"dp" = 2, "tp" = 8>
module attributes {mesh.none = #mtp.mesh<>, mesh.two = #mtp.mesh<"dp" = 2, "tp" = 8>} {

// The layout of a scalar has no entries.
// CHECK: test.layout = #mtp.layout<[]>
module attributes {test.layout = #mtp.layout<[]>} {}
// CHECK: test.layout = #mtp.layout<{{\[\["dp", "tp"\], \[\]\]}}>
module attributes {test.layout = #mtp.layout<[["dp", "tp"], []]>} {}
// CHECK: test.layout = #mtp.layout<{{\[\["dp"\], \[\]\]}}, partial = ["tp"]>
module attributes {test.layout = #mtp.layout<[["dp"], []], partial = ["tp"]>} {}
// CHECK: test.layout = #mtp.layout<{{\[\[\]\]}}, partial = ["dp", "tp"], max>
module attributes {test.layout = #mtp.layout<[[]], partial = ["dp", "tp"], max>} {}

// CHECK: test.strategy = #mtp.strategy<>
module attributes {test.strategy = #mtp.strategy<>} {}
// CHECK: test.strategy = #mtp.strategy<"dp" = "b", "tp" = "+0">
module attributes {test.strategy = #mtp.strategy<"dp" = "b", "tp" = "+0">} {}

}
