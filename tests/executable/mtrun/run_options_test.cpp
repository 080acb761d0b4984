//===- run_options_test.cpp - Messages of mtrun about its options ---------===//

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_backend.h"
#include "tests/executable/run_process.h"
#include "tests/tools/command_testing.h"
#include "tools/run/run_command.h"

namespace mtplan {
namespace {

using testing::HasSubstr;

TEST(RunOptions, ErrorsNameTheValidValues) {
  const std::map<std::vector<std::string>, std::string> cases = {
      {{"--steps", "0"}, "error: --steps 0: must be 1 to 1000000000\n"},
      {{"--steps", "1000000001"},
       "error: --steps 1000000001: must be 1 to 1000000000\n"},
      {{"--warmup", "9223372036854775807"},
       "error: --warmup 9223372036854775807: must be 0 to 1000000000\n"},
      {{"--lr", "-1"}, "error: --lr -1: must be above 0\n"},
      {{"--lr", "nan"}, "error: --lr nan: must be above 0\n"},
      {{"--lr-floor", "1.5"},
       "error: --lr-floor 1.5: must be a share, 0 to 1\n"},
      {{"--lr-decay", "cosin"},
       "error: --lr-decay cosin: must be constant, linear, cosine, "
       "inverse-square-root or wsd; nearest is cosine\n"},
      {{"--warmup", "-2"}, "error: --warmup -2: must be 0 to 1000000000\n"},
      {{"--weight-decay", "-0.1"},
       "error: --weight-decay -0.1: must be 0 or more\n"},
      {{"--clip", "-1"}, "error: --clip -1: must be 0 (none) or more\n"},
      {{"--on-nan", "ignore"},
       "error: --on-nan ignore: must be stop or skip; nearest is stop\n"},
      {{"--backend", "cudo"},
       "error: --backend cudo: must be cpu or cuda; nearest is cuda\n"},
      {{"--every", "0"}, "error: --every 0: must be 1 or more\n"},
      {{"--threads", "0"}, "error: --threads 0: must be 1 to 1024\n"},
      {{"--patience", "0"},
       "error: --patience 0: must be 0.1 to 1000000 seconds\n"},
      {{"--format", "megatro"},
       "error: --format megatro: must be text, megatron, llm.c, uint16 or "
       "uint32; nearest is megatron\n"},
      {{"--eval-every", "3"}, "error: --eval-every 3: needs --valid FILE\n"},
      {{"--valid", kText, "--eval-steps", "0"},
       "error: --eval-steps 0: must be 1 to 1000000000\n"},
      {{"--trace-step", "3"}, "error: --trace-step 3: needs --trace FILE\n"},
      {{"--save-every", "9", "--keep", "3"},
       "error: --save-every 9: needs --checkpoint FOLDER, without which "
       "nothing is saved\n"
       "error: --keep 3: needs --checkpoint FOLDER, without which nothing is "
       "saved\n"},
      {{"--trace", "t.json", "--trace-step", "7", "--steps", "5"},
       "error: --trace-step 7: must be 1 to 5, the last step\n"},
      {{"--steps", "0", "--every", "0"},
       "error: --steps 0: must be 1 to 1000000000\nerror: --every 0: must be 1 "
       "or "
       "more\n"},
      {{"--stps", "5"},
       "error: --stps: no such option; nearest is --steps\nerror: 5: is not "
       "expected; mtrun takes one folder, and every option takes one value\n"},
  };
  for (const auto &[flags, words] : cases) {
    std::vector<std::string> arguments{"run", "--data", kText};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2) << words;
    EXPECT_EQ(ran.err, words);
    EXPECT_EQ(ran.out, "");
  }
}

TEST(RunOptions, InvalidNumbersAreReported) {
  const std::map<std::vector<std::string>, std::string> cases = {
      {{"--steps", "many"}, "--steps: many is not a whole number"},
      {{"--threads", "1.5"}, "--threads: 1.5 is not a whole number"},
      {{"--lr", "fast"}, "--lr: fast is not a number"},
      {{"--seed", "-1"}, "--seed: -1 is not a whole number, 0 or more"},
      {{"--eval-every", "x"}, "--eval-every: x is not a whole number"},
  };
  for (const auto &[flags, words] : cases) {
    std::vector<std::string> arguments{"run", "--data", kText};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr(words));
  }
}

TEST(RunOptions, MessagesStartWithError) {
  for (const std::vector<std::string> &arguments :
       {std::vector<std::string>{"run", "--seed", "-1"},
        {"data", "info"},
        {"ckpt", "convert", "kept"},
        {"calibrate", "--ranks", "x"}}) {
    const Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.out, "");
    EXPECT_THAT(ran.err, testing::StartsWith("error: "));
    EXPECT_EQ(std::ranges::count(ran.err, '\n'), 1) << ran.err;
  }
}

TEST(RunOptions, ModelInPlaceOfAPlanIsRejected) {
  const std::string model = tools::examplePath("tiny-gpt2");
  EXPECT_EQ(runHere({model, "--data", kText}).err,
            "error: " + model +
                ": is no plan: it has neither a version nor stages; `mtplan "
                "MODEL -o FOLDER` writes one\n");
}

