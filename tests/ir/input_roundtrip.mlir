// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK-LABEL: @ids_and_count
mtp.segment @ids_and_count () {
  // CHECK: mtp.input "ids" dims ["batch", "sequence"] below 50257 : tensor<8x1024xi32>
  %ids = mtp.input "ids" dims ["batch", "sequence"] below 50257 : tensor<8x1024xi32>
  // CHECK: mtp.input "mask" dims ["batch", "other"] {layout = #mtp.layout<{{\[\["dp"\], \[\]\]}}>} : tensor<8x3xf32>
  %mask = mtp.input "mask" dims ["batch", "other"] {layout = #mtp.layout<[["dp"], []]>} : tensor<8x3xf32>
  // CHECK: mtp.input "count" dims [] : tensor<f32>
  %count = mtp.input "count" dims [] : tensor<f32>
  mtp.yield
}
