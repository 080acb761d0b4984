module attributes {mtp.layers = 1 : i64, mtp.mesh = #mtp.mesh<"dp" = 2, "tp" = 2>} {
  mtp.segment @mlp () attributes {layouts = []} {
    %0 = mtp.input "x" dims ["batch", "sequence", "other"] {layout = #mtp.layout<[["dp"], [], []]>} : tensor<16x32x64xbf16>
    %1 = mtp.parameter "fc1.weight" {layout = #mtp.layout<[[], ["tp"]]>} : tensor<64x256xbf16>
    %2 = mtp.parameter "fc1.bias" {init = "zeros", layout = #mtp.layout<[["tp"]]>} : tensor<256xbf16>
    %3 = mtp.einsum "fc1" "bsi,io->bso"(%0, %1, %2) {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "o">} : (tensor<16x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<16x32x256xbf16>
    %4 = mtp.activation "act" gelu_tanh(%3) {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d2">} : tensor<16x32x256xbf16>
    %5 = mtp.reshard %4 from <[["dp"], [], ["tp"]]> to <[["dp"], [], []]> cause "act" : tensor<16x32x256xbf16>
    mtp.backward (%arg0: tensor<16x32x256xbf16>) attributes {layouts = [#mtp.layout<[["dp", "tp"], [], []]>]} {
      %6 = mtp.input "x" dims ["batch", "sequence", "other"] {layout = #mtp.layout<[["dp"], [], []]>} : tensor<16x32x64xbf16>
      %7 = mtp.reshard %arg0 from <[["dp", "tp"], [], []]> to <[["dp"], [], ["tp"]]> cause "carried.grad" : tensor<16x32x256xbf16>
      %8 = mtp.activation_grad "act.grad" gelu_tanh(%3, %7) {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d2">} : tensor<16x32x256xbf16>
      %9 = mtp.einsum "fc1.dw" "bsi,bso->io"(%6, %8) {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "o">} : (tensor<16x32x64xbf16>, tensor<16x32x256xbf16>) -> tensor<64x256xbf16>
      %10 = mtp.sum "fc1.db"(%8) {mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "d2">} : (tensor<16x32x256xbf16>) -> tensor<256xbf16>
      mtp.accumulate "fc1.weight", %9 {layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>} : tensor<64x256xbf16>
      mtp.accumulate "fc1.bias", %10 {layout = #mtp.layout<[["tp"]], partial = ["dp"]>} : tensor<256xbf16>
      mtp.yield {layouts = []}
    }
    mtp.yield %5 : tensor<16x32x256xbf16> {layouts = [#mtp.layout<[["dp"], [], []]>]}
  }
  mtp.segment @head (%arg0: tensor<16x32x256xbf16>) attributes {layouts = [#mtp.layout<[["dp"], [], []]>]} {
    %0 = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f32>
    %1 = mtp.input "targets" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<16x32xi32>
    %2 = mtp.parameter "fc2.weight" {layout = #mtp.layout<[[], ["tp"]]>} : tensor<256x512xbf16>
    %3 = mtp.einsum "fc2" "bsi,iv->bsv"(%arg0, %2) {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "v">} : (tensor<16x32x256xbf16>, tensor<256x512xbf16>) -> tensor<16x32x512xbf16>
    %4 = mtp.reshard %3 from <[["dp"], [], ["tp"]]> to <[["dp"], [], []]> cause "fc2" : tensor<16x32x512xbf16>
    %5 = mtp.vocab_max "loss.max"(%4) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32x512xbf16>) -> tensor<16x32xf32>
    %6 = mtp.vocab_sum_exp "loss.sum_exp"(%4, %5) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32x512xbf16>, tensor<16x32xf32>) -> tensor<16x32xf32>
    %7 = mtp.vocab_pick "loss.pick"(%4, %1) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32x512xbf16>, tensor<16x32xi32>) -> tensor<16x32xf32>
    %8 = mtp.token_loss "loss"(%5, %6, %7, %1, %0) {mtp.strategy = #mtp.strategy<"dp" = "d0">} : (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xi32>, tensor<f32>) -> tensor<f32>
    mtp.accumulate "loss", %8 {layout = #mtp.layout<[], partial = ["dp"]>} : tensor<f32>
    mtp.backward () attributes {layouts = []} {
      %9 = mtp.input "count" dims [] {layout = #mtp.layout<[]>} : tensor<f32>
      %10 = mtp.input "targets" dims ["batch", "sequence"] below 500 {layout = #mtp.layout<[["dp"], []]>} : tensor<16x32xi32>
      %11 = mtp.cross_entropy_grad "loss.grad"(%3, %5, %6, %10, %9) {classes = 500 : i64, mtp.strategy = #mtp.strategy<"dp" = "d0", "tp" = "v">} : (tensor<16x32x512xbf16>, tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xi32>, tensor<f32>) -> tensor<16x32x512xbf16>
      %12 = mtp.einsum "fc2.dx" "bsv,iv->bsi"(%11, %2) {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "v">} : (tensor<16x32x512xbf16>, tensor<256x512xbf16>) -> tensor<16x32x256xbf16>
      %13 = mtp.reshard %12 from <[["dp"], [], []], partial = ["tp"]> to <[["dp", "tp"], [], []]> cause "fc2.dx" : tensor<16x32x256xbf16>
      %14 = mtp.einsum "fc2.dw" "bsi,bsv->iv"(%arg0, %11) {mtp.strategy = #mtp.strategy<"dp" = "b", "tp" = "v">} : (tensor<16x32x256xbf16>, tensor<16x32x512xbf16>) -> tensor<256x512xbf16>
      mtp.accumulate "fc2.weight", %14 {layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>} : tensor<256x512xbf16>
      mtp.yield %13 : tensor<16x32x256xbf16> {layouts = [#mtp.layout<[["dp", "tp"], [], []]>]}
    }
    mtp.yield {layouts = []}
  }
  mtp.update {
    %0 = mtp.accumulated "fc1.weight" {layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>} : tensor<64x256xbf16>
    %1 = mtp.reshard %0 from <[[], ["tp"]], partial = ["dp"]> to <[[], ["tp"]]> cause "fc1.weight" : tensor<64x256xbf16>
    mtp.adamw "fc1.weight", %1 {decay} : tensor<64x256xbf16>
    %2 = mtp.accumulated "fc1.bias" {layout = #mtp.layout<[["tp"]], partial = ["dp"]>} : tensor<256xbf16>
    %3 = mtp.reshard %2 from <[["tp"]], partial = ["dp"]> to <[["tp"]]> cause "fc1.bias" : tensor<256xbf16>
    mtp.adamw "fc1.bias", %3 : tensor<256xbf16>
    %4 = mtp.accumulated "fc2.weight" {layout = #mtp.layout<[[], ["tp"]], partial = ["dp"]>} : tensor<256x512xbf16>
    %5 = mtp.reshard %4 from <[[], ["tp"]], partial = ["dp"]> to <[[], ["tp"]]> cause "fc2.weight" : tensor<256x512xbf16>
    mtp.adamw "fc2.weight", %5 {decay} : tensor<256x512xbf16>
    %6 = mtp.accumulated "loss" {layout = #mtp.layout<[], partial = ["dp"]>} : tensor<f32>
    %7 = mtp.reshard %6 from <[], partial = ["dp"]> to <[]> cause "loss" : tensor<f32>
    mtp.result "loss", %7 : tensor<f32>
  }
}

