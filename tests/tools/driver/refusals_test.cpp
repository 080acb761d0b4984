//===- refusals_test.cpp - Rejected command lines -------------------------===//
//
// Each case has a command line and all of its errors.
//
//===----------------------------------------------------------------------===//

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/test_helpers.h"
#include "tests/tools/command_testing.h"

namespace mtplan::tools {
namespace {

struct Refusal {
  const char *test, *model;
  std::vector<std::string> arguments;
  std::vector<std::string> errors;
};

void PrintTo(const Refusal &refusal, std::ostream *out) {
  *out << refusal.test;
}

std::string nameOfTest(const testing::TestParamInfo<Refusal> &info) {
  return info.param.test;
}

class Refusals : public testing::TestWithParam<Refusal> {};

TEST_P(Refusals, ListAllErrors) {
  Ran ran = runExample(GetParam().model, GetParam().arguments);
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(ran.out, "");
  std::string expected;
  for (const std::string &error : GetParam().errors)
    expected += "error: " + error + '\n';
  EXPECT_EQ(ran.err, expected);
}

constexpr const char *kGpt = "tiny-gpt2";

INSTANTIATE_TEST_SUITE_P(
    Numbers, Refusals,
    testing::Values(
        Refusal{"Zero",
                kGpt,
                {"--gpus", "0"},
                {"--gpus: must be a whole number from 1 to 1048576, but is 0"}},
        Refusal{"Negative",
                kGpt,
                {"--tp", "-4"},
                {"--tp: must be a whole number from 1 to 1048576, but is -4"}},
        Refusal{"Huge",
                kGpt,
                {"--dp", "99999999999999999999"},
                {"--dp: must be a whole number from 1 to 1048576, but is "
                 "99999999999999999999"}},
        Refusal{"Word",
                kGpt,
                {"--micro-batch", "four"},
                {"--micro-batch: must be a whole number from 1 to 1048576, but "
                 "is \"four\""}},
        Refusal{"Fraction",
                kGpt,
                {"--global-batch", "1.5"},
                {"--global-batch: must be a whole number from 1 to 1048576, "
                 "but is \"1.5\""}},
        Refusal{"Empty",
                kGpt,
                {"--top", ""},
                {"--top: must be a whole number from 1 to 100, but is \"\""}},
        Refusal{"Layers",
                kGpt,
                {"--layers", "10001"},
                {"--layers: must be a whole number from 1 to 10000, but is "
                 "10001"}},
        Refusal{"Sequence",
                kGpt,
                {"--seq", "0"},
                {"--seq: must be a whole number from 1 to 2147483647, but is "
                 "0"}},
        Refusal{"OffloadUnknown",
                kGpt,
                {"--offload", "parameters"},
                {"--offload: unknown kind \"parameters\"; nearest first, known "
                 "are optimizer and none"}},
        Refusal{"OffloadWithoutAHost",
                kGpt,
                {"--offload", "optimizer", "--hardware", "generic"},
                {"offload: generic does not describe its host; a machine file "
                 "with \"host\" does (docs/machine-format.md), as the preset "
                 "dgx-a100-80g"}},
        Refusal{"RecomputeLayersOfAPart",
                "gpt2-1.2b",
                {"--recompute-layers", "3,99"},
                {"recompute-layers 99 is more than the 40 layers of a virtual "
                 "stage; at most 40, or left out for all of them"}},
        Refusal{"RecomputeLayersOfAStage",
                "gpt2-1.2b",
                {"--recompute-layers", "12", "--pp", "4"},
                {"recompute-layers 12 is more than the 10 layers of a virtual "
                 "stage; at most 10, or left out for all of them"}},
        Refusal{"RecomputeLayersOfAnUnevenStage",
                "gpt2-1.2b",
                {"--recompute-layers", "31", "--pp", "2", "--stage-layers",
                 "10,30"},
                {"recompute-layers 31 is more than the 30 layers of a virtual "
                 "stage; at most 30, or left out for all of them"}},
        Refusal{
            "RecomputeLayersOfAnyCut",
            "gpt2-1.2b",
            {"--recompute-layers", "40", "--pp", "2", "--stage-layers", "any"},
            {"recompute-layers 40 is more than the 39 layers of a virtual "
             "stage; at most 39, or left out for all of them"}},
        Refusal{"TilesWithoutZero3",
                kGpt,
                {"--tiles", "4", "--zero", "0,1"},
                {"tiles 4 divide the weights that ZeRO 3 gathers; use --zero "
                 "3, or --tiles 1"}},
        Refusal{"TilesOfOneGpu",
                kGpt,
                {"--tiles", "2", "--gpus", "1", "--zero", "any"},
                {"tiles 2 need ZeRO 3, which on one GPU must be requested with "
                 "--zero 3"}},
        Refusal{"MemoryNotANumber",
                kGpt,
                {"--memory-gib", "nan"},
                {"--memory-gib: must be a number above 0 and at most 1000000, "
                 "but is \"nan\""}},
        Refusal{"MemoryNegative",
                kGpt,
                {"--memory-gib", "-1"},
                {"--memory-gib: must be a number above 0 and at most 1000000, "
                 "but is \"-1\""}},
        // NOLINTBEGIN(bugprone-suspicious-missing-comma): long messages
        Refusal{
            "SeveralAtOnce",
            kGpt,
            {"--gpus", "x", "--tp", "3", "--precision", "bf17", "--stage",
             "planned"},
            {R"(--gpus: must be a whole number from 1 to 1048576, but is "x")",
             "--precision: unknown precision \"bf17\"; nearest first, "
             "known are bf16, fp16, fp8 and fp32",
             "--stage: needs --emit mlir",
             "tp 3 does not divide the 8 GPUs; nearest that do: 2 and 4",
             "8 heads do not divide by tp 3; tp may be 1 2 4 8, or any with "
             "--splits that leave head out"}}
        // NOLINTEND(bugprone-suspicious-missing-comma)
        ),
    nameOfTest);

INSTANTIATE_TEST_SUITE_P(
    Meshes, Refusals,
    testing::Values(
        // Qwen2 7B has 28 query heads and 4 key/value heads.
        Refusal{
            "Heads",
            "qwen2-7b",
            {"--tp", "8"},
            {"28 heads do not divide by tp 8; tp may be 1 2 4 7 14 28, or any "
             "with --splits that leave head out",
             "4 key/value heads do not divide by tp 8; tp may be 1 2 4, or "
             "any with --splits that leave head out"}},
        Refusal{"KeyValueHeads",
                "qwen2-7b",
                {"--tp", "7", "--gpus", "7"},
                {"4 key/value heads do not divide by tp 7; tp may be 1 2 4, or "
                 "any with --splits that leave head out"}},
        Refusal{"Product",
                kGpt,
                {"--tp", "4", "--dp", "4"},
                {"tp 4 times dp 4 is 16, not the 8 GPUs; with tp 4, dp must be "
                 "2; with dp 4, tp must be 2"}},
        Refusal{"Dp",
                kGpt,
                {"--dp", "5", "--gpus", "12"},
                {"dp 5 does not divide the 12 GPUs; nearest that do: 4 and 6",
                 "global batch 512 does not divide by dp 5; nearest that do: "
                 "510 and 515"}},
        Refusal{"TpAboveGpus",
                kGpt,
                {"--tp", "8", "--gpus", "4"},
                {"tp 8 does not divide the 4 GPUs; nearest that do: 4"}},
        Refusal{"GlobalBatch",
                kGpt,
                {"--dp", "8", "--global-batch", "500"},
                {"global batch 500 does not divide by dp 8; nearest that do: "
                 "496 and 504"}},
        Refusal{"GlobalBatchBelowDp",
                kGpt,
                {"--tp", "1", "--global-batch", "5"},
                {"global batch 5 does not divide by dp 8; nearest that do: 8"}},
        Refusal{"MicroBatch",
                kGpt,
                {"--dp", "8", "--micro-batch", "3"},
                {"micro-batch 3 does not divide the 64 samples of a replica "
                 "(global batch 512 over dp 8); nearest that do: 2 and 4"}},
        Refusal{"MicroBatchOfNoMesh",
                kGpt,
                {"--micro-batch", "3"},
                {"micro-batch 3 does not divide global batch 512; nearest that "
                 "do: 2 and 4"}}),
    nameOfTest);

INSTANTIATE_TEST_SUITE_P(
    Words, Refusals,
    testing::Values(
        Refusal{"TwoOutputs",
                kGpt,
                {"--emit", "mlir", "--verify"},
                {"--emit: prints IR and --verify a proof: give one"}},
        Refusal{"NothingToDraw",
                kGpt,
                {"--emit", "mlir", "--stage", "model", "--dot", "x"},
                {"--dot: draws a plan, and there is none at --stage model"}},
        Refusal{"NoSplitIsLeft",
                kGpt,
                {"--splits", "sequence", "--sequence-parallel", "off"},
                {"--sequence-parallel: is off, but --splits names sequence "
                 "only: nothing is left"}},
        Refusal{"TooManyToProve",
                kGpt,
                {"--gpus", "512", "--verify"},
                {"--verify: a proof runs every rank, here 512; at most 256 can "
                 "be proved: prove the same --tp on fewer replicas"}},
        Refusal{"Hardware",
                kGpt,
                {"--hardware", "dgx-h200"},
                {"no machine file \"dgx-h200\" can be read, and the presets "
                 "are: cpu, dgx-1, dgx-1v, dgx-2h, dgx-a100-40g, "
                 "dgx-a100-80g, dgx-h100, gb200-nvl72, gb300-nvl72, generic, "
                 "grand-teton-h100-500w, hgx-b200, hgx-b300, hgx-h200, "
                 "jean-zay-a100, jean-zay-a100-2022-01, p4d, p4de, p5, "
                 "p6-b200, pcie-a100-80g, pcie-a100-80g-pairs, vtrain-a100"}},
        Refusal{"PrecisionOfMachine",
                kGpt,
                {"--hardware", "dgx-2h", "--precision", "bf16"},
                {"dgx-2h has no bf16; --precision may be fp16 and fp32"}},
        Refusal{
            "Split",
            kGpt,
            {"--splits", "column,colum"},
            {"--splits: unknown split \"colum\"; nearest first, known are "
             "column, row, vocab, head, batch, expert, hidden and sequence"}},
        Refusal{"SequenceParallel",
                kGpt,
                {"--sequence-parallel", "yes"},
                {"--sequence-parallel: must be on or off, but is \"yes\""}},
        Refusal{"SequenceParallelOfTp1",
                kGpt,
                {"--tp", "1", "--sequence-parallel", "on"},
                {"sequence-parallel on splits the sequence over tp, which is "
                 "1; nearest tp that divides sequence 32: 2, or "
                 "sequence-parallel off"}},
        Refusal{"SequenceParallelOfOneGpu",
                kGpt,
                {"--gpus", "1", "--sequence-parallel", "on"},
                {"sequence-parallel on splits the sequence over tp, which on 1 "
                 "GPU is 1; nearest tp that divides sequence 32: 2, or "
                 "sequence-parallel off"}},
        Refusal{"SequenceParallelThatDoesNotDivide",
                kGpt,
                {"--gpus", "4", "--tp", "4", "--seq", "30",
                 "--sequence-parallel", "on", "--splits",
                 "column,row,head,vocab", "--micro-batch", "1"},
                {"sequence 30 does not divide by tp 4, as sequence-parallel on "
                 "needs; nearest that do: 28 and 32, or sequence-parallel "
                 "off"}},
        Refusal{"SequenceParallelBesideContext",
                kGpt,
                {"--gpus", "8", "--tp", "4", "--cp", "2", "--seq", "20",
                 "--sequence-parallel", "on", "--micro-batch", "1"},
                {"sequence 20 does not divide by tp 4 times cp 2, which is 8, "
                 "as sequence-parallel on needs; nearest that do: 16 and 24, "
                 "or sequence-parallel off"}},
        Refusal{"Emit",
                kGpt,
                {"--emit", "ptx"},
                {"--emit: knows mlir and cuda, but is \"ptx\""}},
        Refusal{"EmitCuda",
                kGpt,
                {"--emit", "cuda"},
                {"--emit: cuda writes train.cu: needs -o FOLDER"}},
        Refusal{"Stage",
                kGpt,
                {"--emit", "mlir", "--stage", "plan"},
                {"--stage: unknown stage \"plan\"; nearest first, known are "
                 "planned, model, partitioned and differentiated"}}),
    nameOfTest);

struct BadFile {
  const char *test, *text, *error; ///< the text after the file's name
};

std::string nameOfFile(const testing::TestParamInfo<BadFile> &file) {
  return file.param.test;
}

class Files : public testing::TestWithParam<BadFile> {};

TEST_P(Files, AreRejectedWithThePath) {
  TestFile file(GetParam().text);
  Ran ran({file.path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err,
              testing::StartsWith("error: " + file.path + GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    Models, Files,
    testing::Values(
        BadFile{"Empty", "", ": is empty: neither JSON nor textual IR\n"},
        BadFile{"NotJson", "{ \"a\": ", ":1:"},
        BadFile{"NotANumber", "{\"n_layer\": NaN}", ":1:13: "},
        BadFile{"TwiceTheSameKey",
                "{\"model_type\": \"gpt2\", \"model_type\": \"gpt2\"}",
                ": /model_type: "},
        BadFile{"UnknownArchitecture", "{\"model_type\": \"gpt5\"}",
                ": /model_type: unknown architecture \"gpt5\""},
        BadFile{"NotAnObject", "[]", ": "}),
    nameOfFile);

// A file that starts like neither JSON nor IR is read as its suffix states.
TEST(Files, WithAnIrSuffixAreReadAsIr) {
  TestFile empty("", "mtplan_refusal.mlir");
  EXPECT_EQ(Ran({empty.path}).err, "error: " + empty.path +
                                       ": is empty: neither JSON nor textual "
                                       "IR\n");
  TestFile broken("modul {}", "mtplan_refusal.mlir");
  const Ran ran({broken.path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, testing::AllOf(
                           testing::StartsWith("error: " + broken.path + ":1:"),
                           testing::Not(testing::HasSubstr("JSON"))));
  TestFile json("{\"model_type\": \"gpt5\"}", "mtplan_refusal.mlir");
  EXPECT_THAT(Ran({json.path}).err,
              testing::HasSubstr("unknown architecture \"gpt5\""));
}

TEST(Files, NestedDeeplyDoNotOverflowTheStack) {
  TestFile file(std::string(1'000'000, '['));
  Ran ran({file.path});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, testing::StartsWith("error: " + file.path + ":1:"));
}

TEST(Files, MustExist) {
  Ran missing({"no-such-model.json"});
  EXPECT_EQ(missing.code, kBadInput);
  EXPECT_EQ(missing.err, "error: no-such-model.json: cannot be read: No such "
                         "file or directory\n");
  Ran folder({MTPLAN_SOURCE_DIR});
  EXPECT_EQ(folder.code, kBadInput);
  EXPECT_EQ(folder.err, "error: " MTPLAN_SOURCE_DIR
                        ": cannot be read: it is a directory\n");
  const std::filesystem::path model = testing::TempDir() + "mtplan_model";
  std::filesystem::create_directory(model);
  std::ofstream(model / "config.json") << "{}";
  EXPECT_EQ(Ran({model.string()}).err,
            "error: " + model.string() +
                ": cannot be read: it is a directory; name " +
                (model / "config.json").string() + '\n');
  std::filesystem::remove_all(model);
  Ran unnamed({""});
  EXPECT_EQ(unnamed.code, kBadInput);
  EXPECT_EQ(unnamed.err, "error: MODEL: names no file\n");
}

TEST(Files, ErrorsOfMachineAndModelAreReportedTogether) {
  TestFile machine("{\"name\": 3}");
  Ran ran({"no-such-model.json", "--hardware", machine.path, "--top", "0"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_THAT(ran.err, testing::HasSubstr("error: --top: "));
  EXPECT_THAT(ran.err,
              testing::HasSubstr("error: " + machine.path + ": /name: "));
  EXPECT_THAT(ran.err, testing::HasSubstr("error: no-such-model.json: "));
}

TEST(Files, WithoutAJsonObjectAreRejectedByName) {
  TestFile file("[]");
  const std::string what = file.path + ": must be an object, got an array\n";
  for (const char *flag : {"--hardware", "--software", "--constraints"})
    EXPECT_EQ(runExample(kGpt, {flag, file.path}).err, "error: " + what);
  EXPECT_EQ(Ran({"--load", file.path}).err, "error: " + what);
  EXPECT_EQ(Ran({"fit-hardware", file.path}).err, "error: " + what);
}

TEST(Files, InputsAreNotOverwritten) {
  std::ifstream example(examplePath(kGpt));
  const std::string text(std::istreambuf_iterator<char>(example), {});
  TestFile model(text);
  for (const char *flag : {"--save", "--trace", "--report", "--dot"}) {
    Ran ran({model.path, flag, model.path});
    EXPECT_EQ(ran.code, kBadInput);
    EXPECT_EQ(ran.err, "error: " + std::string(flag) + ": " + model.path +
                           " is what MODEL names; give it another name\n");
  }
  Ran twice({model.path, "--save", "both.json", "--trace", "both.json"});
  EXPECT_EQ(twice.err, "error: --save: both.json is what --trace names; give "
                       "it another name\n");
  EXPECT_EQ(
      Ran({model.path, "--save", "both.json", "--trace", "./both.json"}).err,
      "error: --save: both.json is what --trace names; give it another name\n");
  const std::filesystem::path folder =
      std::filesystem::path(model.path).parent_path();
  TestFile saved("", "mtplan_refusal_plan.json");
  EXPECT_EQ(runExample(kGpt, {"--save", saved.path}).err, "");
  for (const std::vector<std::string> &reads :
       {std::vector<std::string>{"--load", saved.path},
        {"--compare", saved.path, saved.path}}) {
    std::vector<std::string> flags = {model.path, "--trace", saved.path};
    flags.insert(flags.end(), reads.begin(), reads.end());
    EXPECT_THAT(Ran(flags).err,
                testing::HasSubstr("--trace: " + saved.path + " is what " +
                                   reads[0] + " names"));
  }
  EXPECT_THAT(Ran({model.path, "--gpus", "1", "--trace",
                   folder / "made/plan.json", "-o", folder / "made"})
                  .err,
              testing::HasSubstr("plan.json is what --trace names"));
  EXPECT_FALSE(std::filesystem::exists(folder / "made"));
  // An output may have the name of a preset, which is no input file.
  for (const auto &[flag, preset] : {std::pair("--hardware", "dgx-h100"),
                                     std::pair("--software", "nemo-24")}) {
    EXPECT_EQ(runExample(kGpt, {flag, preset, "--save", preset}).err, "");
    EXPECT_TRUE(std::filesystem::remove(preset));
  }
  EXPECT_EQ(
      Ran({"--load", "-", "--trace", "-", "--top", "9"}).err,
      "error: --top: is what --load says: give one of the two\n"
      "error: --trace: - means standard output for other flags, but names a "
      "file here; give it another name\n");
  std::ifstream after(model.path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(after), {}), text);
  EXPECT_EQ(runExample(kGpt, {"--save", "/dev/null", "--dot", "/dev/null"}).err,
            "");
}

TEST(Drawing, ThatCannotBeWrittenIsRefused) {
  Ran ran = runExample(kGpt, {"--dot", "/no/such/folder/graph.dot"});
  EXPECT_EQ(ran.code, kBadInput);
  EXPECT_EQ(ran.err, "error: /no/such/folder/graph.dot: cannot be written: No "
                     "such file or directory\n");
}

TEST(Arguments, ThatAreUnknownAreRefused) {
  Ran unknown = runExample(kGpt, {"--gpu", "8"});
  EXPECT_EQ(unknown.code, kBadInput);
  EXPECT_EQ(unknown.err,
            "error: --gpu: no such flag; nearest is --gpus\n"
            "error: 8: is not expected; mtplan takes one model, and a flag "
            "takes one value\n"
            "mtplan --help lists the flags\n");
  // The nearest short option differs by case; the nearest long one starts with
  // the typed letter.
  EXPECT_THAT(runExample(kGpt, {"-O", "run"}).err,
              testing::HasSubstr("-O: no such flag; nearest is -o\n"));
  EXPECT_THAT(runExample(kGpt, {"-x"}).err,
              testing::HasSubstr("-x: no such flag; nearest is --"));
  EXPECT_THAT(runExample(kGpt, {"-p", "any"}).err,
              testing::HasSubstr("-p: no such flag; nearest is --pp\n"));
  EXPECT_THAT(runExample(kGpt, {"-gpus", "8"}).err,
              testing::HasSubstr("-gpus: no such flag; nearest is --gpus\n"));
  EXPECT_THAT(runExample(kGpt, {"--micro", "4"}).err,
              testing::HasSubstr("nearest is --micro-batch\n"));
  EXPECT_THAT(runExample(kGpt, {"--GPUS", "4"}).err,
              testing::HasSubstr("nearest is --gpus\n"));
  Ran none({});
  EXPECT_EQ(none.code, kBadInput);
  EXPECT_THAT(none.err, testing::HasSubstr("MODEL is required"));
}

// Plans may have features that cannot be compiled yet.
TEST(Uncompiled, UncompiledFeaturesAreReported) {
  const std::filesystem::path folder = testing::TempDir() + "mtplan_refused";
  const auto errorsOf = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--hardware", "dgx-h100", "--gpus", "2", "--dp",
                               "2", "--zero", "3", "-o", folder.string()});
    return runExample(kGpt, flags).err;
  };
  EXPECT_THAT(
      errorsOf({"--offload", "optimizer", "--emit", "cuda"}),
      testing::HasSubstr("error: --emit: an optimizer that is offloaded to the "
                         "host's memory cannot be written into a program that "
                         "stands alone yet; plan with --offload none\n"));
  EXPECT_THAT(
      errorsOf({"--tiles", "2"}),
      testing::HasSubstr("error: -o: weights in tiles are planned and priced, "
                         "but not compiled yet; plan with --tiles 1\n"));
  EXPECT_FALSE(std::filesystem::exists(folder / "plan.json"));
  std::filesystem::remove_all(folder);
}

} // namespace
} // namespace mtplan::tools