TEST(RunOptions, UnwritableOutputFails) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  EXPECT_EQ(tools::runTraining({"data", "info", kText}, full, err), 1);
  EXPECT_EQ(err.str(), "error: standard output cannot be written\n");
}

TEST(RunOptions, InputFilesAreNotOverwritten) {
  TestFolder folder;
  const std::string plan = folder / "run", data = folder / "own.txt";
  ASSERT_EQ(compileExample("tiny-gpt2", plan, {"--gpus", "1"}), "");
  std::filesystem::copy_file(kText, data);
  const auto refused = [&](const std::vector<std::string> &arguments,
                           const std::string &words) {
    const Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, "error: " + words + '\n');
    EXPECT_EQ(contentOf(data), contentOf(kText));
  };
  refused({plan, "--data", data, "--metrics", data},
          "--metrics " + data + ": is what --data names; give it another name");
  refused({plan, "--data", kText, "--valid", data, "--trace", data},
          "--trace " + data + ": is what --valid names; give it another name");
  refused({plan, "--data", data, "--trace", plan + "/plan.json"},
          "--trace " + plan +
              "/plan.json: is what FOLDER names; give it another name");
  refused({plan, "--data", data, "--trace", "both", "--metrics", "both"},
          "--trace both: is what --metrics names; give it another name");
  for (const auto &[by, to] :
       {std::pair("FILE", data), std::pair("PLAN", plan + "/plan.json")})
    refused({"data", "steps", data, plan, to},
            to + ": is what " + by + " names; give it another name");
  refused({plan + "/plan.json", "--data", data, "--trace",
           plan + "/predicted.json"},
          "--trace " + plan +
              "/predicted.json: is what FOLDER names; give it another name");
  refused(
      {"calibrate", "-o", folder / "both", "--measurements", folder / "both"},
      "--measurements " + (folder / "both") +
          ": is what -o names; give it another name");
}

TEST(RunOptions, TextCannotTrainAnImageModel) {
  TestFolder folder;
  ASSERT_EQ(compileExample("tiny-vit", folder / "run", {"--gpus", "1"}), "");
  const Ran ran = runHere({folder / "run", "--data", kText});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("use --data synthetic"));
}

TEST(RunOptions, MissingOptionsAreReported) {
  for (const std::vector<std::string> &arguments :
       std::vector<std::vector<std::string>>{{}, {"run"}, {"--data", kText}}) {
    const Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_EQ(ran.err, "error: a folder and --data are needed: mtrun run "
                       "--data text.txt\n");
  }
  EXPECT_THAT(runHere({"/nowhere", "--data", kText}).err,
              HasSubstr("error: /nowhere: "));
  TestFolder folder;
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "run", {"--gpus", "1"}), "");
  for (const char *option : {"--data", "--valid"}) {
    std::vector<std::string> arguments{folder / "run", option,
                                       folder / "gone.txt"};
    if (std::string(option) == "--valid")
      arguments.insert(arguments.end(), {"--data", kText});
    const Ran ran = runHere(arguments);
    EXPECT_EQ(ran.code, 2);
    EXPECT_THAT(ran.err, HasSubstr("gone.txt"));
  }
}

TEST(RunOptions, HelpListsAllOptions) {
  const Ran ran = runHere({"--help"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.err, "");
  for (const char *option :
       {"--data FILE",        "--format WORD",      "--steps N",
        "--valid FILE",       "--eval-every N",     "--eval-steps N",
        "--lr RATE",          "--lr-decay WORD",    "--lr-floor SHARE",
        "--warmup N",         "--weight-decay X",   "--clip NORM",
        "--loss-scale WORD",  "--on-nan WORD",      "--seed N",
        "--every N",          "--metrics FILE",     "--tensorboard FOLDER",
        "--trace FILE",       "--trace-step N",     "--threads N",
        "--backend NAME",     "--patience SECONDS", "mpirun -np 4 mtrun",
        "Exit status: 0 done"})
    EXPECT_THAT(ran.out, HasSubstr(option));
  EXPECT_THAT(runHere({"data", "--help"}).out, HasSubstr("convert"));
}

TEST(RunOptions, MissingGpuIsReportedInOneLine) {
  if (runtime::cudaDevices() > 0)
    GTEST_SKIP() << "there is a GPU";
  TestFolder folder;
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "run", {"--gpus", "2"}), "");
  const Ran ran =
      runHere({folder / "run", "--data", kText, "--backend", "cuda"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, "error: --backend cuda: " + runtime::whyNoCudaDevice() +
                         "; --backend cpu trains the same plan on CPU ranks\n");
}

TEST(RunOptions, EventsFolderIsCreated) {
  TestFolder folder;
  ASSERT_EQ(compileExample("tiny-gpt2", folder / "run", {"--gpus", "1"}), "");
  const Ran ran = runHere({folder / "run", "--data", kText, "--steps", "2",
                           "--threads", "1", "--tensorboard", folder / "a/b"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  std::size_t files = 0;
  for (const auto &entry :
       std::filesystem::directory_iterator(folder / "a/b")) {
    ++files;
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name.starts_with("events.out.tfevents.")) << name;
    EXPECT_THAT(contentOf(entry.path()), HasSubstr("loss"));
  }
  EXPECT_EQ(files, 1U);
}

} // namespace
} // namespace mtplan
