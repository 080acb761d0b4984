// RUN: mtplan-opt --mtp-separate-carried %s > %t
// RUN: FileCheck %s < %t
// RUN: mtplan-opt --mtp-separate-carried %t | diff - %t

// A yielded parameter, a value that is yielded twice and an argument at another
// position are copied. An argument at its position and a new value are not.
// CHECK: mtp.segment @h (%[[X:.+]]: {{.*}}, %[[Y:.+]]: {{.*}}, %[[Z:.+]]: {{.*}})
// CHECK: %[[W:.+]] = mtp.parameter
// CHECK: %[[S:.+]] = mtp.scale "s"
// CHECK: %[[A:.+]] = mtp.scale "h.handed_on.2"(%[[Y]]) by 1
// CHECK: %[[B:.+]] = mtp.scale "h.handed_on.3"(%[[S]]) by 1
// CHECK: %[[C:.+]] = mtp.scale "h.handed_on.4"(%[[W]]) by 1
// CHECK: mtp.yield %[[X]], %[[S]], %[[A]], %[[B]], %[[C]]
mtp.segment @in () {
  %x = mtp.input "x" dims ["batch"] : tensor<4xf32>
  %y = mtp.input "y" dims ["batch"] : tensor<4xf32>
  %z = mtp.input "z" dims ["batch"] : tensor<4xf32>
  mtp.yield %x, %y, %z : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
mtp.segment @h (%x : tensor<4xf32>, %y : tensor<4xf32>, %z : tensor<4xf32>) {
  %w = mtp.parameter "w" : tensor<4xf32>
  %s = mtp.scale "s"(%z) by 2.0 : tensor<4xf32>
  mtp.yield %x, %s, %y, %s, %w : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
