// RUN: mtplan-opt --mtp-assign-streams %s > %t
// RUN: FileCheck %s < %t
// RUN: mtplan-opt --mtp-assign-streams --mtp-verify-streams %t | diff - %t
// RUN: mtplan-opt --mtp-assign-streams=offload-optimizer %s | FileCheck %s --check-prefix=HOST

// CHECK: mtp.input "x"{{.*}}mtp.stream = "compute"
// CHECK: mtp.parameter "w" :
// CHECK: mtp.scale "s"{{.*}}mtp.stream = "compute"
// CHECK: mtp.all_reduce{{.*}}"tp"{{.*}}mtp.stream = "tensor"
// CHECK: mtp.all_gather{{.*}}"zero"{{.*}}mtp.stream = "data"
// CHECK: mtp.send{{.*}}mtp.stream = "pipeline"
// CHECK: mtp.receive{{.*}}mtp.stream = "pipeline"
// CHECK: mtp.accumulate "w"{{.*}}mtp.stream = "compute"
// CHECK: mtp.accumulated "w"{{.*}}mtp.stream = "compute"
// CHECK: mtp.all_reduce{{.*}}"pp"{{.*}}mtp.stream = "pipeline"
// CHECK: mtp.reduce_scatter{{.*}}"dp"{{.*}}mtp.stream = "data"
// CHECK: mtp.adamw{{.*}}mtp.stream = "compute"
// HOST: mtp.adamw{{.*}}mtp.stream = "host"
module attributes {mtp.mesh = #mtp.mesh<"pp" = 2, "zero" = 2, "dp" = 2, "tp" = 2>, mtp.partitioned} {
  mtp.segment @h chunk 0 () {
    %x = mtp.input "x" dims ["batch", "other"] : tensor<4x4xf32>
    %w = mtp.parameter "w" : tensor<4x4xf32>
    %s = mtp.scale "s"(%x) by 2.0 : tensor<4x4xf32>
    %t = mtp.all_reduce %s over "tp" cause "s" : tensor<4x4xf32>
    %g = mtp.all_gather %t over "zero" dim 0 cause "s" : (tensor<4x4xf32>) -> tensor<8x4xf32>
    mtp.send "m", %t to 1 : tensor<4x4xf32>
    mtp.backward () {
      %r = mtp.receive "m.grad" from 1 : tensor<4x4xf32>
      mtp.accumulate "w", %r : tensor<4x4xf32>
      mtp.yield
    }
    mtp.yield
  }
  mtp.update on 0 {
    %a = mtp.accumulated "w" : tensor<4x4xf32>
    %b = mtp.all_reduce %a over "pp" cause "w" : tensor<4x4xf32>
    %c = mtp.reduce_scatter %b over "dp" dim 0 cause "w" : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %u = mtp.adamw "w", %c {layout = #mtp.layout<[["dp"], []]>} : tensor<2x4xf32> -> tensor<2x4xf32>
    %v = mtp.all_gather %u over "dp" dim 0 cause "w" : (tensor<2x4xf32>) -> tensor<4x4xf32>
    mtp.store "w", %v : tensor<4x4xf32>
  }
}
