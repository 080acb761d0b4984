module attributes {mtp.layers = 2 : i64} {
  mtp.segment @embed () {
    %0 = mtp.input "ids" dims ["batch", "sequence"] below 500 : tensor<1x32xi32>
    %1 = mtp.parameter "wte.weight" : tensor<512x64xbf16>
    %2 = mtp.embedding "wte"(%0, %1) : (tensor<1x32xi32>, tensor<512x64xbf16>) -> tensor<1x32x64xbf16>
    %3 = mtp.input "types" dims ["batch", "sequence"] below 2 : tensor<1x32xi32>
    %4 = mtp.parameter "wtt.weight" : tensor<2x64xbf16>
    %5 = mtp.embedding "wtt"(%3, %4) : (tensor<1x32xi32>, tensor<2x64xbf16>) -> tensor<1x32x64xbf16>
    %6 = mtp.add "embed.add"(%2, %5) : tensor<1x32x64xbf16>
    %7 = mtp.parameter "wpe.weight" : tensor<32x64xbf16>
    %8 = mtp.position_embedding "wpe"(%6, %7) : (tensor<1x32x64xbf16>, tensor<32x64xbf16>) -> tensor<1x32x64xbf16>
    %9 = mtp.parameter "embed.norm.weight" {init = "ones"} : tensor<64xbf16>
    %10 = mtp.parameter "embed.norm.bias" {init = "zeros"} : tensor<64xbf16>
    %11 = mtp.layer_norm "embed.norm"(%8, %9, %10) {epsilon = 9.9999999999999998E-13 : f64} : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %12 = mtp.dropout "embed.drop"(%11) {mask = "embed.drop", rate = 1.000000e-01 : f64} : tensor<1x32x64xbf16>
    mtp.yield %12 : tensor<1x32x64xbf16>
  }
  mtp.segment @h repeat 2 (%arg0: tensor<1x32x64xbf16>) {
    %0 = mtp.parameter "h.*.attn.q.weight" : tensor<64x64xbf16>
    %1 = mtp.parameter "h.*.attn.q.bias" {init = "zeros"} : tensor<64xbf16>
    %2 = mtp.einsum "h.*.attn.q" "bsi,io->bso"(%arg0, %0, %1) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %3 = mtp.parameter "h.*.attn.k.weight" : tensor<64x64xbf16>
    %4 = mtp.parameter "h.*.attn.k.bias" {init = "zeros"} : tensor<64xbf16>
    %5 = mtp.einsum "h.*.attn.k" "bsi,io->bso"(%arg0, %3, %4) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %6 = mtp.parameter "h.*.attn.v.weight" : tensor<64x64xbf16>
    %7 = mtp.parameter "h.*.attn.v.bias" {init = "zeros"} : tensor<64xbf16>
    %8 = mtp.einsum "h.*.attn.v" "bsi,io->bso"(%arg0, %6, %7) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %result, %lse = mtp.attention "h.*.attn.core"(%2, %5, %8) {causal = false, head_dim = 8 : i64, mask = "h.*.attn.core", rate = 1.000000e-01 : f64, scale = 0.35355339059327373 : f64} : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> (tensor<1x32x64xbf16>, tensor<1x32x8xf32>)
    %9 = mtp.parameter "h.*.attn.proj.weight" {init = "residual"} : tensor<64x64xbf16>
    %10 = mtp.parameter "h.*.attn.proj.bias" {init = "zeros"} : tensor<64xbf16>
    %11 = mtp.einsum "h.*.attn.proj" "bsi,io->bso"(%result, %9, %10) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %12 = mtp.dropout "h.*.attn.drop"(%11) {mask = "h.*.attn.drop", rate = 1.000000e-01 : f64} : tensor<1x32x64xbf16>
    %13 = mtp.add "h.*.attn.add"(%arg0, %12) : tensor<1x32x64xbf16>
    %14 = mtp.parameter "h.*.ln_1.weight" {init = "ones"} : tensor<64xbf16>
    %15 = mtp.parameter "h.*.ln_1.bias" {init = "zeros"} : tensor<64xbf16>
    %16 = mtp.layer_norm "h.*.ln_1"(%13, %14, %15) {epsilon = 9.9999999999999998E-13 : f64} : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %17 = mtp.parameter "h.*.mlp.fc1.weight" : tensor<64x256xbf16>
    %18 = mtp.parameter "h.*.mlp.fc1.bias" {init = "zeros"} : tensor<256xbf16>
    %19 = mtp.einsum "h.*.mlp.fc1" "bsi,io->bso"(%16, %17, %18) : (tensor<1x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<1x32x256xbf16>
    %20 = mtp.activation "h.*.mlp.act" gelu(%19) : tensor<1x32x256xbf16>
    %21 = mtp.parameter "h.*.mlp.fc2.weight" {init = "residual"} : tensor<256x64xbf16>
    %22 = mtp.parameter "h.*.mlp.fc2.bias" {init = "zeros"} : tensor<64xbf16>
    %23 = mtp.einsum "h.*.mlp.fc2" "bsi,io->bso"(%20, %21, %22) : (tensor<1x32x256xbf16>, tensor<256x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %24 = mtp.dropout "h.*.mlp.drop"(%23) {mask = "h.*.mlp.drop", rate = 1.000000e-01 : f64} : tensor<1x32x64xbf16>
    %25 = mtp.add "h.*.mlp.add"(%16, %24) : tensor<1x32x64xbf16>
    %26 = mtp.parameter "h.*.ln_2.weight" {init = "ones"} : tensor<64xbf16>
    %27 = mtp.parameter "h.*.ln_2.bias" {init = "zeros"} : tensor<64xbf16>
    %28 = mtp.layer_norm "h.*.ln_2"(%25, %26, %27) {epsilon = 9.9999999999999998E-13 : f64} : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    mtp.yield %28 : tensor<1x32x64xbf16>
  }
  mtp.segment @head (%arg0: tensor<1x32x64xbf16>) {
    %0 = mtp.parameter "cls.transform.weight" : tensor<64x64xbf16>
    %1 = mtp.parameter "cls.transform.bias" {init = "zeros"} : tensor<64xbf16>
    %2 = mtp.einsum "cls.transform" "bsi,io->bso"(%arg0, %0, %1) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %3 = mtp.activation "cls.act" gelu(%2) : tensor<1x32x64xbf16>
    %4 = mtp.parameter "cls.norm.weight" {init = "ones"} : tensor<64xbf16>
    %5 = mtp.parameter "cls.norm.bias" {init = "zeros"} : tensor<64xbf16>
    %6 = mtp.layer_norm "cls.norm"(%3, %4, %5) {epsilon = 9.9999999999999998E-13 : f64} : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %7 = mtp.parameter "wte.weight" : tensor<512x64xbf16>
    %8 = mtp.parameter "lm_head.bias" {init = "zeros"} : tensor<512xbf16>
    %9 = mtp.einsum "lm_head" "bsi,vi->bsv"(%6, %7, %8) : (tensor<1x32x64xbf16>, tensor<512x64xbf16>, tensor<512xbf16>) -> tensor<1x32x512xbf16>
    %10 = mtp.input "targets" dims ["batch", "sequence"] below 500 : tensor<1x32xi32>
    %11 = mtp.input "count" dims [] : tensor<f32>
    %12 = mtp.vocab_max "loss.max"(%9) {classes = 500 : i64} : (tensor<1x32x512xbf16>) -> tensor<1x32xf32>
    %13 = mtp.vocab_sum_exp "loss.sum_exp"(%9, %12) {classes = 500 : i64} : (tensor<1x32x512xbf16>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %14 = mtp.vocab_pick "loss.pick"(%9, %10) : (tensor<1x32x512xbf16>, tensor<1x32xi32>) -> tensor<1x32xf32>
    %15 = mtp.token_loss "loss"(%12, %13, %14, %10, %11) : (tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xi32>, tensor<f32>) -> tensor<f32>
    mtp.accumulate "loss", %15 : tensor<f32>
    mtp.yield
  }
}

