module attributes {mtp.layers = 2 : i64} {
  mtp.segment @embed () {
    %0 = mtp.input "ids" dims ["batch", "sequence"] below 500 : tensor<1x32xi32>
    %1 = mtp.parameter "wte.weight" : tensor<512x64xbf16>
    %2 = mtp.embedding "wte"(%0, %1) : (tensor<1x32xi32>, tensor<512x64xbf16>) -> tensor<1x32x64xbf16>
    %3 = mtp.dropout "embed.drop"(%2) {mask = "embed.drop", rate = 1.000000e-01 : f64} : tensor<1x32x64xbf16>
    mtp.yield %3 : tensor<1x32x64xbf16>
  }
  mtp.segment @h repeat 2 (%arg0: tensor<1x32x64xbf16>) {
    %0 = mtp.parameter "h.*.ln_1.weight" {init = "ones"} : tensor<64xbf16>
    %1 = mtp.parameter "h.*.ln_1.bias" {init = "zeros"} : tensor<64xbf16>
    %2 = mtp.layer_norm "h.*.ln_1"(%arg0, %0, %1) : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %3 = mtp.parameter "h.*.ln_2.weight" {init = "ones"} : tensor<64xbf16>
    %4 = mtp.parameter "h.*.ln_2.bias" {init = "zeros"} : tensor<64xbf16>
    %5 = mtp.layer_norm "h.*.ln_2"(%arg0, %3, %4) : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %6 = mtp.parameter "h.*.attn.q.weight" : tensor<64x64xbf16>
    %7 = mtp.parameter "h.*.attn.q.bias" {init = "zeros"} : tensor<64xbf16>
    %8 = mtp.einsum "h.*.attn.q" "bsi,io->bso"(%2, %6, %7) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %9 = mtp.parameter "h.*.attn.k.weight" : tensor<64x64xbf16>
    %10 = mtp.parameter "h.*.attn.k.bias" {init = "zeros"} : tensor<64xbf16>
    %11 = mtp.einsum "h.*.attn.k" "bsi,io->bso"(%2, %9, %10) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %12 = mtp.parameter "h.*.attn.v.weight" : tensor<64x64xbf16>
    %13 = mtp.parameter "h.*.attn.v.bias" {init = "zeros"} : tensor<64xbf16>
    %14 = mtp.einsum "h.*.attn.v" "bsi,io->bso"(%2, %12, %13) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %15 = mtp.rope "h.*.attn.q_rope"(%8) {head_dim = 8 : i64, rotary_dim = 2 : i64, theta = 1.000000e+04 : f64} : tensor<1x32x64xbf16>
    %16 = mtp.rope "h.*.attn.k_rope"(%11) {head_dim = 8 : i64, rotary_dim = 2 : i64, theta = 1.000000e+04 : f64} : tensor<1x32x64xbf16>
    %result, %lse = mtp.attention "h.*.attn.core"(%15, %16, %14) {causal = true, head_dim = 8 : i64, mask = "h.*.attn.core", rate = 1.000000e-01 : f64, scale = 0.35355339059327373 : f64} : (tensor<1x32x64xbf16>, tensor<1x32x64xbf16>, tensor<1x32x64xbf16>) -> (tensor<1x32x64xbf16>, tensor<1x32x8xf32>)
    %17 = mtp.parameter "h.*.attn.proj.weight" {init = "residual"} : tensor<64x64xbf16>
    %18 = mtp.parameter "h.*.attn.proj.bias" {init = "zeros"} : tensor<64xbf16>
    %19 = mtp.einsum "h.*.attn.proj" "bsi,io->bso"(%result, %17, %18) : (tensor<1x32x64xbf16>, tensor<64x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %20 = mtp.dropout "h.*.attn.drop"(%19) {mask = "h.*.attn.drop", rate = 1.000000e-01 : f64} : tensor<1x32x64xbf16>
    %21 = mtp.parameter "h.*.mlp.fc1.weight" : tensor<64x256xbf16>
    %22 = mtp.parameter "h.*.mlp.fc1.bias" {init = "zeros"} : tensor<256xbf16>
    %23 = mtp.einsum "h.*.mlp.fc1" "bsi,io->bso"(%5, %21, %22) : (tensor<1x32x64xbf16>, tensor<64x256xbf16>, tensor<256xbf16>) -> tensor<1x32x256xbf16>
    %24 = mtp.activation "h.*.mlp.act" gelu_tanh(%23) : tensor<1x32x256xbf16>
    %25 = mtp.parameter "h.*.mlp.fc2.weight" {init = "residual"} : tensor<256x64xbf16>
    %26 = mtp.parameter "h.*.mlp.fc2.bias" {init = "zeros"} : tensor<64xbf16>
    %27 = mtp.einsum "h.*.mlp.fc2" "bsi,io->bso"(%24, %25, %26) : (tensor<1x32x256xbf16>, tensor<256x64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %28 = mtp.dropout "h.*.mlp.drop"(%27) {mask = "h.*.mlp.drop", rate = 1.000000e-01 : f64} : tensor<1x32x64xbf16>
    %29 = mtp.add "h.*.attn.add"(%20, %28) : tensor<1x32x64xbf16>
    %30 = mtp.add "h.*.mlp.add"(%arg0, %29) : tensor<1x32x64xbf16>
    mtp.yield %30 : tensor<1x32x64xbf16>
  }
  mtp.segment @head (%arg0: tensor<1x32x64xbf16>) {
    %0 = mtp.parameter "ln_f.weight" {init = "ones"} : tensor<64xbf16>
    %1 = mtp.parameter "ln_f.bias" {init = "zeros"} : tensor<64xbf16>
    %2 = mtp.layer_norm "ln_f"(%arg0, %0, %1) : (tensor<1x32x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> tensor<1x32x64xbf16>
    %3 = mtp.parameter "lm_head.weight" : tensor<64x512xbf16>
    %4 = mtp.einsum "lm_head" "bsi,iv->bsv"(%2, %3) : (tensor<1x32x64xbf16>, tensor<64x512xbf16>) -> tensor<1x32x512xbf16>
    %5 = mtp.input "targets" dims ["batch", "sequence"] below 500 : tensor<1x32xi32>
    %6 = mtp.input "count" dims [] : tensor<f32>
    %7 = mtp.vocab_max "loss.max"(%4) {classes = 500 : i64} : (tensor<1x32x512xbf16>) -> tensor<1x32xf32>
    %8 = mtp.vocab_sum_exp "loss.sum_exp"(%4, %7) {classes = 500 : i64} : (tensor<1x32x512xbf16>, tensor<1x32xf32>) -> tensor<1x32xf32>
    %9 = mtp.vocab_pick "loss.pick"(%4, %5) : (tensor<1x32x512xbf16>, tensor<1x32xi32>) -> tensor<1x32xf32>
    %10 = mtp.token_loss "loss"(%7, %8, %9, %5, %6) : (tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xf32>, tensor<1x32xi32>, tensor<f32>) -> tensor<f32>
    mtp.accumulate "loss", %10 : tensor<f32>
    mtp.yield
  }
}

