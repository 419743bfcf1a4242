// What a study runs: the name and the command of each case, the cases there are, and the limits of settings.
#include "measure/study/cases.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/values.h"
#include "thrown.h"

namespace vitrail {
namespace {

TEST(StudyCases, ANameTellsAllThatDiffers) {
  StudyCase one{
      .model = "a/vit_b.16", .device = "cuda:1", .transport = "mpi", .ranks = 4, .batch = 8, .repetition = 3};
  EXPECT_EQ(one.point(), "a-vit_b.16.cuda-1.mpi.r4.b8");
  EXPECT_EQ(one.name(), "a-vit_b.16.cuda-1.mpi.r4.b8.3");
  EXPECT_EQ(one.global_batch(), 32);
  one.fraction = 1.0 / 3;
  EXPECT_EQ(one.name(), "a-vit_b.16.cuda-1.mpi.r4.b8.f0.3333.3");
  const StudyCase sum{.kind = CaseKind::kAllReduce, .transport = "nodes", .ranks = 2, .megabytes = 0.25};
  EXPECT_EQ(sum.name(), "all-reduce.nodes.r2.0.25MB.1");
}

std::string words_text(const StudyCase& one, const StudyConfig& config) {
  const StudyPlaces places{.program = "vitrail", .hosts = {{"a", 2}, {"b", 2}}};
  return join(words_of(one, config, places, "out"), " ");
}

TEST(StudyCases, EveryCaseHasItsCommand) {
  StudyConfig plain, full;
  full.image = "32", full.recipe = "r.json", full.dtype = "bf16", full.threads = 3, full.updates = 7;
  full.warmup = 5, full.epochs = 4, full.settings = {"optim.lr=1", "data.fraction=0.5"};
  const auto steps = [](const char* transport, int64_t ranks, const char* model = "vit") {
    return StudyCase{.model = model, .device = "cpu", .transport = transport, .ranks = ranks, .batch = 8};
  };
  StudyCase train = steps("threads", 2), sum = steps("threads", 2);
  train.kind = CaseKind::kTrain, train.fraction = 0.5;
  sum.kind = CaseKind::kAllReduce, sum.megabytes = 0.1;
  const std::string usual = " --device cpu --threads 1 --batch 8 --steps 10 --warmup 2";
  EXPECT_EQ(words_text(steps("alone", 1), plain), "vitrail bench train --json --model vit" + usual);
  EXPECT_EQ(words_text(steps("threads", 2), plain),
            "vitrail bench train --json --model vit" + usual + " --ranks 2");
  EXPECT_EQ(words_text(steps("mpi", 3, kOfRecipe), plain),
            "vitrail launch -n 3 --mpirun bench train --json" + usual);
  EXPECT_EQ(words_text(steps("nodes", 3), plain),
            "vitrail launch -n 3 --mpirun --hosts a:2,b:1 bench train --json --model vit" + usual);
  EXPECT_EQ(words_text(steps("alone", 1), full),
            "vitrail bench train --json --model vit --image 32 --config r.json --dtype bf16 --device cpu "
            "--threads 3 --set optim.lr=1 --set data.fraction=0.5 --batch 8 --steps 7 --warmup 5");
  EXPECT_EQ(words_text(sum, plain), "vitrail bench dist --json --seconds 0.5 --mb 0.1 --ranks 2");
  // The share of a weak case is one of the share that the settings leave.
  EXPECT_EQ(words_text(train, full),
            "vitrail train --quiet --out out --config r.json --dtype bf16 --device cpu --threads 3 "
            "--set optim.lr=1 --set data.fraction=0.5 --set model.arch=vit --set model.image=32 "
            "--set train.batch=16 --set train.accumulation=1 --set train.epochs=4 --set data.fraction=0.25 "
            "--set train.breakdown=true --set train.tensorboard=false --ranks 2");
  train.model = kOfRecipe, train.fraction = 1;
  EXPECT_EQ(words_text(train, plain),
            "vitrail train --quiet --out out --device cpu --threads 1 --set train.batch=16 "
            "--set train.accumulation=1 --set train.epochs=2 --set train.breakdown=true "
            "--set train.tensorboard=false --ranks 2");
}

// A plan is told what its case is told of the run, and of the device by the files alone.
TEST(StudyCases, EveryUpdateHasItsPlan) {
  StudyConfig plain, full;
  full.image = "32", full.recipe = "r.json", full.dtype = "bf16", full.threads = 3;
  full.settings = {"optim.lr=1", "mesh.tp=2"};
  const auto said = [](const StudyCase& one, const StudyConfig& config, int64_t nodes) {
    return join(plan_words_of(one, config, "vitrail", {"net.json", "desk.json", nodes}), " ");
  };
  StudyCase one{.model = "vit", .device = "cuda:1", .transport = "nodes", .ranks = 4, .batch = 8};
  const std::string on = " --target desk.json --device cpu --threads ";
  EXPECT_EQ(said(one, plain, 2),
            "vitrail plan --json --cluster net.json --nodes 2 --devices 2 --set mesh.dp=0 --model vit" + on +
                "1 --batch 8");
  EXPECT_EQ(
      said(one, full, 1),
      "vitrail plan --json --cluster net.json --nodes 1 --devices 4 --set mesh.dp=0 --model vit --image 32 "
      "--config r.json --dtype bf16" +
          on + "3 --set optim.lr=1 --set mesh.tp=2 --batch 8");
  one.kind = CaseKind::kTrain;
  EXPECT_EQ(said(one, full, 1),
            "vitrail plan --json --cluster net.json --nodes 1 --devices 4 --set mesh.dp=0 --config r.json "
            "--dtype bf16" +
                on +
                "3 --set optim.lr=1 --set mesh.tp=2 --set model.arch=vit --set model.image=32 "
                "--set train.batch=32 --set train.accumulation=1");
}

std::vector<std::string> names_in(const StudyConfig& config) {
  std::vector<std::string> names;
  for (const StudyCase& one : list_cases(config)) names.push_back(one.name());
  return names;
}

TEST(StudyCases, WeakTrainingTakesAShareOfTheData) {
  StudyConfig config;
  config.kind = StudyKind::kTrain, config.models = {"m"}, config.transports = {"threads", "mpi"};
  config.strong = StrongScaling::kPerRank, config.weak = true, config.ranks = {"1", "4"};
  config.messages.clear(), config.repeat = 2;
  const std::vector<std::string> once = {"m.cpu.alone.r1.b16.f0.25", "m.cpu.alone.r1.b16",
                                         "m.cpu.threads.r4.b16", "m.cpu.mpi.r4.b16"};
  std::vector<std::string> all;
  for (const char* repetition : {".1", ".2"})
    for (const std::string& name : once) all.push_back(name + repetition);
  EXPECT_EQ(names_in(config), all);
  EXPECT_EQ(list_cases(config)[0].kind, CaseKind::kTrain);
  config.kind = StudyKind::kSteps, config.repeat = 1;  // updates have no data to take a share of
  EXPECT_EQ(names_in(config), (std::vector<std::string>{"m.cpu.alone.r1.b16.1", "m.cpu.threads.r4.b16.1",
                                                        "m.cpu.mpi.r4.b16.1"}));
  config.strong = StrongScaling::kGlobal, config.weak = false, config.transports = {"threads"};
  EXPECT_EQ(names_in(config), (std::vector<std::string>{"m.cpu.alone.r1.b16.1", "m.cpu.threads.r4.b4.1"}));
  config.models = {"m m", "m/m"};
  EXPECT_EQ(
      thrown_by([&] { list_cases(config); }),
      "usage: two cases would be called \"m-m.cpu.alone.r1.b16\" | models whose names differ in letters "
      "and digits");
}

TEST(StudyCases, AllReducesNeedPartners) {
  StudyConfig config;
  config.models = {"m"}, config.ranks = {"1", "2"}, config.messages = {"1", "0.5"}, config.repeat = 1;
  const std::vector<StudyCase> cases = list_cases(config);
  ASSERT_EQ(cases.size(), 4u);
  EXPECT_EQ(cases[2].name(), "all-reduce.threads.r2.1MB.1");
  EXPECT_EQ(cases[3].name(), "all-reduce.threads.r2.0.5MB.1");
  EXPECT_EQ(cases[3].device, "cpu");
  EXPECT_EQ(cases[3].batch, 0);
}

TEST(StudyCases, HostsThatLackSlotsAreTold) {
  EXPECT_EQ(thrown_by([] {
              hosts_for({{"a", 2}, {"b", 1}}, 5);
            }),
            "usage: --ranks: 5, and the nodes have slots for 3 | fewer ranks, or more slots in --hosts");
}

TEST(StudyConfig, DefaultsAreThoseOfTheDocs) {
  const auto expected = nlohmann::ordered_json::parse(R"({
    "kind": "steps", "models": [], "image": "", "recipe": "", "device": ["cpu"], "transports": ["threads"],
    "ranks": ["1", "2"], "batches": ["16"], "strong": "global", "weak": false, "repeat": 3, "updates": 10,
    "warmup": 2, "epochs": 2, "threads": 1, "dtype": "", "images": 50000,
    "messages": ["0.01", "0.1", "1", "10"], "hosts": "", "namespaces": 0, "rate": "", "seed": 0,
    "timeout": 900.0, "predicted": "", "cluster": "", "target": "", "settings": []})");
  EXPECT_EQ(to_json(StudyConfig()), expected);
  const std::vector<FieldSpec> fields = study_fields();
  ASSERT_EQ(fields.size() + 1, expected.size());
  size_t at = 0;
  for (const auto& [name, value] : expected.items()) {
    if (name == "settings") continue;
    EXPECT_EQ(fields[at].key, name);
    if (value.is_number_integer() || value.is_boolean()) {
      EXPECT_EQ(fields[at].usual, value.dump()) << name;
    }
    ++at;
  }
  StudyConfig none, trained;
  trained.recipe = "r.json";
  check_study(none), check_study(trained);
  EXPECT_EQ(none.models, std::vector<std::string>{"vit_tiny_patch16_224"});
  EXPECT_EQ(trained.models, std::vector<std::string>{"recipe"});
}

// The last value that is taken, and the first that is not.
TEST(StudyConfig, LimitsAreMetExactly) {
  struct Limit {
    const char* option;
    void (*last)(StudyConfig&);
    void (*past)(StudyConfig&);
  };
  const Limit limits[] = {
      {"ranks", [](StudyConfig& c) { c.ranks = {"4096"}; }, [](StudyConfig& c) { c.ranks = {"4097"}; }},
      {"batches", [](StudyConfig& c) { c.batches = {"1048576"}; },
       [](StudyConfig& c) { c.batches = {"1048577"}; }},
      {"messages", [](StudyConfig& c) { c.messages = {"0.0001,4096"}; },
       [](StudyConfig& c) { c.messages = {"0.00009"}; }},
      {"messages", [](StudyConfig&) {}, [](StudyConfig& c) { c.messages = {"4096.5"}; }},
      {"messages", [](StudyConfig& c) { c.messages = {"0"}; }, [](StudyConfig& c) { c.messages = {"0,1"}; }},
      {"repeat", [](StudyConfig& c) { c.repeat = 1000; }, [](StudyConfig& c) { c.repeat = 1001; }},
      {"updates", [](StudyConfig& c) { c.updates = 1000000; }, [](StudyConfig& c) { c.updates = 1000001; }},
      {"warmup", [](StudyConfig& c) { c.warmup = 0; }, [](StudyConfig& c) { c.warmup = -1; }},
      {"warmup", [](StudyConfig& c) { c.warmup = 1000000; }, [](StudyConfig& c) { c.warmup = 1000001; }},
      {"epochs", [](StudyConfig& c) { c.epochs = 1; }, [](StudyConfig& c) { c.epochs = 0; }},
      {"epochs", [](StudyConfig& c) { c.epochs = 100000; }, [](StudyConfig& c) { c.epochs = 100001; }},
      {"threads", [](StudyConfig& c) { c.threads = 0; }, [](StudyConfig& c) { c.threads = -1; }},
      {"threads", [](StudyConfig& c) { c.threads = 1024; }, [](StudyConfig& c) { c.threads = 1025; }},
      {"images", [](StudyConfig& c) { c.images = 1; }, [](StudyConfig& c) { c.images = 0; }},
      {"images", [](StudyConfig& c) { c.images = int64_t{1} << 40; },
       [](StudyConfig& c) { c.images = (int64_t{1} << 40) + 1; }},
      {"namespaces", [](StudyConfig& c) { c.namespaces = 9, c.transports = {"nodes"}, c.rate = "1gbit"; },
       [](StudyConfig& c) { c.namespaces = 10, c.transports = {"nodes"}; }},
      {"namespaces", [](StudyConfig& c) { c.hosts = "a:1", c.transports = {"mpi,nodes"}; },
       [](StudyConfig& c) { c.namespaces = 2, c.hosts = "a:1", c.transports = {"nodes"}; }},
      {"timeout", [](StudyConfig& c) { c.timeout = 0.001; }, [](StudyConfig& c) { c.timeout = -1; }}};
  for (const Limit& limit : limits) {
    StudyConfig taken, refused;
    taken.strong = refused.strong = StrongScaling::kPerRank;
    limit.last(taken), limit.past(refused);
    EXPECT_EQ(thrown_by([&] { check_study(taken); }), "nothing") << limit.option;
    const std::string said = thrown_by([&] { check_study(refused); });
    EXPECT_TRUE(said.starts_with(std::string("usage: --") + limit.option + ": ")) << said;
  }
  StudyConfig none;
  none.messages = {"0"};
  check_study(none);
  EXPECT_TRUE(none.messages.empty());
  none.repeat = 0;
  EXPECT_EQ(thrown_by([&] { check_study(none); }),
            "usage: --repeat: 0 is not between 1 and 1000 | --repeat 1");
}

}  // namespace
}  // namespace vitrail
