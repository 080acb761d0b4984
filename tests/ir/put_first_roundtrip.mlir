// RUN: mtplan-opt %s | mtplan-opt | FileCheck %s

// CHECK-LABEL: @first
mtp.segment @first () {
  %x = mtp.parameter "x" : tensor<2x4x8xf32>
  %v = mtp.parameter "v" : tensor<8xf32>
  // CHECK: mtp.put_first "p"(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %p = mtp.put_first "p"(%x, %v) : (tensor<2x4x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  // CHECK: mtp.put_first_grad "g"(%{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  %g, %h = mtp.put_first_grad "g"(%p) : (tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<8xf32>)
  // CHECK: mtp.take_first "t"(%{{[a-z0-9_]+}}) : (tensor<2x4x8xf32>) -> tensor<2x8xf32>
  %t = mtp.take_first "t"(%p) : (tensor<2x4x8xf32>) -> tensor<2x8xf32>
  // CHECK: mtp.take_first_grad "u"(%{{[a-z0-9_]+}}) : (tensor<2x8xf32>) -> tensor<2x4x8xf32>
  %u = mtp.take_first_grad "u"(%t) : (tensor<2x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: mtp.zeros "z" : tensor<2x4x8xf32>
  %z = mtp.zeros "z" : tensor<2x4x8xf32>
  mtp.yield
}
