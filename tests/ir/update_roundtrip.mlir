// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

mtp.segment @s () {
  %w = mtp.parameter "w" : tensor<4x4xf32>
  mtp.yield
}

// CHECK: mtp.update {
mtp.update {
  // CHECK-NEXT: %[[W:.+]] = mtp.accumulated "w" {layout = #mtp.layout<{{\[\["dp"\], \[\]\]}}>} : tensor<4x4xf32>
  %w = mtp.accumulated "w" {layout = #mtp.layout<[["dp"], []]>} : tensor<4x4xf32>
  // CHECK-NEXT: mtp.adamw "w", %[[W]] {decay} : tensor<4x4xf32>
  mtp.adamw "w", %w {decay} : tensor<4x4xf32>
  // The parameter has layers 2 to 5 of a repeated segment.
  // CHECK-NEXT: %[[G:.+]] = mtp.accumulated "h.*.g" {copies = array<i64: 2, 4>} : tensor<4xf32>
  %g = mtp.accumulated "h.*.g" {copies = array<i64: 2, 4>} : tensor<4xf32>
  // CHECK-NEXT: mtp.adamw "h.*.g", %[[G]] {copies = array<i64: 2, 4>} : tensor<4xf32>
  mtp.adamw "h.*.g", %g {copies = array<i64: 2, 4>} : tensor<4xf32>
  // The optimizer state is sharded more than the weight.
  // CHECK-NEXT: %[[V:.+]] = mtp.adamw "v", %[[W]] {layout = #mtp.layout<{{\[\["dp"\], \[\]\]}}>} : tensor<4x4xf32> -> tensor<4x4xf32>
  %v = mtp.adamw "v", %w {layout = #mtp.layout<[["dp"], []]>} : tensor<4x4xf32> -> tensor<4x4xf32>
  // CHECK-NEXT: mtp.store "v", %[[V]] {copies = array<i64: 2, 4>} : tensor<4x4xf32>
  mtp.store "v", %v {copies = array<i64: 2, 4>} : tensor<4x4xf32>
  // CHECK-NEXT: %[[LOSS:.+]] = mtp.accumulated "loss" : tensor<f32>
  %loss = mtp.accumulated "loss" : tensor<f32>
  // CHECK-NEXT: mtp.result "loss", %[[LOSS]] : tensor<f32>
  mtp.result "loss", %loss : tensor<f32>
}
