//===- megatron_refusals_test.cpp - Rejected Megatron-LM options ----------===//

#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/exchange/megatron.h"

namespace {

using namespace mtplan::tools;

// Each case breaks one rule of the trainers.
struct Refusal {
  std::int64_t gpus;
  const char *text;
  std::vector<std::string> errors;
};

#define TP "--tensor-model-parallel-size "
#define PP "--pipeline-model-parallel-size "
#define MB " --micro-batch-size 1 "
#define LAYOUT "--pipeline-model-parallel-layout "

std::vector<Refusal> refusals() {
  return {
      Refusal{8,
              TP "3" MB,
              {TP "3 does not divide the 8 GPUs; nearest numbers of GPUs: 6 "
                  "and 9"}},
      Refusal{3000,
              TP "8 " PP "64 --num-layers 64" MB,
              {TP "8 times " PP "64 is 512, which does not divide the 3000 "
                  "GPUs; nearest numbers of GPUs: 2560 and 3072"}},
      Refusal{8,
              TP "8 --num-attention-heads 52" MB,
              {TP "8 does not divide --num-attention-heads 52; nearest that "
                  "do: 4 and 13"}},
      Refusal{8,
              TP "8 --num-attention-heads 48 --group-query-attention "
                 "--num-query-groups 6" MB,
              {TP "8 neither divides --num-query-groups 6 nor is a multiple "
                  "of it; nearest that do: 6 and 12"}},
      Refusal{1,
              "--num-attention-heads 12 --hidden-size 1000" MB,
              {"--num-attention-heads 12 does not divide --hidden-size "
               "1000; nearest that do: 10 and 20"}},
      Refusal{1,
              "--num-attention-heads 12 --group-query-attention "
              "--num-query-groups 5" MB,
              {"--num-query-groups 5 does not divide --num-attention-heads "
               "12; nearest that do: 4 and 6"}},
      Refusal{8,
              TP "8 --ffn-hidden-size 100" MB,
              {TP "8 does not divide --ffn-hidden-size 100; nearest that "
                  "do: 5 and 10"}},
      Refusal{4,
              "--context-parallel-size 4 --seq-length 2044" MB,
              {"--seq-length 2044 does not divide by 8, twice "
               "--context-parallel-size 4; nearest that do: 2040 and "
               "2048"}},
      Refusal{4,
              TP "4 --sequence-parallel --seq-length 1023" MB,
              {"--sequence-parallel with " TP
               "4 and --context-parallel-size 1 does not divide "
               "--seq-length 1023; nearest --seq-length that divides: 1020 "
               "and 1024"}},
      Refusal{4,
              "--sequence-parallel" MB,
              {"--sequence-parallel needs --tensor-model-parallel-size "
               "above 1, but it is 1; nearest: 2"}},
      Refusal{4,
              PP "4 --num-layers 30" MB,
              {PP "4 does not divide --num-layers 30; nearest that do: 3 "
                  "and 5; or say the split by "
                  "--pipeline-model-parallel-layout"}},
      Refusal{16,
              PP "16 --num-layers 80 "
                 "--num-virtual-stages-per-pipeline-rank 2 "
                 "--global-batch-size 64" MB,
              {"--num-virtual-stages-per-pipeline-rank 2 does not divide "
               "the 5 layers of stage 0; nearest that do: 1 and 5"}},
      Refusal{2,
              PP "2 --num-layers 48 --decoder-first-pipeline-num-layers "
                 "11 --decoder-last-pipeline-num-layers 13" MB,
              {"--num-layers 48 less 11 of the first stage and 13 of the "
               "last stage leaves 24 layers for 0 stages; the two must add "
               "up to 48"}},
      Refusal{1,
              "--num-layers 8 --decoder-last-pipeline-num-layers 3" MB,
              {"--decoder-last-pipeline-num-layers needs "
               "--pipeline-model-parallel-size above 1, but it is 1; "
               "nearest: 2"}},
      Refusal{3,
              PP "3 --num-layers 10" MB,
              {PP "3 does not divide --num-layers 10; nearest that do: 2 "
                  "and 5; or say the split by "
                  "--pipeline-model-parallel-layout"}},
      Refusal{1,
              "--num-virtual-stages-per-pipeline-rank 2 --num-layers 8" MB,
              {"--num-virtual-stages-per-pipeline-rank 2 needs "
               "--pipeline-model-parallel-size of at least 2, but it is 1; "
               "nearest: 2"}},
      Refusal{4,
              PP "4 --num-layers 8 "
                 "--num-layers-per-virtual-pipeline-stage 1 "
                 "--global-batch-size 6" MB,
              {"--global-batch-size 6 makes 6 micro-batches a replica, "
               "which do not divide by " PP
               "4, as --num-virtual-stages-per-pipeline-rank 2 needs; "
               "nearest that do: 4 and 8"}},
      Refusal{8,
              "--micro-batch-size 3 --global-batch-size 100",
              {"--global-batch-size 100 does not divide by 24, which is "
               "--micro-batch-size 3 times 8 data-parallel replicas; "
               "nearest that do: 96 and 120"}},
      Refusal{8,
              "--num-experts 12 --expert-model-parallel-size 8" MB,
              {"--expert-model-parallel-size 8 does not divide "
               "--num-experts 12; nearest that do: 6 and 12"}},
      Refusal{8,
              TP "2 --num-experts 8 --expert-model-parallel-size 4" MB,
              {"--expert-model-parallel-size 4 with " TP
               "2 needs --sequence-parallel"}},
      Refusal{12,
              "--num-experts 8 --expert-model-parallel-size 8" MB,
              {"--expert-model-parallel-size 8 does not divide the 12 "
               "data-parallel replicas; nearest that do: 6 and 12"}},
      Refusal{4,
              PP "4 --num-layers 8 " LAYOUT "'Ett|tt|tt|tL'" MB,
              {LAYOUT "has 7 layers, but --num-layers is 8; the two must be "
                      "equal"}},
      Refusal{4,
              PP "4 --num-layers 6 " LAYOUT "'Ett|tt|ttL'" MB,
              {LAYOUT "has 3 parts, which do not divide by " PP
                      "4; nearest numbers of parts: 4"}},
      Refusal{1,
              LAYOUT "'Et*'" MB,
              {"--pipeline-model-parallel-layout: column 3: \"*\" needs a "
               "number of at least 1"}},
      Refusal{1,
              LAYOUT "'Etx'" MB,
              {"--pipeline-model-parallel-layout: column 3: \"x\" is none of "
               "E t m L | ( ) * and digits after *"}},
      Refusal{2,
              PP "2 " LAYOUT "'t|EtmL'" MB,
              {LAYOUT "must have one E, in the first part, but has 1, 0 of "
                      "them there",
               LAYOUT "has 1 m; mtplan has no layers that predict further "
                      "tokens"}},
      Refusal{1,
              "--recompute-granularity full --recompute-method uniform "
              "--recompute-num-layers 4" MB,
              {"--recompute-num-layers 4 with --recompute-method uniform "
               "keeps the input of every 4 layers, mtplan that of each "
               "layer; nearest: 1"}},
      Refusal{1,
              "--fp16 --bf16" MB,
              {"--fp16 contradicts --bf16; give one of them"}},
      Refusal{1,
              "--overlap-param-gather" MB,
              {"--overlap-param-gather: needs --overlap-grad-reduce",
               "--overlap-param-gather: needs --use-distributed-optimizer or "
               "--use-megatron-fsdp that shards"}},
      Refusal{1,
              "--micro-batch-size 1 --micro-batch-size 2",
              {"--micro-batch-size: given twice, as 1 in line 1 and as 2 in "
               "line 1"}},
      Refusal{1,
              "--bf16 yes --tensor-modle-parallel-size 2 --fp8-format e4m3" MB
              "--swiglu=1",
              {"--bf16: takes no value, got \"yes\"",
               "--tensor-modle-parallel-size: unknown option; the nearest "
               "known one is --tensor-model-parallel-size",
               "--fp8-format: not planned; mtplan plans bf16, fp16 and "
               "fp32; the nearest is --bf16",
               "--swiglu: takes no value, got \"1\""}},
      Refusal{1,
              "--micro-batch-size 0 --attention-dropout nan",
              {"--attention-dropout: must be a number from 0 to 0.999999, "
               "got \"nan\"",
               "--micro-batch-size: must be a whole number from 1 to "
               "2147483647, got \"0\""}},
      Refusal{1,
              "--bf16 --num-layers $LAYERS \"${MORE_ARGS}\"",
              {"line 1: $LAYERS is left to a shell, and mtplan runs none; "
               "pass the command as it is after expansion (\"set -x\" "
               "prints it)",
               "line 1: ${MORE_ARGS} is left to a shell, and mtplan runs "
               "none; pass the command as it is after expansion (\"set -x\" "
               "prints it)"}},
      Refusal{1,
              "--bf16 'open\n",
              {"line 2: the quote opened in line 1 is "
               "not closed"}}};
}

TEST(ExchangeMegatronRefusals, NamesBothNumbersAndNeighbours) {
  for (const Refusal &refusal : refusals())
    EXPECT_EQ(readMegatron(refusal.text, refusal.gpus).errors, refusal.errors)
        << refusal.text;
}

TEST(ExchangeMegatronRefusals, SurvivesBrokenText) {
  std::string whole =
      "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 "
      "--pipeline-model-parallel-size 3 --pipeline-model-parallel-layout "
      "'Et*3|(tt)*29|t*19L' --swiglu --normalization \"RMSNorm\" \\\n"
      "--recompute-granularity full --recompute-method block "
      "--recompute-num-layers 7 --micro-batch-size 1 --bf16 # end";
  for (std::size_t length = 0; length < whole.size(); ++length)
    readMegatron(whole.substr(0, length), 24);
  std::mt19937_64 random(11);
  const std::string letters = "-=\"'\\ \n#$|*()Etm,0123456789\xff";
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole;
    for (int k = 0; k < 6; ++k)
      text[random() % text.size()] = letters[random() % letters.size()];
    readMegatron(text, 24);
  }
  EXPECT_FALSE(readMegatron("--micro-batch-size 1", 0).ok());
  EXPECT_FALSE(
      readMegatron("--num-layers 10000 --pipeline-model-parallel-size 10000 "
                   "--num-virtual-stages-per-pipeline-rank 10000" MB,
                   10'000)
          .ok());
  EXPECT_FALSE(readMegatron("--num-layers 2 --pipeline-model-parallel-size 2 "
                            "--decoder-first-pipeline-num-layers x "
                            "--decoder-last-pipeline-num-layers 0 "
                            "--num-virtual-stages-per-pipeline-rank 10000" MB,
                            2)
                   .ok());
  std::string deep(5'000'000, '(');
  EXPECT_FALSE(readMegatron(LAYOUT "'" + deep + "'" MB, 1).ok());
  EXPECT_FALSE(
      readMegatron(LAYOUT "'Et*99999*99999999999999999999L'" MB, 1).ok());
  std::string many;
  while (many.size() < 10'000'000)
    many += "--nonsense-option value ";
  TrainerConfig config = readMegatron(many, 8);
  EXPECT_LT(config.errors.size(), 100u);
  EXPECT_FALSE(readMegatron(std::string().append(10'000'000, '-'), 8).ok());
  EXPECT_FALSE(readMegatron(std::string().append(10'000'000, '$'), 8).ok());
}

} // namespace
